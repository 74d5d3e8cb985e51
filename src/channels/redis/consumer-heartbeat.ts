/**
 * The heartbeat of this node's consumers: one message to Redis for all queues and batches, however many there are. A
 * consumer without a heartbeat for a lease is dead, and the next heartbeat of any other consumer returns its messages.
 *
 * A consumer is identified by a name and the number of its connection. After a broken connection the next one has the
 * next number, and commands of the old one that Redis has not read yet are refused. If Redis no longer knows this
 * consumer (it was emptied, or others declared us dead), it continues under a new name: the recovery of the old name
 * may still be in progress.
 */

import type { Clock } from "../../platform/clock.ts";
import type { RedisCommands } from "../../platform/drivers/redis/session.ts";
import type { Log } from "../../platform/log.ts";
import type { Speaker } from "./queue-messages.ts";
import { BEAT, CONDEMN, HELLO } from "./consumer-heartbeat-scripts.ts";
import { isStale } from "./queue-keys.ts";
import { RETURN } from "./queue-scripts.ts";

export interface ConsumerHeartbeatOptions {
  readonly session: RedisCommands;
  readonly key: (...parts: readonly string[]) => string;
  readonly clock: Clock;
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
  /** Of this node alone, in this life alone. */
  readonly consumer: string;
  readonly leaseMs: number;
  /** The last wake-up that was read: those before it can go. */
  readonly lastWake: () => string;
  /** Where the topics are. */
  readonly onTopics: (count: number) => void;
  /** Redis has forgotten us, and knows us by a new name now. */
  readonly onForgotten: () => void;
}

export interface TopicsPosition {
  readonly count: number;
  readonly id: string;
}

export class ConsumerHeartbeat {
  readonly #o: ConsumerHeartbeatOptions;
  #life = 1;
  #connection = 0;
  /** On our monotonic clock, counted from before Redis heard of it. */
  #oursUntil = 0;
  #recovering: Promise<void> | null = null;

  constructor(options: ConsumerHeartbeatOptions) {
    this.#o = options;
  }

  get speaker(): Speaker {
    return { name: `${this.#o.consumer}.${this.#life}`, connection: this.#connection };
  }

  get oursUntil(): number {
    return this.#oursUntil;
  }

  /** For each new connection, before anything else is said on it. The first one tells where the topics are. */
  async hello(session: RedisCommands): Promise<TopicsPosition> {
    const known = this.#connection > 0;
    this.#connection += 1;
    const [found, count, id] = await this.#hello(session, known);
    if (known && found === 0) await this.#rename(session);
    // Somebody of that name died a moment ago: what it had is not ours.
    for (let taken = !known && found === 1; taken;) {
      this.#life += 1;
      taken = (await this.#hello(session, false))[0] === 1;
    }
    return { count, id };
  }

  /** Also finds out who is dead, and buries them. */
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

  /** Whoever is known to be dead is not waited for. */
  async condemn(consumer: string): Promise<void> {
    const { session, key } = this.#o;
    await this.#recover(await session.run<string[]>(CONDEMN, [], [key(""), consumer]));
  }

  /** Leaves no trace. */
  async goodbye(): Promise<void> {
    await this.#recovering;
    await this.#recoverOne(this.speaker.name);
  }

  /** A later start is another life. */
  end(): void {
    this.#life += 1;
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
    this.#life += 1;
    await this.#hello(session, false);
    this.#o.log?.info(
      { was: name, is: this.speaker.name },
      "Redis has forgotten this consumer; it is known again",
    );
    // Our own reader waits for wake-ups under the old name: it looks up, and nobody needs that stream again.
    const stream = this.#o.key("wake", name);
    await session.send(["XADD", stream, "*", "consumer", "0"]);
    await session.send(["PEXPIRE", stream, String(this.#o.leaseMs)]);
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
      left = await this.#o.session.run<number>(RETURN, [], [this.#o.key(""), name, 0]);
    }
  }
}
