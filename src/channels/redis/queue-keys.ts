/**
 * The keys and scripts of queues in Redis; each script is one atomic step. All keys of a cluster begin with the same
 * `{prefix}:`, here `P`.
 *
 *     queue:<q>        stream of messages, with the group `baton`; gone when it is empty and the last consumer left
 *     busy:<q>         hash, key of messages -> the take that has its lane; `<take>+` while more of the lane is parked;
 *                      `~` when the lane is parked and no consumer has it
 *     lane:<q>:<key>   list, ids that were read while their lane was taken, oldest first
 *     ready:<q>        list, keys whose lane is `~`
 *     rest:<q>         sorted set, `<id> <key>` of messages that failed, by the time of their next delivery
 *     idle:<q>         list, `<consumer>/<number>` of consumers that found nothing and wait to be woken, longest first
 *     wake:<consumer>  stream, numbers of the consumers to wake, and for which queue; a node waits on it for all its queues
 *     consumer:<c>     the number of the connection whose commands count
 *     uses:<c>         set, the queues that it consumes: where its messages are when it is dead
 *     consumers        sorted set, consumers by the time at which they are dead without another heartbeat
 *
 *        unread ---take: its lane is free---> with a consumer ---done---> gone
 *           \                                  ^      |  back, or its consumer died
 *            \--take: its lane is taken--> lane, ready <----+---- rest
 *
 * The group's own list of pending entries says which consumer has a message and how often it was delivered: entries
 * with a consumer are pending under its name, those in a lane or at rest under `-`. The rest follows from it.
 */

/** The reply of a script to commands of a connection that was replaced, or of a consumer that others took for dead. */
export const STALE = "STALE";

export function isStale(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith(STALE);
}

/** What the scripts have in common. `P` is to be set before. */
export const LIBRARY = `
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

local function laneOf(q, key) return P .. 'lane:' .. q .. ':' .. key end

local function wake(q, most)
  if most < 1 then return end
  for _, who in ipairs(call('LPOP', P .. 'idle:' .. q, most) or {}) do
    local at, number = string.match(who, '^(.*)/(%d+)$')
    call('XADD', P .. 'wake:' .. at, '*', 'consumer', number, 'queue', q)
  end
end

-- Nobody is left who would read it. Whoever comes back makes a new group.
local function tidy(q)
  if call('EXISTS', P .. 'idle:' .. q) == 0 and call('XLEN', P .. 'queue:' .. q) == 0 then
    call('DEL', P .. 'queue:' .. q)
  end
end

-- The lane holds something, and nobody has it.
local function list(q, key)
  call('HSET', P .. 'busy:' .. q, key, '~')
  call('RPUSH', P .. 'ready:' .. q, key)
end

-- Ids, oldest first, to the front of their lane, whoever has it; 1 if nobody had.
local function putBack(q, key, ids, held)
  for i = #ids, 1, -1 do call('LPUSH', laneOf(q, key), ids[i]) end
  if not held then
    list(q, key)
    return 1
  end
  if held ~= '~' and string.sub(held, -1) ~= '+' then call('HSET', P .. 'busy:' .. q, key, held .. '+') end
  return 0
end

local function older(a, b)
  local aTime, aCount = string.match(a, '^(%d+)-(%d+)')
  local bTime, bCount = string.match(b, '^(%d+)-(%d+)')
  if aTime ~= bTime then return tonumber(aTime) < tonumber(bTime) end
  return tonumber(aCount) < tonumber(bCount)
end

-- What has rested goes to the front of its lane; how many lanes are ready by that.
local function rested(q)
  local due = call('ZRANGEBYSCORE', P .. 'rest:' .. q, '-inf', now(), 'LIMIT', 0, 1000)
  if #due == 0 then return 0 end
  call('ZREM', P .. 'rest:' .. q, unpack(due))
  table.sort(due, older)
  local ids, keys, ready = {}, {}, 0
  for _, one in ipairs(due) do
    local id, key = string.match(one, '^(%S+) (.*)$')
    if not ids[key] then
      ids[key] = {}
      keys[#keys + 1] = key
    end
    table.insert(ids[key], id)
  end
  for _, key in ipairs(keys) do ready = ready + putBack(q, key, ids[key], call('HGET', P .. 'busy:' .. q, key)) end
  return ready
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

-- Not with a consumer any more. Sets the number of deliveries if one is given.
local function toNobody(q, ids, deliveries)
  local args = { P .. 'queue:' .. q, GROUP, NOBODY, 0, unpack(ids) }
  if deliveries then
    args[#args + 1] = 'RETRYCOUNT'
    args[#args + 1] = deliveries
  end
  args[#args + 1] = 'JUSTID'
  redis.pcall('XCLAIM', unpack(args))
end
`;
