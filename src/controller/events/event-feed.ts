/**
 * The events of a cluster, at every node. Events are raised to the leader, which numbers them and sends them to all
 * nodes. So the numbers are the same everywhere, and a reader can change nodes. While no node has a reader, nothing is
 * sent: an event then costs one check of a flag.
 *
 *   emit ──leading──> number ──> log ──> readers here
 *     |                 ^  '──told──> log of every other node ──> readers there
 *     '──else──raised───'
 *
 * Lossy by design: events that are lost leave a hole in the numbers, and readers are informed of a gap.
 */

import type { ServerEvent } from "../../platform/feed.ts";
import type { Subscription } from "../../channels/channels.ts";
import { split } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import { EventLog, type EventLogOptions, type EventName, type Happened } from "./event-log.ts";
import type { EventMessage, EventWire } from "./event-wire.ts";

export interface EventFeedOptions extends Omit<EventLogOptions, "leads" | "onReaders"> {
  /** Null for a node that is alone. */
  readonly wire: EventWire | null;
  /** The epoch of our own term; null while we do not lead. */
  readonly leads: () => number | null;
}

/** Whoever reads says so, and three times of four that may be lost. */
const REMIND_MS = 5_000;
/** How long a reader may take to find another node. Shorter, and what happened meanwhile is a gap; longer, and nobody is told for longer. */
const FORGET_MS = 30_000;
/** Each message of PostgreSQL takes a lock that all its databases share: twenty in a second are nothing, a thousand are not. */
const FLUSH_MS = 50;
/** Of one flush; 20,000 in a second. More are a gap. */
const UNSENT_MAX = 1_000;
/** Below the 8,000 bytes of a notification, with what stands around it. */
const MESSAGE_CHARS = 6_000;

/** Numbers in a row that were not sent yet. */
interface Unsent {
  readonly epoch: number;
  readonly first: number;
  readonly events: Happened[];
}

