/**
 * The heartbeat of this node's consumers: one message to Redis for all queues and batches. A consumer without a heartbeat for a lease is
 * dead, and the next heartbeat of any other returns its messages.
 *
 * A consumer is identified by a name and the number of its connection: commands of a broken connection that Redis has not read yet are
 * refused. If Redis no longer knows this consumer (it was emptied, or others declared us dead), it continues under a new name, because the
 * recovery of the old one may still be in progress.
 */

import { redisScript, type RedisCommands } from "../../platform/drivers/redis/connection.ts";
import type { RedisLink } from "./link.ts";
import { CURRENT, isStale, REPLACED, RETURN } from "./queue-scripts.ts";

export interface ConsumerHeartbeatOptions {
  readonly leaseMs: number;
  /** The last wake-up that was read: those before it can go. */
  readonly lastWake: () => string;
  readonly onTopics: (count: TopicsPosition["count"]) => void;
  /** Redis has forgotten us, and knows us by a new name now. */
  readonly onForgotten: () => void;
}

/** The number of the newest entry of the topics, and its id. */
export interface TopicsPosition {
  readonly count: number;
  readonly id: string;
}

export interface Speaker {
  readonly name: string;
  readonly connection: number;
}

const NOW = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * From now on only commands of this connection count: one of an earlier connection may lie unread at a server that stood still. `KEYS` the
 * consumer; `ARGV` prefix, consumer, number of the connection, leaseMs, and 1 if it is to be there, 0 if not yet: when that is wrong nothing
 * is done. The reply: whether it was there, the number of the last entry of the topics, and its id.
 */
const HELLO = redisScript(
  "presence-hello",
  `${NOW}
local P, me, connection = ARGV[1], ARGV[2], tonumber(ARGV[3])
local known = redis.call('GET', KEYS[1])
local found = known and '1' or '0'
if found == '1' and ARGV[5] == '1' and tonumber(known) >= connection then
  ${REPLACED}
end
if found == ARGV[5] then
  redis.call('SET', KEYS[1], connection)
  redis.call('ZADD', P .. 'consumers', now + ARGV[4], me)
end
local last = redis.call('XREVRANGE', P .. 'topics', '+', '-', 'COUNT', 1)[1]
return { tonumber(found), tonumber(redis.call('GET', P .. 'topics:count') or '0'), last and last[1] or '0-0' }`,
);

/**
 * `KEYS` the consumer; `ARGV` prefix, consumer, number of the connection, leaseMs, the last wake-up that was read. The reply: the number of
 * the last entry of the topics, and those who are dead. When no node has sent anything for long, or the time has jumped, it was the server
 * that was away: every node gets another lease.
 */
const BEAT = redisScript(
  "presence-beat",
  `${NOW}
local P, me, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[4])
${CURRENT}
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

/** `ARGV` prefix and a consumer: all its incarnations are dead, whatever they sent. Their names. */
const DECLARE_DEAD = redisScript(
  "presence-declare-dead",
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

export class ConsumerHeartbeat {
  readonly #o: RedisLink & ConsumerHeartbeatOptions;
  #incarnation = 1;
  #connection = 0;
  /** On our monotonic clock, counted from before Redis heard of it. */
  #oursUntil = 0;
  #recovering: Promise<void> | null = null;

  constructor(link: RedisLink, options: ConsumerHeartbeatOptions) {
    this.#o = { ...link, ...options };
  }

  get speaker(): Speaker {
    return { name: `${this.#o.origin}.${this.#incarnation}`, connection: this.#connection };
  }

  get oursUntil(): number {
    return this.#oursUntil;
  }

  /** For each new connection, before anything else is sent on it. Returns the position of the topics. */
  async hello(session: RedisCommands): Promise<TopicsPosition> {
    const known = this.#connection > 0;
    this.#connection += 1;
    const [found, count, id] = await this.#hello(session, known);
    if (known && found === 0) await this.#rename(session);
    // Another incarnation of that name died a moment ago: what it had is not ours.
    for (let taken = !known && found === 1; taken;) {
      this.#incarnation += 1;
      taken = (await this.#hello(session, false))[0] === 1;
    }
    return { count, id };
  }

  /** Also finds dead nodes, and gives back what they had. */
  async beat(): Promise<void> {
    const { session, key, clock, leaseMs, lastWake, onTopics } = this.#o;
    const { name, connection } = this.speaker;
    const sentAt = clock.monotonic();
    try {
      const [count, ...dead] = await session.run<[number, ...string[]]>(
        BEAT,
        [key("consumer", name)],
        [key(""), name, connection, leaseMs, lastWake()],
      );
      this.#oursUntil = sentAt + leaseMs;
      onTopics(count);
      if (dead.length > 0) this.#recovering ??= this.#recover(dead).finally(() => (this.#recovering = null));
    } catch (error) {
      if (!isStale(error)) throw error;
      // Another beat or step may have found out before us.
      if (this.speaker.name === name && this.speaker.connection === connection) await this.#rename(session);
    }
  }

  async declareDead(consumer: string): Promise<void> {
    const { session, key } = this.#o;
    await this.#recover(await session.run<string[]>(DECLARE_DEAD, [], [key(""), consumer]));
  }

  async leave(): Promise<void> {
    await this.#recovering;
    await this.#recoverOne(this.speaker.name);
  }

  end(): void {
    this.#incarnation += 1;
    this.#connection = 0;
  }

  async #hello(session: RedisCommands, known: boolean): Promise<[found: number, count: number, id: string]> {
    const { key, clock, leaseMs } = this.#o;
    const { name, connection } = this.speaker;
    const sentAt = clock.monotonic();
    const reply = await session.run<[number, number, string]>(
      HELLO,
      [key("consumer", name)],
      [key(""), name, connection, leaseMs, known ? "1" : "0"],
    );
    this.#oursUntil = sentAt + leaseMs;
    return reply;
  }

  async #rename(session: RedisCommands): Promise<void> {
    const { name } = this.speaker;
    this.#incarnation += 1;
    await this.#hello(session, false);
    const fields = { was: name, is: this.speaker.name };
    this.#o.log?.info(fields, "Redis has forgotten this consumer; it is known again");
    // Our own reader waits for wake-ups under the old name: this ends its wait, and then the stream expires.
    const stream = this.#o.key("wake", name);
    await Promise.all([
      session.send(["XADD", stream, "*", "consumer", "0"]),
      session.send(["PEXPIRE", stream, String(this.#o.leaseMs)]),
    ]);
    this.#o.onForgotten();
  }

  async #recover(names: readonly string[]): Promise<void> {
    for (const name of names) {
      try {
        await this.#recoverOne(name);
        this.#o.log?.info({ consumer: name }, "a consumer is dead; what it had is delivered again");
      } catch (err) {
        this.#o.log?.warn({ consumer: name, err }, "what a dead consumer had is not given back yet");
      }
    }
  }

  /** Some queues at a time. Others may do the same: each has a part of it. */
  async #recoverOne(name: string): Promise<void> {
    for (let left = 1; left > 0;) {
      left = await this.#o.session.run<number>(RETURN, [], [this.#o.key(""), name]);
    }
  }
}
