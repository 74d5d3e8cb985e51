/** The scripts that send messages, and that return messages of consumers that are dead or have lost them. */

import { redisScript } from "../../platform/drivers/redis/script.ts";
import { LIBRARY } from "./queue-keys.ts";

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
 * Gives back what is pending under a consumer's name in some queues. `ARGV`: prefix, consumer, how many queues, they, and the takes
 * that it has really in hand, which stay. With 0 queues they are fetched, some at a time, from what a dead one used; the reply is how many
 * are left then, and the last call removes every trace of it.
 */
export const RETURN = redisScript(
  "queue-return",
  `local P, WHO, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
${LIBRARY}
local dead = count == 0
local queues, kept = {}, {}
if dead then
  call('DEL', P .. 'consumer:' .. WHO)
  queues = call('SPOP', P .. 'uses:' .. WHO, 100)
else
  for n = 1, count do queues[n] = ARGV[3 + n] end
  for n = 4 + count, #ARGV do kept[ARGV[n]] = true end
end

local function returned(q)
  local stream, busy, from, ready = P .. 'queue:' .. q, P .. 'busy:' .. q, '-', 0
  local ids, order, pending = {}, {}
  repeat
    pending = redis.pcall('XPENDING', stream, GROUP, from, '+', 500, WHO)
    if pending.err then break end
    for _, one in ipairs(pending) do
      from = '(' .. one[1]
      local entry = call('XRANGE', stream, one[1], one[1])[1]
      if not entry then call('XACK', stream, GROUP, one[1])
      else
        local key = parts(entry[2])
        local held = call('HGET', busy, key)
        if not (held and kept[string.gsub(held, '%+$', '')]) then
          if not ids[key] then
            ids[key] = {}
            order[#order + 1] = key
          end
          table.insert(ids[key], one[1])
        end
      end
    end
  until #pending < 500
  for _, key in ipairs(order) do
    local held = call('HGET', busy, key)
    -- The lane was its own: nobody has it now.
    if held and string.sub(held, 1, #WHO + 1) == WHO .. '/' then held = false end
    ready = ready + putBack(q, key, ids[key], held)
    for _, id in ipairs(ids[key]) do toNobody(q, { id }) end
  end
  if dead then
    redis.pcall('XGROUP', 'DELCONSUMER', stream, GROUP, WHO)
    for _, who in ipairs(call('LRANGE', P .. 'idle:' .. q, 0, -1)) do
      if string.sub(who, 1, #WHO + 1) == WHO .. '/' then call('LREM', P .. 'idle:' .. q, 0, who) end
    end
    tidy(q)
    -- It may have been woken for something, and died.
    ready = ready + 1
  end
  wake(q, ready)
end

for _, q in ipairs(queues) do returned(q) end
if not dead then return 0 end
local left = call('SCARD', P .. 'uses:' .. WHO)
if left == 0 then
  call('ZREM', P .. 'consumers', WHO)
  call('DEL', P .. 'wake:' .. WHO)
end
return left`,
);
