/** The script by which consumers take, finish and return messages. */

import { redisScript } from "../../platform/drivers/redis/script.ts";
import { LIBRARY, STALE } from "./queue-keys.ts";

/** Messages that one call delivers at most. More, and everybody else waits for milliseconds. */
const BUDGET = 2_000;
/** Reads that one take may spend on messages whose lanes are taken, before others have their turn. */
const READS_MAX = 5;

/**
 * A list of steps of many consumers. `ARGV`: prefix, consumer, number of its connection, and the steps:
 *
 *     D queue take next count (id key)*                   handled; next is 1 when a T of the same consumer follows
 *     B queue take restMs count (id key deliveries)*      back, with the deliveries it is to have
 *     T queue number take max first registered            take
 *     L queue number last                                 leave; last is 1 when none of this node is left in the queue
 *     R queue                                             what has rested may be ready
 *     W queue                                             wake another one: this wake-up found nobody
 *
 * The reply has one for each: for D and B how many were not ours any more; for T a list of `{again, fresh}`, where again has id, key,
 * deliveries and text of each, and fresh id, key and text; an empty list when it is to be asked again.
 */
export const STEPS = redisScript(
  "queue-steps",
  `local P, ME, i, total = ARGV[1], ARGV[2], 4, 0
if redis.call('GET', KEYS[1]) ~= ARGV[3] then return redis.error_reply('${STALE} another connection or nobody speaks for this consumer') end
${LIBRARY}
local function arg()
  i = i + 1
  return ARGV[i - 1]
end

-- Frees lanes that this take has: ready if more is parked. How many became ready.
local function free(q, keys, held)
  local gone, seen, ready = {}, {}, 0
  for n, key in ipairs(keys) do
    if string.sub(held[n], -1) ~= '+' then gone[#gone + 1] = key
    elseif not seen[key] then
      seen[key] = true
      list(q, key)
      ready = ready + 1
    end
  end
  if #gone > 0 then call('HDEL', P .. 'busy:' .. q, unpack(gone)) end
  return ready
end

local function done()
  local q, take, next, count = arg(), arg(), tonumber(arg()), tonumber(arg())
  local ids, keys = {}, {}
  for n = 1, count do ids[n], keys[n] = arg(), arg() end
  local held = call('HMGET', P .. 'busy:' .. q, unpack(keys))
  local mine, lanes, values = {}, {}, {}
  for n = 1, count do
    if held[n] == take or held[n] == take .. '+' then
      local at = #mine + 1
      mine[at], lanes[at], values[at] = ids[n], keys[n], held[n]
    end
  end
  if #mine > 0 then
    local stream = P .. 'queue:' .. q
    call('XACK', stream, GROUP, unpack(mine))
    call('XDEL', stream, unpack(mine))
    wake(q, free(q, lanes, values) - next)
  end
  return count - #mine
end

local function back()
  local q, take, restMs, count = arg(), arg(), tonumber(arg()), tonumber(arg())
  local ids, order, lost, due = {}, {}, 0, restMs > 0 and now() + restMs
  for n = 1, count do
    local id, key, deliveries = arg(), arg(), arg()
    if not ids[key] then
      local held = call('HGET', P .. 'busy:' .. q, key)
      ids[key] = { held = (held == take or held == take .. '+') and held }
      order[#order + 1] = key
    end
    if ids[key].held then
      table.insert(ids[key], id)
      toNobody(q, { id }, deliveries)
      if due then call('ZADD', P .. 'rest:' .. q, due, id .. ' ' .. key) end
    else lost = lost + 1 end
  end
  local ready = 0
  for _, key in ipairs(order) do
    local held = ids[key].held
    if held and due then ready = ready + free(q, { key }, { held })
    elseif held then ready = ready + putBack(q, key, ids[key], false) end
  end
  wake(q, ready)
  return lost
end

-- From lanes that nobody has. What was taken, per key: whether it is the whole lane.
local function fromLanes(q, take, max, again)
  local stream, busy, whole, n = P .. 'queue:' .. q, P .. 'busy:' .. q, {}, 0
  while n < max do
    local key = call('LPOP', P .. 'ready:' .. q)
    if not key then break end
    local lane, before = laneOf(q, key), n
    local ids = call('LRANGE', lane, 0, max - n - 1)
    call('LTRIM', lane, #ids, -1)
    local more = call('EXISTS', lane) == 1
    local got = #ids > 0 and redis.pcall('XCLAIM', stream, GROUP, ME, 0, unpack(ids)) or {}
    for _, entry in ipairs(got) do
      if entry then
        local pending = call('XPENDING', stream, GROUP, entry[1], entry[1], 1)
        local _, data = parts(entry[2])
        local at = n * 4
        again[at + 1], again[at + 2], again[at + 3], again[at + 4] = entry[1], key, pending[1][4], data
        n = n + 1
      end
    end
    if n > before then
      call('HSET', busy, key, more and take .. '+' or take)
      whole[key] = not more
    elseif more then list(q, key)
    else call('HDEL', busy, key) end
  end
  return n, whole
end

local function read(q, count)
  local stream = P .. 'queue:' .. q
  for attempt = 1, 2 do
    local reply = redis.pcall('XREADGROUP', 'GROUP', GROUP, ME, 'COUNT', count, 'STREAMS', stream, '>')
    if not reply then return {} end
    if not reply.err then return reply[1][2] end
    if attempt == 2 or not string.find(reply.err, 'NOGROUP', 1, true) then error(reply.err) end
    -- From the beginning: what was sent before anybody read is for the first who does.
    call('XGROUP', 'CREATE', stream, GROUP, 0)
  end
end

-- From what nobody has read. Messages whose lane is taken are parked behind it. True when there may be more.
local function fromStream(q, take, max, n, whole, fresh)
  local at = 0
  for _ = 1, ${READS_MAX} do
    if n >= max then return n, true end
    local wanted = max - n
    local entries = read(q, wanted)
    if #entries == 0 then return n, false end
    local keys, texts = {}, {}
    for e, entry in ipairs(entries) do keys[e], texts[e] = parts(entry[2]) end
    local held
    if #entries == 1 and whole[keys[1]] == nil and call('HSETNX', P .. 'busy:' .. q, keys[1], take) == 1 then
      held, whole[keys[1]] = {}, true
    else held = call('HMGET', P .. 'busy:' .. q, unpack(keys)) end
    local marks, parked, marked = {}, {}, {}
    for e, entry in ipairs(entries) do
      local key, value = keys[e], held[e]
      if whole[key] == nil and not value then
        whole[key] = true
        marks[#marks + 1], marks[#marks + 2] = key, take
      end
      if whole[key] then
        fresh[at + 1], fresh[at + 2], fresh[at + 3] = entry[1], key, texts[e]
        at, n = at + 3, n + 1
      else
        call('RPUSH', laneOf(q, key), entry[1])
        parked[#parked + 1] = entry[1]
        if value and value ~= '~' and string.sub(value, -1) ~= '+' and not marked[key] then
          marked[key] = true
          marks[#marks + 1], marks[#marks + 2] = key, value .. '+'
        end
      end
    end
    if #marks > 0 then call('HSET', P .. 'busy:' .. q, unpack(marks)) end
    if #parked > 0 then toNobody(q, parked, 0) end
    if #entries < wanted then return n, false end
  end
  return n, true
end

local function take()
  local q, number, token, max, first, registered = arg(), arg(), arg(), tonumber(arg()), arg(), arg()
  if first == '1' then call('SADD', P .. 'uses:' .. ME, q) end
  if total >= ${BUDGET} then return {} end
  local again, fresh, n, more, idle = {}, {}, 0, false, P .. 'idle:' .. q
  if call('XLEN', P .. 'queue:' .. q) > 0 then
    local whole = {}
    if call('EXISTS', P .. 'ready:' .. q, P .. 'rest:' .. q) > 0 then
      rested(q)
      n, whole = fromLanes(q, token, max, again)
    end
    n, more = fromStream(q, token, max, n, whole, fresh)
    total = total + n
  end
  if n == 0 and more then return {} end
  if registered == '1' then call('LREM', idle, 0, ME .. '/' .. number) end
  if n == 0 then call('RPUSH', idle, ME .. '/' .. number) end
  return { again, fresh }
end

local function leave()
  local q, number, last = arg(), arg(), arg()
  -- Woken, and it goes without having looked: another one looks.
  if call('LREM', P .. 'idle:' .. q, 0, ME .. '/' .. number) == 0 then wake(q, 1) end
  if last == '1' then
    call('SREM', P .. 'uses:' .. ME, q)
    tidy(q)
  end
  return 0
end

local function ready()
  local q = arg()
  wake(q, rested(q))
  return 0
end

local function passOn()
  wake(arg(), 1)
  return 0
end

local steps, replies = { D = done, B = back, T = take, L = leave, R = ready, W = passOn }, {}
while i <= #ARGV do replies[#replies + 1] = steps[arg()]() end
return replies`,
);
