/**
 * The scripts of the list of nodes: a set of incarnations, and a hash for each with what its node reports about itself
 * (`info`, which only nodes read), its status, the count and time of its heartbeats, the channel of its incarnation and
 * a request.
 */

import { redisScript } from "../../platform/drivers/redis/script.ts";
import { NOW, SUBSCRIBERS } from "./control-session.ts";

/**
 * A node whose cluster has gone for good is not kept for ever. Long beyond what any leader needs to take its work back: the dead are
 * forgotten by a leader, after their work was recovered.
 */
const KEEP_MS = 7 * 24 * 3_600_000;

/** KEYS[1] is the set; the hashes stand beside it under the same hash tag. */
const NODES = `
local function rowKey(incarnation) return KEYS[1] .. ':' .. incarnation end
local function others(own)
  local found = {}
  for _, incarnation in ipairs(redis.call('SMEMBERS', KEYS[1])) do
    if incarnation ~= own then
      local row = redis.call('HMGET', rowKey(incarnation), 'name', 'status', 'at', 'beats', 'life', 'recovered', 'info')
      -- A hash that the server has thrown away.
      if row[1] then found[#found + 1] = { incarnation, unpack(row) } else redis.call('SREM', KEYS[1], incarnation) end
    end
  end
  return found
end
local INCARNATION, NAME, STATUS, AT, BEATS, LIFE, RECOVERED = 1, 2, 3, 4, 5, 6, 7
`;
/** ARGV: now, incarnation, name, info, status, life. A node that was taken for dead by mistake is back with this. */
const WRITE_OWN = `
local row = rowKey(ARGV[2])
redis.call('SADD', KEYS[1], ARGV[2])
redis.call('HSET', row, 'name', ARGV[3], 'info', ARGV[4], 'status', ARGV[5], 'life', ARGV[6],
  'at', string.format('%d', at), 'recovered', '0')
redis.call('HINCRBY', row, 'beats', 1)
redis.call('PEXPIRE', row, '${KEEP_MS}')
`;
const SERVER = `
local info = redis.call('INFO', 'server')
local server = string.match(info, 'run_id:(%w+)')
local upMs = tonumber(string.match(info, 'uptime_in_seconds:(%d+)')) * 1000
`;
/** A fence that is over: the first number of the answer. */
export const STALE = 0;
/** KEYS[2] is the leader's key; ARGV[2..4] its holder and epoch. */
const FENCE = `
local held = redis.call('HMGET', KEYS[2], 'leader', 'incarnation', 'epoch')
if held[1] ~= ARGV[2] or held[2] ~= ARGV[3] or held[3] ~= ARGV[4] then return { ${STALE}, at } end
`;

/** ARGV[7]: the request that was heard and is cleared. Answers `{1, at, request, others}`, or `{0, at}` when another has our name. */
export const BEAT = redisScript(
  "node-beat",
  `${NOW}${NODES}
local rest = others(ARGV[2])
for _, other in ipairs(rest) do
  if other[NAME] == ARGV[3] and other[STATUS] ~= 'dead' then return { 0, at } end
end
${WRITE_OWN}
if ARGV[7] ~= '' and redis.call('HGET', row, 'request') == ARGV[7] then redis.call('HDEL', row, 'request') end
return { 1, at, redis.call('HGET', row, 'request'), rest }`,
);
/**
 * ARGV[7]: how old the heartbeat of one who lives may be. A namesake whose life is gone is dead, and no reason to wait. One without
 * such, or on a server that has only just started, is judged by its heartbeat. Answers `{1, at}`, or `{0, at, its info}`.
 */