export class EventFeed extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "identity">;
  readonly #o: EventFeedOptions;
  readonly #log: EventLog;
  #on = false;
  #wanted = false;
  #wantedUntil = -Infinity;
  #readers = 0;
  #raised: Happened[] = [];
  #seq = 0;
  /** The last message of each life that raised events. */
  readonly #heard = new Map<string, number>();
  #unsent: Unsent[] = [];
  #sending = false;
  #flushedAt = -Infinity;
  #cancelFlush: (() => void) | null = null;
  #cancelCheck: (() => void) | null = null;
  #subscription: Subscription | null = null;

  constructor(platform: Pick<Platform, "clock" | "identity">, options: EventFeedOptions) {
    super();
    this.#platform = platform;
    this.#o = options;
    this.#log = new EventLog(platform, {
      ...options,
      leads: () => options.leads() !== null,
      onReaders: (readers) => this.#read(readers),
    });
  }

  get wanted(): boolean {
    return this.#wanted;
  }

  emit(event: EventName, data: Readonly<Record<string, unknown>>): void {
    if (!this.#wanted) return;
    const happened = { event, data: { ...data, ts: new Date(this.#platform.clock.now()).toISOString() } };
    const epoch = this.#o.leads();
    if (epoch !== null) this.#number(epoch, [happened]);
    else this.#raise(happened);
  }

  follow(since: string | null, signal: AbortSignal): AsyncIterable<ServerEvent> {
    return this.#log.follow(since, signal);
  }

  protected onStart(): void {
    this.#on = true;
    this.#subscription = this.#o.wire?.hear((message) => this.#hear(message)) ?? null;
    if (this.#readers > 0) this.#remind();
  }

  protected async onStop(): Promise<void> {
    this.#on = false;
    this.#cancelFlush?.();
    this.#cancelCheck?.();
    this.#cancelFlush = null;
    this.#wanted = false;
    await this.#subscription?.close();
  }

  // ---------------------------------------------------------------- who reads

  #read(readers: number): void {
    const isFirst = this.#readers === 0 && readers > 0;
    this.#readers = readers;
    this.#want();
    if (isFirst) this.#remind();
  }

  #remind(): void {
    if (!this.#on) return;
    this.#want();
    void this.#send([{ say: "wanted" }]);
    this.#tellPosition();
  }

  #want(): void {
    const { clock } = this.#platform;
    this.#wantedUntil = clock.monotonic() + FORGET_MS;
    if (this.#wanted || !this.#on) return;
    this.#wanted = true;
    this.#begin();
    this.#cancelCheck = clock.after(REMIND_MS, () => this.#check());
  }

  #check(): void {
    const { clock } = this.#platform;
    if (this.#readers > 0) this.#remind();
    this.#wanted = clock.monotonic() < this.#wantedUntil;
    if (this.#wanted) this.#cancelCheck = clock.after(REMIND_MS, () => this.#check());
  }

  /** What happened while nobody read is not known. */
  #begin(): void {
    const { last } = this.#log;
    const epoch = this.#o.leads();
    this.#seq = 0;
    this.#heard.clear();
    if (epoch === null || last === null) this.#log.forget();
    else this.#log.skipTo({ epoch, n: last.n + 1 });
  }

  // ---------------------------------------------------------------- numbers

  #number(epoch: number, happened: readonly Happened[], lost = false): void {
    const first = this.#next(epoch, lost);
    if (first === null) return;
    this.#log.append(epoch, first, happened);
    if (this.#o.wire === null) return;
    const unsent = this.#unsent.reduce((sum, { events }) => sum + events.length, happened.length);
    if (unsent > UNSENT_MAX) this.#unsent = []; // the next number tells
    const row = this.#unsent.at(-1);
    if (row?.epoch === epoch && row.first + row.events.length === first) row.events.push(...happened);
    else this.#unsent.push({ epoch, first, events: [...happened] });
    this.#flushSoon();
  }

  /** Null when somebody else has a newer term. With a new term, and where something was lost, a number is left out. */
  #next(epoch: number, lost: boolean): number | null {
    const { last } = this.#log;
    if (last === null) return 1;
    if (last.epoch > epoch) return null;
    return last.n + (lost || last.epoch !== epoch ? 2 : 1);
  }

  /** How far the numbers are, for those who keep them and for those who have missed the last ones. */
  #tellPosition(): void {
    const epoch = this.#o.leads();
    if (epoch === null || !this.#wanted || this.#unsent.length > 0) return;
    const first = this.#next(epoch, false);
    if (first !== null) void this.#send([{ say: "told", epoch, first, events: [] }]);
  }

  #raise(happened: Happened): void {
    if (this.#o.wire === null) return;
    if (this.#raised.length >= UNSENT_MAX) {
      this.#raised = [];
      this.#seq++; // a number that is never sent says that something was
    }
    this.#raised.push(happened);
    this.#flushSoon();
  }

  #hear(message: EventMessage): void {
    switch (message.say) {
      case "wanted":
        this.#want();
        return this.#tellPosition();
      case "told":
        return this.#log.append(message.epoch, message.first, message.events);
      case "raised": {
        const epoch = this.#o.leads();
        const before = this.#heard.get(message.from) ?? 0;
        this.#heard.set(message.from, message.seq);
        const lost = message.seq !== 1 && message.seq !== before + 1;
        return epoch === null ? undefined : this.#number(epoch, message.events, lost);
      }
    }
  }

  // ---------------------------------------------------------------- sending

  #flushSoon(): void {
    if (this.#cancelFlush !== null || this.#sending || !this.#on) return;
    const { clock } = this.#platform;
    const waitMs = Math.max(0, this.#flushedAt + FLUSH_MS - clock.monotonic());
    this.#cancelFlush = clock.after(waitMs, () => void this.#flush());
  }

  async #flush(): Promise<void> {
    const raised = pieces(this.#raised);
    const unsent = this.#unsent;
    this.#raised = [];
    this.#unsent = [];
    this.#cancelFlush = null;
    this.#flushedAt = this.#platform.clock.monotonic();
    const messages: EventMessage[] = raised.map((events) => {
      return { say: "raised", from: this.#platform.identity.incarnation, seq: ++this.#seq, events };
    });
    for (const { epoch, first, events: row } of unsent) {
      let at = first;
      for (const events of pieces(row)) {
        messages.push({ say: "told", epoch, first: at, events });
        at += events.length;
      }
    }
    this.#sending = true;
    await this.#send(messages);
    this.#sending = false;
    if (this.#raised.length + this.#unsent.length > 0) this.#flushSoon();
  }

  async #send(messages: readonly EventMessage[]): Promise<void> {
    if (!this.#on || messages.length === 0) return;
    try {
      await this.#o.wire?.send(messages);
    } catch {
      // The numbers tell those who hear again.
    }
  }
}

function pieces(events: readonly Happened[]): Happened[][] {
  return split(events, Infinity, (event) => JSON.stringify(event).length + 1, MESSAGE_CHARS);
}
