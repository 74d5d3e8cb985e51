/** The scripts for heartbeats of consumers, and for finding dead ones. The keys are those of queue-keys.ts. */

import { redisScript } from "../../platform/drivers/redis/script.ts";
import { STALE } from "./queue-keys.ts";

const NOW = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * From now on only the commands of this connection count: one of an earlier connection may still lie unread at a server that stood
 * still. `KEYS` the consumer; `ARGV` prefix, consumer, number of the connection, leaseMs, and 1 if it is to be there, 0 if not yet:
 * when that is wrong nothing is done.
 *
 * The reply: whether it was there, the number of the last entry of the topics, and its id.
 */
export const HELLO = redisScript(
  "presence-hello",
  `${NOW}
local P, me, connection = ARGV[1], ARGV[2], tonumber(ARGV[3])
local known = redis.call('GET', KEYS[1])
local found = known and '1' or '0'
if found == '1' and ARGV[5] == '1' and tonumber(known) >= connection then
  return redis.error_reply('${STALE} a later connection speaks for this consumer')
end
if found == ARGV[5] then
  redis.call('SET', KEYS[1], connection)
  redis.call('ZADD', P .. 'consumers', now + ARGV[4], me)
end
local last = redis.call('XREVRANGE', P .. 'topics', '+', '-', 'COUNT', 1)[1]
return { tonumber(found), tonumber(redis.call('GET', P .. 'topics:count') or '0'), last and last[1] or '0-0' }`,
);

/**
 * `KEYS` the consumer; `ARGV` prefix, consumer, number of the connection, leaseMs, the wake-up that was read last. The reply: the
 * number of the last entry of the topics, and those who are dead.
 *
 * When nobody has said anything for long, or the time has jumped, it was the server that was away: everybody gets another lease.
 */
export const BEAT = redisScript(
  "presence-beat",
  `${NOW}
local P, me, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[4])
if redis.call('GET', KEYS[1]) ~= ARGV[3] then return redis.error_reply('${STALE} another connection or nobody speaks for this consumer') end
local last = tonumber(redis.call('GET', P .. 'consumers:beat') or now)
redis.call('SET', P .. 'consumers:beat', now)
if math.abs(now - last) > leaseMs / 2 then
  for _, who in ipairs(redis.call('ZRANGE', P .. 'consumers', 0, -1)) do redis.call('ZADD', P .. 'consumers', now + leaseMs, who) end
end
redis.call('ZADD', P .. 'consumers', now + leaseMs, me)
redis.call('XTRIM', P .. 'wake:' .. me, 'MINID', ARGV[5])
local dead = redis.call('ZRANGEBYSCORE', P .. 'consumers', '-inf', now)
return { tonumber(redis.call('GET', P .. 'topics:count') or '0'), unpack(dead) }`,
);

/** `ARGV` prefix and a consumer: all its lives are dead, whatever they said. Their names. */
export const CONDEMN = redisScript(
  "presence-condemn",
  `local P, name = ARGV[1], ARGV[2]
local found = {}
for _, who in ipairs(redis.call('ZRANGE', P .. 'consumers', 0, -1)) do
  if string.match(who, '^(.*)%.%d+$') == name then
    redis.call('ZADD', P .. 'consumers', 0, who)
    found[#found + 1] = who
  end
end
return found`,
);
