/** Sends hints: at once when idle, in batches when busy. Messages published during a send go out with the next entry. */

import { Batcher } from "../../platform/batcher.ts";
import { redisScript } from "../../platform/drivers/redis/connection.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { RedisLink } from "./link.ts";
import { messageValue, pack, storedValue, type TopicValue, VALUE_LENGTH_MAX } from "./payload.ts";

interface Outgoing {
  readonly topic: string;
  readonly messages: readonly EncodedMessage[];
}

/** `KEYS` the topics and their count; `ARGV` how many entries are kept, who publishes, and the fields of the entry. */
const PUBLISH = redisScript(
  "topics-publish",
  `local number = redis.call('INCR', KEYS[2])
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'number', number, 'origin', ARGV[2], unpack(ARGV, 3))
return number`,
);

/** Readers fetch a large message when they hear of it. One that is slower than this has lost it. */
const LARGE_KEPT_MS = 60_000;

export class Publisher {
  readonly #link: RedisLink;
  readonly #entriesMax: number;
  readonly #outbox: Batcher<Outgoing, void>;

  /** Readers that are more than `entriesMax` behind have a gap. */
  constructor(link: RedisLink, entriesMax: number) {
    this.#link = link;
    this.#entriesMax = entriesMax;
    this.#outbox = new Batcher({
      clock: link.clock,
      flush: (batch) => this.#flush(batch),
      batchMax: 10_000,
    });
  }

  async publish(topic: string, messages: readonly EncodedMessage[]): Promise<void> {
    await this.#outbox.add({ topic, messages });
  }

  idle(): Promise<void> {
    return this.#outbox.idle();
  }

  async #flush(batch: readonly Outgoing[]): Promise<void> {
    const { session, key, origin } = this.#link;
    const sent: Promise<unknown>[] = [];
    const values: TopicValue[] = [];
    for (const { topic, messages } of batch) {
      for (const message of messages) {
        const value = messageValue(message);
        values.push({ topic, value: value.length <= VALUE_LENGTH_MAX ? value : this.#store(value, sent) });
      }
    }
    const entries = pack(values);
    const keys = [key("topics"), key("topics", "count")];
    for (const fields of entries)
      sent.push(session.run(PUBLISH, keys, [this.#entriesMax, origin, ...fields]));
    // All of them settle before the next flush: the order of publishing is that of the commands.
    for (const outcome of await Promise.allSettled(sent)) {
      if (outcome.status === "rejected") throw outcome.reason;
    }
  }

  #store(value: string, sent: Promise<unknown>[]): string {
    const { session, key, random } = this.#link;
    const id = random.uuid();
    sent.push(session.send(["SET", key("large", id), value, "PX", String(LARGE_KEPT_MS)]));
    return storedValue(id);
  }
}
