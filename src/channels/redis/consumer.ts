/**
 * One consumer of one queue in Redis. It works while there are messages, and then costs nothing until it is woken: no
 * timer, no pending command. A node may have one consumer for every job that it owns.
 */

import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { Delivery } from "../channels.ts";
import { redeliveryDelayMs } from "../redelivery-rules.ts";
import type { QueueMessages, QueueConsumer, Taken } from "./queue-messages.ts";

export interface ConsumerOptions {
  readonly seat: QueueConsumer;
  readonly handler: (batch: readonly Delivery[]) => Promise<void>;
  readonly batchMax: number;
  readonly messages: QueueMessages;
  readonly clock: Clock;
  readonly log?: Pick<Log, "warn"> | undefined;
  /** On our monotonic clock: until then nobody takes us for dead. */
  readonly oursUntil: () => number;
  /** What was given back may be delivered again in so many ms. */
  readonly onRest: (restMs: number) => void;
  /** Redis has other thoughts about what we had in hand. */
  readonly onLost: () => void;
}

/** Redis is away: how often the end of a batch is tried again while the batch is still ours. */
const SETTLE_RETRY_MS = 100;
/**
 * More than a wake-up takes. Being nearest to what we gave back at once, we would have it again before anybody else has heard of
 * it.
 */
const YIELD_MS = 10;

export class Consumer {
  readonly #o: ConsumerOptions;
  #working: Promise<void> | null = null;
  #woken = false;
  #closed = false;
  #unreadable = false;
  /** Cuts a pause short. */
  #resume: () => void = () => {};

  constructor(options: ConsumerOptions) {
    this.#o = options;
    this.wake();
  }

  get idle(): boolean {
    return this.#working === null;
  }

  wake(): void {
    this.#woken = true;
    if (!this.#closed) this.#working ??= this.#work();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#resume();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { messages } = this.#o;
    for (let taken = await this.#take(); taken;) {
      if (this.#closed) {
        const unseen = taken;
        await this.#settle(unseen, () => messages.back(unseen, 0, false));
        break;
      }
      const handled: Taken = taken;
      const failed = await this.#handle(handled);
      if (failed) {
        const restMs = redeliveryDelayMs(Math.max(...handled.messages.map(({ deliveries }) => deliveries)));
        await this.#settle(handled, () => messages.back(handled, restMs, true));
        if (restMs === 0) await this.#pause(YIELD_MS);
        else this.#o.onRest(restMs);
        taken = await this.#take();
      } else {
        // Sent together: the end of one batch and the wish for the next are one command.
        const closed = this.#closed;
        const settled = this.#settle(handled, () => messages.done(handled, !closed));
        [taken] = await Promise.all([closed ? null : this.#take(), settled]);
      }
    }
    this.#working = null;
    if (this.#woken) this.wake();
  }

  async #take(): Promise<Taken | null> {
    const { messages, seat, batchMax, log } = this.#o;
    while (!this.#closed) {
      this.#woken = false;
      try {
        const taken = await messages.take(seat, batchMax);
        this.#unreadable = false;
        if (taken || !this.#woken) return taken;
      } catch (err) {
        if (!this.#unreadable && !this.#closed) {
          log?.warn({ queue: seat.queue, err }, "a queue cannot be read at the moment");
        }
        this.#unreadable = true;
        return null; // woken when Redis is there again
      }
    }
    return null;
  }

  /** Whether it failed. */
  async #handle(taken: Taken): Promise<boolean> {
    const { handler, seat, log } = this.#o;
    try {
      await handler(
        taken.messages.map(({ keyText, text, deliveries }) => ({
          key: JSON.parse(keyText) as string,
          body: JSON.parse(text) as unknown,
          deliveries,
        })),
      );
      return false;
    } catch (err) {
      log?.warn(
        { queue: seat.queue, messages: taken.messages.length, err },
        "a batch failed; it is delivered again",
      );
      return true;
    }
  }

  /** Tries for as long as the batch is ours; after that it is delivered again, whatever we say. */
  async #settle(taken: Taken, work: () => Promise<number>): Promise<void> {
    const { clock, seat, log, oursUntil, messages, onLost } = this.#o;
    for (let attempt = 1; ; attempt++) {
      try {
        const lost = await work();
        // A second attempt finds nothing when the first one was done and only its answer was lost.
        if (lost === 0 || attempt > 1) return;
        log?.warn(
          { queue: seat.queue, messages: lost },
          "a batch took too long without a sign of life; messages of it went to another",
        );
        return onLost();
      } catch (err) {
        if (this.#closed || clock.monotonic() >= oursUntil()) {
          messages.forget(taken);
          log?.warn(
            { queue: seat.queue, messages: taken.messages.length, err },
            "the end of a batch could not be told; it is delivered again",
          );
          return;
        }
        await this.#pause(SETTLE_RETRY_MS);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    if (this.#closed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const callOff = this.#o.clock.after(ms, resolve);
    this.#resume = resolve;
    await promise;
    this.#resume = () => {};
    callOff();
  }
}
