/**
 * The single blocking read of a node: topics, and wake-ups for all its consumers. Messages published during a lost connection are read
 * afterwards. If the stream no longer has them, or starts again (Redis was emptied), hints were lost, and `onGap` reports that.
 */

import { Pause } from "../../platform/loop.ts";
import type { RedisSession } from "../../platform/drivers/redis/session.ts";
import type { LocalTopics } from "../local-topics.ts";
import type { ConsumerHeartbeat, TopicsPosition } from "./consumer-heartbeat.ts";
import type { RedisLink } from "./link.ts";
import { messageOf, parseEntry, storedId, type TopicEntry } from "./payload.ts";

export interface ListenerOptions {
  /** Of its own: its reads block. */
  readonly session: RedisSession;
  readonly commandMs: number;
  readonly presence: Pick<ConsumerHeartbeat, "speaker">;
  readonly topics: LocalTopics;
  readonly wake: (consumer: number, queue: string) => void;
  readonly onGap: () => void;
}

type Streams = Readonly<Record<string, readonly [id: string, fields: readonly string[]][]>>;

/** An abort does not reach a blocked read, so it comes back now and then by itself; its deadline is this and a command's. */
const BLOCK_MS = 2_000;
const COUNT = 500;
/** Redis is there and refuses: it loads its data, or a script keeps it busy. */
const RETRY_MS = 100;
const FIRST_ID = "0-0";

export class Listener {
  readonly #o: RedisLink & ListenerOptions;
  readonly counters = { gaps: 0 };
  #topicsId = FIRST_ID;
  #number = 0;
  #wakeId = FIRST_ID;
  #wakeOf = "";
  /** How often a beat has found the stream behind what we have read of it. */
  #behind = 0;
  #over = true;
  #reading: Promise<void> = Promise.resolve();
  readonly #pause: Pause;

  constructor(link: RedisLink, options: ListenerOptions) {
    this.#o = { ...link, ...options };
    this.#pause = new Pause(link.clock);
  }

  get lastWake(): string {
    return this.#wakeId;
  }

  start(position: TopicsPosition): void {
    this.#number = position.count;
    this.#topicsId = position.id;
    this.#over = false;
    this.#reading = this.#read();
  }

  opened(): void {
    this.#pause.wake();
  }

  /** Its session ends before, or is ended now. */
  async stop(): Promise<void> {
    this.#over = true;
    this.#pause.wake();
    await this.#reading;
  }

  /**
   * The number of the newest entry. Ids are made of Redis' time: after a loss of its data and a step back of its clock, new entries would
   * stand before what we have read and never be seen.
   */
  topicsAreAt(count: number): void {
    this.#behind = count < this.#number ? this.#behind + 1 : 0;
    if (this.#behind < 2) return;
    this.#behind = 0;
    this.#topicsId = FIRST_ID;
    this.#number = 0;
    this.#gap();
  }

  async #read(): Promise<void> {
    const { session, commandMs, key, presence, log } = this.#o;
    while (!this.#over) {
      const { name } = presence.speaker;
      if (this.#wakeOf !== name) {
        this.#wakeOf = name;
        this.#wakeId = FIRST_ID;
      }
      const [topics, wakes] = [key("topics"), key("wake", this.#wakeOf)];
      const [topicsId, wakeId] = [this.#topicsId, this.#wakeId];
      const block = ["XREAD", "COUNT", String(COUNT), "BLOCK", String(BLOCK_MS)];
      const args = [...block, "STREAMS", topics, wakes, topicsId, wakeId];
      try {
        const streams = await session.send<Streams | null>(args, { deadlineMs: BLOCK_MS + commandMs });
        if (!streams) continue;
        this.#wake(streams[wakes] ?? []);
        // Set back meanwhile: what was read belongs to before.
        if (this.#topicsId === topicsId) await this.#hear(streams[topics] ?? []);
      } catch (err) {
        if (session.open) log?.warn({ err }, "topics cannot be read at the moment");
        // When the connection is there again; soon, when it has never gone.
        if (session.open) this.#pause.clear();
        if (!this.#over) await this.#pause.sleep(session.open ? RETRY_MS : Infinity);
      }
    }
  }

  #wake(entries: Streams[string]): void {
    for (const [id, fields] of entries) {
      this.#wakeId = id;
      this.#o.wake(Number(fields[1]), fields[3] ?? "");
    }
  }

  async #hear(entries: Streams[string]): Promise<void> {
    for (const [id, fields] of entries) {
      this.#topicsId = id;
      const entry = parseEntry(fields);
      if (!entry) continue;
      const missed = entry.number !== this.#number + 1;
      this.#number = entry.number;
      if (missed) this.#gap();
      if (entry.origin === this.#o.origin) continue;
      await this.#pass(entry);
    }
  }

  async #pass({ values }: TopicEntry): Promise<void> {
    const { topics } = this.#o;
    for (const { topic, value } of values) {
      if (!topics.hasSubscribers(topic)) continue;
      const id = storedId(value);
      const text = id === null ? value : await this.#fetch(id);
      if (text !== null) topics.deliver(topic, [messageOf(text)]);
    }
  }

  async #fetch(id: string): Promise<string | null> {
    const { session, key, log } = this.#o;
    try {
      const text = await session.send<string | null>(["GET", key("large", id)]);
      if (text === null) log?.warn({ id }, "a large message was gone before it was read");
      return text;
    } catch (err) {
      log?.warn({ id, err }, "a large message could not be read; it is lost here");
      return null;
    }
  }

  #gap(): void {
    this.counters.gaps += 1;
    this.#o.log?.info({ gaps: this.counters.gaps }, "hints were missed; the store has their content");
    this.#o.onGap();
  }
}