export const REGISTER = redisScript(
  "node-register",
  `${NOW}${NODES}${SUBSCRIBERS}${SERVER}
local silentMs = tonumber(ARGV[7])
for _, other in ipairs(others(ARGV[2])) do
  if other[NAME] == ARGV[3] and other[STATUS] ~= 'dead' then
    local held = other[LIFE] ~= '' and subscribers(other[LIFE]) > 0
    local tells = other[LIFE] ~= '' and upMs >= silentMs
    if held or (at - tonumber(other[AT]) < silentMs and not tells) then return { 0, at, other[8] } end
    redis.call('HSET', rowKey(other[INCARNATION]), 'status', 'dead', 'recovered', '0')
    redis.call('HDEL', rowKey(other[INCARNATION]), 'request')
  end
end
${WRITE_OWN}
redis.call('HDEL', row, 'request')
return { 1, at }`,
);
/** ARGV: now, incarnation. */
export const DEREGISTER = redisScript(
  "node-deregister",
  `${NOW}${NODES}
redis.call('SREM', KEYS[1], ARGV[2])
redis.call('DEL', rowKey(ARGV[2]))
return { 1, at }`,
);
/** ARGV: now, name, request, how old a heartbeat may be, channel, subject. */
export const ASK = redisScript(
  "node-ask",
  `${NOW}${NODES}
for _, other in ipairs(others('')) do
  if other[NAME] == ARGV[2] and other[STATUS] ~= 'dead' and at - tonumber(other[AT]) < tonumber(ARGV[4]) then
    redis.call('HSET', rowKey(other[INCARNATION]), 'request', ARGV[3])
    redis.call('PUBLISH', ARGV[5], ARGV[6])
    return { 1, at }
  end
end
return { 0, at }`,
);
/**
 * ARGV[5]: after how long dead nodes are forgotten, once their work was recovered. Answers `{1, at, server, ms up, nodes}`, each node as
 * incarnation, name, status, beats, whether it has a life to see, whether that is there, whether its work was recovered.
 */
export const LOOK = redisScript(
  "node-look",
  `${NOW}${NODES}${SUBSCRIBERS}${FENCE}${SERVER}
local seen = {}
for _, other in ipairs(others('')) do
  local recovered = other[RECOVERED] == '1'
  if other[STATUS] == 'dead' and recovered and at - tonumber(other[AT]) > tonumber(ARGV[5]) then
    redis.call('SREM', KEYS[1], other[INCARNATION])
    redis.call('DEL', rowKey(other[INCARNATION]))
  else
    local tells = other[LIFE] ~= ''
    local held = tells and subscribers(other[LIFE]) > 0
    seen[#seen + 1] = { other[INCARNATION], other[NAME], other[STATUS], tonumber(other[BEATS]),
      tells and 1 or 0, held and 1 or 0, recovered and 1 or 0 }
  end
end
return { 1, at, server, upMs, seen }`,
);
/** ARGV[5...]: incarnations and their beats, in turn. Only those whose row is still as it was seen; answers with them. */
export const MARK_DEAD = redisScript(
  "node-mark-dead",
  `${NOW}${NODES}${FENCE}
local marked = {}
for i = 5, #ARGV, 2 do
  local row = redis.call('HMGET', rowKey(ARGV[i]), 'beats', 'status')
  if row[1] == ARGV[i + 1] and row[2] ~= 'dead' then
    redis.call('HSET', rowKey(ARGV[i]), 'status', 'dead', 'recovered', '0')
    redis.call('HDEL', rowKey(ARGV[i]), 'request')
    marked[#marked + 1] = ARGV[i]
  end
end
return { 1, at, marked }`,
);
/** ARGV[5...]: incarnations. */
export const MARK_RECOVERED = redisScript(
  "node-mark-recovered",
  `${NOW}${NODES}${FENCE}
for i = 5, #ARGV do
  if redis.call('HGET', rowKey(ARGV[i]), 'status') == 'dead' then
    redis.call('HSET', rowKey(ARGV[i]), 'recovered', '1')
  end
end
return { 1, at }`,
);

/** Of a node, in the order of `NODES`. */
export type NodeFields = readonly [
  incarnation: string,
  name: string,
  status: string,
  at: string,
  beats: string,
  life: string,
  recovered: string,
  info: string,
];

export type SignFields = readonly [
  incarnation: string,
  name: string,
  status: string,
  beats: number,
  tells: number,
  held: number,
  recovered: number,
];
