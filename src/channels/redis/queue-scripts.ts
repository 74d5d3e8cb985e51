/**
 * The keys and scripts of queues in Redis; each script is one atomic step. All keys of a cluster begin with the same
 * `{prefix}:`, here `P`.
 *
 *     queue:<q>        stream of messages, with the group `baton`; gone when it is empty and the last consumer left
 *     rest:<q>         sorted set, ids of messages that were given back, by the time of their next delivery
 *     idle:<q>         list, `<node>/<number>` of consumers that found nothing and wait to be woken, longest first
 *     wake:<node>      stream, numbers of the consumers to wake, and for which queue; a node waits on it for all its queues
 *     consumer:<node>  the number of the connection whose commands count
 *     uses:<node>      set, the queues that it consumes: where its messages are when it is dead
 *     consumers        sorted set, nodes by the time at which they are dead without another heartbeat
 *
 *        unread ---take---> with a consumer ---done---> gone
 *                               ^      | back, or its node died
 *                               '-- rest
 *
 * The group's own list of pending entries says which consumer has a message and how often it was delivered: a message
 * with a consumer is pending under `<node>/<number>`, one that was given back under `-`. Everything else follows from it.
 * A consumer has at most one batch, so whatever is pending under its name when it takes is from a take whose answer was
 * lost. `<node>` is the name of a node's consumers in this process, with a number that changes when Redis forgets it.
 */

import { redisScript } from "../../platform/drivers/redis/connection.ts";

/** The reply of a script to commands of a connection that was replaced, or of a node that others took for dead. */
const STALE = "STALE";

export function isStale(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith(STALE);
}

/** Refuses commands of a connection that was replaced. `KEYS[1]` is the consumer, `ARGV[3]` the number of the connection. */
export const CURRENT = `if redis.call('GET', KEYS[1]) ~= ARGV[3] then
  return redis.error_reply('${STALE} this connection was replaced, or its consumer was taken for dead')
end`;
export const REPLACED = `return redis.error_reply('${STALE} this connection was replaced by a later one')`;

/** Shared by all scripts, which set `P` first. */
const LIBRARY = `
local call = redis.call
local GROUP, NOBODY = 'baton', '-'

local clock
local function now()
  if not clock then
    local time = call('TIME')
    clock = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return clock
end

local function wake(q, most)
  if most < 1 then return end
  for _, who in ipairs(call('LPOP', P .. 'idle:' .. q, most) or {}) do
    local at, number = string.match(who, '^(.*)/(%d+)$')
    call('XADD', P .. 'wake:' .. at, '*', 'consumer', number, 'queue', q)
  end
end

-- No consumer is left that would read it. The next one makes a new group.
local function tidy(q)
  if call('EXISTS', P .. 'idle:' .. q) == 0 and call('XLEN', P .. 'queue:' .. q) == 0 then
    call('DEL', P .. 'queue:' .. q)
  end
end

-- Pending under nobody, until it is due. Sets the number of deliveries if one is given.
local function giveBack(q, id, due, deliveries)
  local args = { P .. 'queue:' .. q, GROUP, NOBODY, 0, id, 'JUSTID' }
  if deliveries then args[7], args[8] = 'RETRYCOUNT', deliveries end
  redis.pcall('XCLAIM', unpack(args))
  call('ZADD', P .. 'rest:' .. q, due, id)
end

-- All that is pending under a consumer; how many.
local function giveBackAll(q, who)
  local count = 0
  repeat
    local pending = redis.pcall('XPENDING', P .. 'queue:' .. q, GROUP, '-', '+', 500, who)
    if pending.err then return count end
    for _, one in ipairs(pending) do
      if call('XRANGE', P .. 'queue:' .. q, one[1], one[1])[1] then
        giveBack(q, one[1], 0)
        count = count + 1
      else call('XACK', P .. 'queue:' .. q, GROUP, one[1]) end
    end
  until #pending < 500
  return count
end
`;

/** `KEYS` the streams; `ARGV` the prefix, and for each message the number of its stream, its key and its text. */
export const SEND = redisScript(
  "queue-send",
  `local P = ARGV[1]
${LIBRARY}
local counts = {}
for i = 2, #ARGV, 3 do
  local at = tonumber(ARGV[i])
  call('XADD', KEYS[at], '*', 'key', ARGV[i + 1], 'data', ARGV[i + 2])
  counts[at] = (counts[at] or 0) + 1
end
local skip = #P + #'queue:' + 1
for at, count in pairs(counts) do wake(string.sub(KEYS[at], skip), count) end
return #ARGV`,
);

