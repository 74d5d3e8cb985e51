/** Delivers received messages in order, even when some of them have to be read from the table `hint` first. */

import { read, type Statement } from "../../platform/drivers/postgres/postgres.ts";
import { uuids } from "../../platform/drivers/postgres/arrays.ts";
import type { Log } from "../../platform/log.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { Entry } from "./payload.ts";

export interface OrderedDeliveryOptions {
  readonly session: { query<Row>(statement: Statement, values?: readonly unknown[]): Promise<Row[]> };
  readonly log?: Pick<Log, "warn"> | undefined;
  /** Nothing is fetched or unpacked for nobody. */
  readonly wanted: (topic: string) => boolean;
  readonly deliver: (topic: string, messages: readonly EncodedMessage[]) => void;
  readonly onQueue: (queue: string) => void;
}

const FETCH = read("channels-hint-fetch", "SELECT id, body FROM baton.hint WHERE id = ANY ($1::uuid[])");

export class OrderedDelivery {
  readonly #o: OrderedDeliveryOptions;
  #waiting: (readonly Entry[])[] = [];
  #fetching = false;

  constructor(options: OrderedDeliveryOptions) {
    this.#o = options;
  }

  receive(entries: readonly Entry[]): void {
    const ids = this.#wantedIds(entries);
    if (!this.#fetching && ids.length === 0) return this.#pass(entries, new Map());
    this.#waiting.push(entries);
    if (!this.#fetching) void this.#work();
  }

  async #work(): Promise<void> {
    this.#fetching = true;
    while (this.#waiting.length > 0) {
      const batches = this.#waiting;
      this.#waiting = [];
      const bodies = await this.#fetch(batches.flatMap((entries) => this.#wantedIds(entries)));
      for (const entries of batches) this.#pass(entries, bodies);
    }
    this.#fetching = false;
  }

  async #fetch(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (ids.length === 0) return new Map();
    try {
      const rows = await this.#o.session.query<{ id: string; body: string }>(FETCH, [uuids(ids)]);
      if (rows.length < ids.length) {
        this.#o.log?.warn(
          { messages: ids.length - rows.length },
          "large messages were gone before they were read",
        );
      }
      return new Map(rows.map(({ id, body }) => [id, body]));
    } catch (err) {
      this.#o.log?.warn(
        { err, messages: ids.length },
        "large messages could not be read; they are lost here",
      );
      return new Map();
    }
  }

  #wantedIds(entries: readonly Entry[]): string[] {
    return entries.flatMap((entry) =>
      entry.kind === "stored" && this.#o.wanted(entry.topic) ? [entry.id] : [],
    );
  }

  #pass(entries: readonly Entry[], bodies: ReadonlyMap<string, string>): void {
    const { wanted, deliver, onQueue } = this.#o;
    for (const entry of entries) {
      if (entry.kind === "queue") onQueue(entry.queue);
      else if (!wanted(entry.topic)) continue;
      else if (entry.kind === "message") {
        deliver(entry.topic, [{ key: entry.key, text: JSON.stringify(entry.body) }]);
      } else {
        const stored = bodies.get(entry.id);
        if (stored !== undefined) deliver(entry.topic, [storedMessage(stored)]);
      }
    }
  }
}

/** The row holds the whole entry: `[topic, key, body]`. */
function storedMessage(text: string): EncodedMessage {
  const [, key, body] = JSON.parse(text) as [string, string, unknown];
  return { key, text: JSON.stringify(body) };
}
