/**
 * One consumer of one queue, on every backend: it takes a batch, calls the handler, records its end, and waits to be woken or to poll.
 *
 *     waits ---take---> handler runs (renew) ---done---> the next batch, or waits
 *                           | rejected
 *                           '---back, with a growing delay---> delivered again, here or elsewhere
 *
 * A batch whose end cannot be recorded is delivered again when its lease has expired; the backend (`QueueSource`) knows when.
 */

import type { Clock } from "../platform/clock.ts";
import { Pause } from "../platform/loop.ts";
import type { Log } from "../platform/log.ts";
import type { Delivery } from "./channels.ts";
import type { EncodedMessage } from "./message-encoding.ts";

export interface TakenMessage extends EncodedMessage {
  readonly deliveries: number;
}

export interface Taken {
  readonly messages: readonly TakenMessage[];
}

export interface QueueSource<Batch extends Taken = Taken> {
  take(): Promise<Batch | null>;
  /** Handled. A backend that takes the next batch in the same command returns it if `next`; undefined: call `take` next. */
  done(batch: Batch, next: boolean): Promise<Batch | null | undefined>;
  /** Delivered again after `restMs`. Messages that no handler has seen do not count as delivered. */
  back(batch: Batch, restMs: number, seen: boolean): Promise<void>;
  /** Called every `renewMs` while the handler runs. False: the batch is not ours any more. */
  renew(batch: Batch): Promise<boolean>;
  /** Null where a batch needs no renewal. */
  readonly renewMs: number | null;
  /** On our monotonic clock: until then no other consumer gets the batch. */
  oursUntil(batch: Batch): number;
}

export interface QueueConsumerOptions {
  readonly queue: string;
  readonly handler: (batch: readonly Delivery[]) => Promise<void>;
  readonly source: QueueSource;
  readonly clock: Clock;
  readonly log?: Pick<Log, "warn"> | undefined;
  /** How long it waits before it polls; null: until it is woken. */
  readonly pollMs: () => number | null;
  /** Messages were given back, and may be delivered again after `restMs`. */
  readonly onBack: (restMs: number) => void;
}

/** The backend is away: how often the end of a batch is tried again while the batch is still ours. */
const SETTLE_RETRY_MS = 100;
/** More than a notification takes. Otherwise a consumer that gives a batch back at once would have it again before any other is woken. */
const YIELD_MS = 10;
/** A batch that no consumer can handle must not keep the processor busy: its pauses double from here. */
const REDELIVERY_MS = 10;
const REDELIVERY_MS_MAX = 5_000;

export class QueueConsumer {
  readonly #o: QueueConsumerOptions;
  readonly #running: Promise<void>;
  readonly #closing = new AbortController();
  readonly #pause: Pause;
  #resting = false;
  #unreadable = false;

  constructor(options: QueueConsumerOptions) {
    this.#o = options;
    this.#pause = new Pause(options.clock);
    this.#running = this.#run();
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  get idle(): boolean {
    return this.#resting;
  }

  wake(): void {
    this.#pause.wake();
  }

  /** Resolves when the handler has ended, and what was taken and not handled was given back. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    // Handlers start in a separate turn of the event loop, never inside `consume`.
    await this.#o.clock.turn();
    let batch: Taken | null = this.#closed ? null : await this.#take();
    while (!this.#closed) {
      if (batch) {
        batch = await this.#handle(batch);
        continue;
      }
      this.#resting = true;
      await this.#pause.sleep(this.#o.pollMs() ?? Infinity, this.#closing.signal);
      this.#resting = false;
      if (!this.#closed) batch = await this.#take();
    }
    if (batch) await this.#giveBack(batch, 0, false);
  }

  async #take(): Promise<Taken | null> {
    const { source, queue, log } = this.#o;
    this.#pause.clear();
    try {
      const taken = await source.take();
      this.#unreadable = false;
      return taken;
    } catch (err) {
      if (!this.#unreadable && !this.#closed)
        log?.warn({ queue, err }, "a queue cannot be read at the moment");
      this.#unreadable = true;
      return null;
    }
  }

  async #handle(batch: Taken): Promise<Taken | null> {
    const { handler, queue, log, source, clock } = this.#o;
    const { messages } = batch;
    const over = new AbortController();
    const renewing = source.renewMs === null ? null : this.#renew(batch, source.renewMs, over.signal);
    let next: Taken | null | undefined;
    let failed = false;
    try {
      await handler(
        messages.map(({ key, text, deliveries }) => ({ key, body: JSON.parse(text) as unknown, deliveries })),
      );
    } catch (err) {
      failed = true;
      log?.warn({ queue, messages: messages.length, err }, "a batch failed; it is delivered again");
    }
    over.abort();
    await renewing;
    if (failed) {
      const restMs = redeliveryDelayMs(Math.max(...messages.map(({ deliveries }) => deliveries)));
      await this.#giveBack(batch, restMs, true);
      if (restMs === 0) await clock.sleep(YIELD_MS, this.#closing.signal);
    } else {
      next = await this.#settle(batch, () => {
        this.#pause.clear();
        return source.done(batch, !this.#closed);
      });
    }
    return next !== undefined || this.#closed ? (next ?? null) : this.#take();
  }

  async #giveBack(batch: Taken, restMs: number, seen: boolean): Promise<void> {
    await this.#settle(batch, () => this.#o.source.back(batch, restMs, seen));
    this.#o.onBack(restMs);
  }

  async #renew(batch: Taken, renewMs: number, signal: AbortSignal): Promise<void> {
    const { clock, source, queue, log } = this.#o;
    for (;;) {
      await clock.sleep(renewMs, signal);
      if (signal.aborted) return;
      // After an error the next renewal, or the end, tries again.
      const ours = await source.renew(batch).catch(() => true);
      if (ours) continue;
      log?.warn({ queue }, "a batch was not renewed in time; messages of it went to another consumer");
      return;
    }
  }

  /** Tries for as long as the batch is ours. After that it is delivered again, and undefined is returned. */
  async #settle<Result>(batch: Taken, work: () => Promise<Result>): Promise<Result | undefined> {
    const { clock, queue, log, source } = this.#o;
    for (;;) {
      try {
        return await work();
      } catch (err) {
        if (this.#closed || clock.monotonic() >= source.oursUntil(batch)) {
          const fields = { queue, messages: batch.messages.length, err };
          log?.warn(fields, "the end of a batch could not be recorded; it is delivered again");
          return undefined;
        }
        await clock.sleep(SETTLE_RETRY_MS, this.#closing.signal);
      }
    }
  }
}

/** The first redelivery is at once, because another consumer may do better. */
function redeliveryDelayMs(deliveries: number): number {
  return deliveries <= 1 ? 0 : Math.min(REDELIVERY_MS * 2 ** (deliveries - 2), REDELIVERY_MS_MAX);
}