/**
 * Gives back what a dead node had, in some of its queues. `ARGV`: prefix and node. The reply is how many of its queues are left; the last
 * call removes every trace of it.
 */
export const RETURN = redisScript(
  "queue-return",
  `local P, WHO = ARGV[1], ARGV[2]
${LIBRARY}
call('DEL', P .. 'consumer:' .. WHO)
for _, q in ipairs(call('SPOP', P .. 'uses:' .. WHO, 100)) do
  local count, infos = 0, redis.pcall('XINFO', 'CONSUMERS', P .. 'queue:' .. q, GROUP)
  for _, info in ipairs(infos.err and {} or infos) do
    if string.sub(info[2], 1, #WHO + 1) == WHO .. '/' then
      count = count + giveBackAll(q, info[2])
      call('XGROUP', 'DELCONSUMER', P .. 'queue:' .. q, GROUP, info[2])
    end
  end
  for _, who in ipairs(call('LRANGE', P .. 'idle:' .. q, 0, -1)) do
    if string.sub(who, 1, #WHO + 1) == WHO .. '/' then call('LREM', P .. 'idle:' .. q, 0, who) end
  end
  tidy(q)
  -- One more: it may have been woken for a message, and died.
  wake(q, count + 1)
end
local left = call('SCARD', P .. 'uses:' .. WHO)
if left == 0 then
  call('ZREM', P .. 'consumers', WHO)
  call('DEL', P .. 'wake:' .. WHO)
end
return left`,
);

/** Messages that one call delivers at most. More, and everybody else waits for milliseconds. */
const BUDGET = 2_000;

/**
 * The steps of many consumers of a node. `ARGV`: prefix, node, number of its connection, and the steps:
 *
 *     T queue number max flags count id*                  these were handled, and take up to max, if that is above 0
 *     B queue number restMs count (id deliveries)*        back, with the deliveries it is to have
 *     L queue number last                                 leave; last is 1 when no consumer of this node is left in the queue
 *     R queue                                             messages that were given back may be due
 *     W queue                                             wake another consumer: the one that was woken has gone
 *
 * Flags of T: x the queue is exclusive, f the first take of this consumer, i it may be in the list of those that wait, l the answer
 * to an earlier step was lost.
 *
 * The reply has one for each: for T a list of `{again, fresh}`, where again has id, key, deliveries and text of each, and fresh id,
 * key and text; an empty list if the caller must send the take again.
 */
