/**
 * Sends hints, at once when idle: many messages in one payload and many payloads in one statement when busy.
 *
 * A NOTIFY takes a lock that all databases of the server share, and holds it through its commit. So its transaction contains nothing else,
 * and the session commits asynchronously: a hint need not survive a crash, and no sender waits for a disk.
 */

import { Batcher } from "../../platform/batcher.ts";
import { write, type Queryable } from "../../platform/drivers/postgres/postgres.ts";
import { texts, uuids } from "../../platform/drivers/postgres/arrays.ts";
import type { Platform } from "../../platform/platform.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import { fits, messageEntry, pack, queueEntry, storedEntry } from "./payload.ts";

export interface PublisherOptions extends Pick<Platform, "clock" | "random"> {
  readonly session: Queryable;
  readonly channel: string;
  readonly origin: string;
}

interface Large {
  readonly id: string;
  readonly text: string;
}

interface Outgoing {
  readonly entries: readonly string[];
  readonly large: readonly Large[];
  /** Said once for all that is sent together. */
  readonly announcement: boolean;
}

const NOTIFY = write("channels-notify", "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload");
const KEEP = write(
  "channels-hint-keep",
  `INSERT INTO baton.hint (id, at, body)
   SELECT id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, body FROM unnest($1::uuid[], $2::text[]) AS t (id, body)`,
);
const FORGET = write(
  "channels-hint-forget",
  "DELETE FROM baton.hint WHERE at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1::bigint",
);

/** Readers fetch a large message when they hear of it. One that is slower than this has lost it. */
export const LARGE_KEPT_MS = 60_000;

export class Publisher {
  readonly #o: PublisherOptions;
  readonly #outbox: Batcher<Outgoing, void>;
  #number = 0;
  readonly counters = { notifies: 0, payloads: 0, large: 0 };

  constructor(options: PublisherOptions) {
    this.#o = options;
    this.#outbox = new Batcher({
      clock: options.clock,
      flush: (batch) => this.#flush(batch),
      batchMax: 10_000,
    });
  }

  publish(topic: string, messages: readonly EncodedMessage[]): Promise<void> {
    const entries: string[] = [];
    const large: Large[] = [];
    for (const { key, text } of messages) {
      const entry = messageEntry(topic, key, text);
      if (fits(entry)) entries.push(entry);
      else {
        const id = this.#o.random.timedUuid();
        large.push({ id, text: entry });
        entries.push(storedEntry(topic, id));
      }
    }
    this.counters.large += large.length;
    return this.#outbox.add({ entries, large, announcement: false });
  }

  announce(queue: string): Promise<void> {
    return this.#outbox.add({ entries: [queueEntry(queue)], large: [], announcement: true });
  }

  /** Sends an empty payload and returns its number. A payload of ours with this number or a later one proves that the listener works. */
  async probe(): Promise<number> {
    await this.#outbox.add({ entries: [], large: [], announcement: false });
    return this.#number;
  }

  idle(): Promise<void> {
    return this.#outbox.idle();
  }

  /** Large messages of those who have gone. */
  async forgetOld(): Promise<void> {
    await this.#o.session.query(FORGET, [LARGE_KEPT_MS]);
  }

  async #flush(batch: readonly Outgoing[]): Promise<void> {
    const { session, channel, origin } = this.#o;
    const large = batch.flatMap((outgoing) => outgoing.large);
    if (large.length > 0) {
      await session.query(KEEP, [uuids(large.map(({ id }) => id)), texts(large.map(({ text }) => text))]);
      await this.forgetOld();
    }
    const payloads = pack(inOrder(batch), origin, () => ++this.#number);
    await session.query(NOTIFY, [channel, texts(payloads)]);
    this.counters.notifies += 1;
    this.counters.payloads += payloads.length;
  }
}

function inOrder(batch: readonly Outgoing[]): string[] {
  const announced = new Set<string>();
  return batch.flatMap(({ entries, announcement }) => {
    if (!announcement) return entries;
    return entries.filter((entry) => !announced.has(entry) && announced.add(entry));
  });
}
