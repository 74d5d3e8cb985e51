/**
 * Receives notifications on a dedicated connection, in order, even when some messages have to be read from the table `hint` first.
 *
 * A connection can be deaf without being broken: half open, or reassigned by a pooler. So at intervals a test payload is sent on the
 * *other* connection and expected here. If it does not arrive, another connection is opened, and `onGap` reports that notifications
 * may have been lost.
 */

import { uuids } from "../../platform/drivers/postgres/arrays.ts";
import { read, write, type Queryable } from "../../platform/drivers/postgres/postgres.ts";
import { PostgresSession, type PostgresSessionOptions } from "../../platform/drivers/postgres/session.ts";
import { Loop, Mutex, within } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { LocalTopics } from "../local-topics.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import { isPrivate } from "../channel-names.ts";
import { type Entry, parsePayload } from "./payload.ts";
import type { Publisher } from "./publisher.ts";

export interface ListenerOptions extends Pick<Platform, "clock"> {
  readonly session: Omit<PostgresSessionOptions, "onOpen" | "onLost" | "onNotification">;
  readonly log?: Pick<Platform["log"], "info" | "warn"> | undefined;
  readonly channel: string;
  /** Its name is a secret: it is stored where only Baton reads, and never the last statement that a session shows. */
  readonly privateChannel: string;
  readonly origin: string;
  readonly probeMs: number;
  readonly answerMs: number;
  /** On another connection. */
  readonly publisher: Pick<Publisher, "probe">;
  readonly sender: Queryable;
  readonly topics: Pick<LocalTopics, "hasSubscribers" | "deliver">;
  readonly onQueue: (queue: string) => void;
  readonly onGap: () => void;
}

const FETCH = read("channels-hint-fetch", "SELECT id, body FROM baton.hint WHERE id = ANY ($1::uuid[])");

export class Listener {
  readonly #o: ListenerOptions;
  readonly #session: PostgresSession;
  readonly counters = { gaps: 0, deaf: 0 };
  #listens = 0;
  #echo = 0;
  #onEcho: () => void = () => {};
  readonly #probes: Loop;
  readonly #turn = new Mutex();
  /** Payloads that wait for messages to be fetched. */
  #waiting = 0;

  constructor(options: ListenerOptions) {
    this.#o = options;
    this.#probes = new Loop(options.clock, async (signal) => {
      if (this.#session.open) await this.#probe(signal);
      return options.probeMs;
    });
    const { privateChannel, channel } = options;
    const listens = [privateChannel, channel].map((name) => write(`listen ${name}`, `LISTEN "${name}"`));
    this.#session = new PostgresSession({
      ...options.session,
      onOpen: async (session) => {
        for (const listen of listens) await session.query(listen);
        this.#listening();
      },
      onLost: (err) => options.log?.warn({ err }, "notifications are not heard at the moment"),
      onNotification: (from, payload) => this.#hear(payload, from === privateChannel),
    });
  }

  async start(): Promise<void> {
    this.#listens = 0;
    await this.#session.start();
    this.#probes.start(this.#o.probeMs);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#session.stop(), this.#probes.stop()]);
  }

  #listening(): void {
    this.#listens += 1;
    if (this.#listens === 1) return;
    const gaps = ++this.counters.gaps;
    this.#o.log?.info({ gaps }, "notifications are heard again; some may have been missed");
    this.#o.onGap();
  }

  #hear(text: string, privately: boolean): void {
    const payload = parsePayload(text);
    if (!payload) return;
    if (payload.origin === this.#o.origin) {
      this.#echo = Math.max(this.#echo, payload.number);
      this.#onEcho();
      return;
    }
    this.#receive(
      payload.entries().filter((entry) => entry.kind === "queue" || isPrivate(entry.topic) === privately),
    );
  }

  async #probe(signal: AbortSignal): Promise<void> {
    const { answerMs, publisher, log } = this.#o;
    const listens = this.#listens;
    // When the other connection fails, nothing is known of this one.
    const number = await publisher.probe().catch(() => null);
    if (number === null || (await this.#comesBack(number, signal))) return;
    if (signal.aborted || this.#listens !== listens) return;
    const fields = { waitedMs: answerMs, deaf: ++this.counters.deaf };
    log?.warn(fields, "the connection for notifications is deaf; opening another");
    this.#session.reset(`a notification of our own was not heard within ${answerMs} ms`);
  }

  /**
   * In two halves: after a standstill of this process a timer is due before the socket was read, and would blame the connection. The second
   * half begins when we run again.
   */
  async #comesBack(number: number, signal: AbortSignal): Promise<boolean> {
    const { clock, answerMs } = this.#o;
    const back = Promise.withResolvers<true>();
    this.#onEcho = () => {
      if (this.#echo >= number) back.resolve(true);
    };
    this.#onEcho();
    let heard: true | undefined;
    for (let half = 0; half < 2 && !heard; half++)
      heard = await within(clock, answerMs / 2, back.promise, signal);
    this.#onEcho = () => {};
    return heard === true;
  }

  #receive(entries: readonly Entry[]): void {
    const ids = entries.flatMap((entry) =>
      entry.kind === "stored" && this.#o.topics.hasSubscribers(entry.topic) ? [entry.id] : [],
    );
    if (this.#waiting === 0 && ids.length === 0) return this.#pass(entries, new Map());
    this.#waiting++;
    void this.#turn.run(async () => {
      const bodies = await this.#fetch(ids);
      this.#waiting--;
      this.#pass(entries, bodies);
    });
  }

  async #fetch(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (ids.length === 0) return new Map();
    try {
      const rows = await this.#o.sender.query<{ id: string; body: string }>(FETCH, [uuids(ids)]);
      const gone = { messages: ids.length - rows.length };
      if (gone.messages > 0) this.#o.log?.warn(gone, "large messages were gone before they were read");
      return new Map(rows.map(({ id, body }) => [id, body]));
    } catch (err) {
      const fields = { err, messages: ids.length };
      this.#o.log?.warn(fields, "large messages could not be read; they are lost here");
      return new Map();
    }
  }

  #pass(entries: readonly Entry[], bodies: ReadonlyMap<string, string>): void {
    const { topics, onQueue } = this.#o;
    for (const entry of entries) {
      if (entry.kind === "queue") onQueue(entry.queue);
      else if (!topics.hasSubscribers(entry.topic)) continue;
      else if (entry.kind === "message") {
        topics.deliver(entry.topic, [{ key: entry.key, text: JSON.stringify(entry.body) }]);
      } else {
        const stored = bodies.get(entry.id);
        if (stored !== undefined) topics.deliver(entry.topic, [storedMessage(stored)]);
      }
    }
  }
}

/** The row holds the whole entry: `[topic, key, body]`. */
function storedMessage(text: string): EncodedMessage {
  const [, key, body] = JSON.parse(text) as [string, string, unknown];
  return { key, text: JSON.stringify(body) };
}