export const STEPS = redisScript(
  "queue-steps",
  `local P, ME, i, total = ARGV[1], ARGV[2], 4, 0
${CURRENT}
${LIBRARY}
local function arg()
  i = i + 1
  return ARGV[i - 1]
end

-- Written by anybody: what has no key has the empty one.
local function parts(fields)
  if fields[1] == 'key' and fields[3] == 'data' then return fields[2], fields[4] end
  local key, data = '""', 'null'
  for i = 1, #fields, 2 do
    if fields[i] == 'key' then key = fields[i + 1] elseif fields[i] == 'data' then data = fields[i + 1] end
  end
  return key, data
end

-- Whether a consumer has a batch of it.
local function isOut(q)
  local summary = redis.pcall('XPENDING', P .. 'queue:' .. q, GROUP)
  if summary.err then return false end
  for _, one in ipairs(summary[4] or {}) do
    if one[1] ~= NOBODY then return true end
  end
  return false
end

-- From those that were given back and are due, oldest first. How many, and whether others wait.
local function claim(q, who, max, exclusive, again)
  local ids, counts, rests = {}, {}, false
  local pending = redis.pcall('XPENDING', P .. 'queue:' .. q, GROUP, '-', '+', 1000, NOBODY)
  if pending.err then return 0, false end
  for _, one in ipairs(pending) do
    local due = call('ZSCORE', P .. 'rest:' .. q, one[1])
    if #ids == max or (due and tonumber(due) > now()) then
      rests = true
      if exclusive or #ids == max then break end
    else
      ids[#ids + 1] = one[1]
      counts[one[1]] = one[4]
    end
  end
  if #ids == 0 then return 0, rests end
  call('ZREM', P .. 'rest:' .. q, unpack(ids))
  local n = 0
  for e, entry in ipairs(call('XCLAIM', P .. 'queue:' .. q, GROUP, who, 0, unpack(ids))) do
    if entry and entry[2] then
      local key, data = parts(entry[2])
      local at = n * 4
      again[at + 1], again[at + 2], again[at + 3], again[at + 4] = entry[1], key, counts[entry[1]] + 1, data
      n = n + 1
    else call('XACK', P .. 'queue:' .. q, GROUP, ids[e]) end
  end
  return n, rests
end

local function read(q, who, count, fresh)
  local stream = P .. 'queue:' .. q
  local reply = redis.pcall('XREADGROUP', 'GROUP', GROUP, who, 'COUNT', count, 'STREAMS', stream, '>')
  if reply and reply.err then
    if not string.find(reply.err, 'NOGROUP', 1, true) then error(reply.err) end
    -- From the beginning: what was sent before any consumer came is for the first one.
    call('XGROUP', 'CREATE', stream, GROUP, 0)
    reply = call('XREADGROUP', 'GROUP', GROUP, who, 'COUNT', count, 'STREAMS', stream, '>')
  end
  if not reply then return 0 end
  for e, entry in ipairs(reply[1][2]) do
    local at = (e - 1) * 3
    fresh[at + 1] = entry[1]
    fresh[at + 2], fresh[at + 3] = parts(entry[2])
  end
  return #reply[1][2]
end

local function take()
  local q, number, max, flags, count = arg(), arg(), tonumber(arg()), arg(), tonumber(arg())
  local who, stream, idle = ME .. '/' .. number, P .. 'queue:' .. q, P .. 'idle:' .. q
  local function has(flag) return string.find(flags, flag, 1, true) end
  if count > 0 then
    local ids = {}
    for n = 1, count do ids[n] = arg() end
    redis.pcall('XACK', stream, GROUP, unpack(ids))
    call('XDEL', stream, unpack(ids))
  end
  if has('f') then call('SADD', P .. 'uses:' .. ME, q) end
  if has('l') then giveBackAll(q, who) end
  if max == 0 then return { {}, {} } end
  if total >= ${BUDGET} then return {} end
  local again, fresh, n = {}, {}, 0
  if call('XLEN', stream) > 0 and not (has('x') and isOut(q)) then
    local rests
    n, rests = claim(q, who, max, has('x'), again)
    if n < max and not (has('x') and rests) then n = n + read(q, who, max - n, fresh) end
    total = total + n
  end
  if has('i') then call('LREM', idle, 0, who) end
  if n == 0 then call('RPUSH', idle, who) end
  return { again, fresh }
end

local function back()
  local q, number, restMs, count = arg(), arg(), tonumber(arg()), tonumber(arg())
  local who, due = ME .. '/' .. number, restMs > 0 and now() + restMs or 0
  for n = 1, count do
    local id, deliveries = arg(), arg()
    local pending = redis.pcall('XPENDING', P .. 'queue:' .. q, GROUP, id, id, 1, who)
    if pending[1] then giveBack(q, id, due, deliveries) end
  end
  return 0
end

local function leave()
  local q, number, last = arg(), arg(), arg()
  local who = ME .. '/' .. number
  giveBackAll(q, who)
  redis.pcall('XGROUP', 'DELCONSUMER', P .. 'queue:' .. q, GROUP, who)
  -- It was woken and goes without a take, or had an exclusive queue: another one takes.
  if call('LREM', P .. 'idle:' .. q, 0, who) == 0 then wake(q, 1) end
  if last == '1' then
    call('SREM', P .. 'uses:' .. ME, q)
    tidy(q)
  end
  return 0
end

local function due()
  local q = arg()
  wake(q, call('ZCOUNT', P .. 'rest:' .. q, '-inf', now()))
  return 0
end

local function passOn()
  wake(arg(), 1)
  return 0
end

local steps, replies = { T = take, B = back, L = leave, R = due, W = passOn }, {}
while i <= #ARGV do replies[#replies + 1] = steps[arg()]() end
return replies`,
);
