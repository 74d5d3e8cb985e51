/**
 * One consumer of one queue in PostgreSQL. It takes a batch, calls the handler, records the end of the batch in the
 * table, and sleeps until it is woken or the next poll is due. It holds the batch under a lease and renews it while the
 * handler runs; a batch whose lease has expired is delivered again.
 */

import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { Random } from "../../platform/random.ts";
import type { Delivery } from "../channels.ts";
import { redeliveryDelayMs } from "../redelivery-rules.ts";
import type { QueueMessages, Taken } from "./queue-messages.ts";

export interface ConsumerOptions {
  readonly queue: string;
  readonly handler: (batch: readonly Delivery[]) => Promise<void>;
  readonly batchMax: number;
  readonly messages: QueueMessages;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Pick<Log, "warn"> | undefined;
  /** How often it looks when it hears nothing. */
  readonly pollMs: number;
  /** How long a batch is ours without a sign of life; renewed while its handler runs. */
  readonly leaseMs: number;
  /** Something is left for whoever is free, now or in so many ms. */
  readonly onLeft: (delayMs: number) => void;
  /** A whole batch was taken, so there may be more. */
  readonly onMore: () => void;
}

/** The database is away: how often the end of a batch is tried again while the batch is still ours. */
const SETTLE_RETRY_MS = 100;
/**
 * More than a notification takes. Being nearest to what we gave back at once, we would have it again before anybody else
 * has heard of it.
 */
const YIELD_MS = 10;
/** Two renewals may be late before the batch goes to another. */
const RENEWALS = 3;

export class Consumer {
  readonly #o: ConsumerOptions;
  readonly #running: Promise<void>;
  readonly #closing = new AbortController();
  #woken = false;
  #resting = new AbortController();
  #unreadable = false;
  #after: string | null = null;
  /** On our monotonic clock, counted from before the database heard of it. */
  #oursUntil = 0;

  constructor(options: ConsumerOptions) {
    this.#o = options;
    this.#running = this.#run();
  }

  wake(): void {
    this.#woken = true;
    this.#resting.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#resting.abort();
    await this.#running;
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #run(): Promise<void> {
    // Handlers start on a turn of their own, never inside `consume`.
    await new Promise<void>((resolve) => setImmediate(resolve));
    let handled = false;
    while (!this.#closed) {
      this.#woken = false;
      const sentAt = this.#o.clock.monotonic();
      const taken = await this.#take();
      if (!taken) await this.#rest();
      else if (this.#closed) await this.#giveBack(taken, 0, false);
      else {
        this.#oursUntil = sentAt + this.#o.leaseMs;
        await this.#handle(taken);
        handled = true;
      }
    }
    // What comes behind in the same lanes was passed over by the others.
    if (handled) this.#o.onLeft(0);
  }

  async #take(): Promise<Taken | null> {
    const { messages, queue, batchMax, leaseMs, log, onMore } = this.#o;
    try {
      let taken = await messages.take(queue, this.#after, batchMax, leaseMs);
      if (taken.messages.length === 0 && this.#after !== null) {
        taken = await messages.take(queue, null, batchMax, leaseMs);
      }
      this.#unreadable = false;
      this.#after = taken.last;
      if (taken.last !== null) onMore();
      return taken.messages.length > 0 ? taken : null;
    } catch (err) {
      if (!this.#unreadable && !this.#closed)
        log?.warn({ queue, err }, "a queue cannot be read at the moment");
      this.#unreadable = true;
      return null;
    }
  }

  async #rest(): Promise<void> {
    const { clock, random, pollMs } = this.#o;
    if (this.#woken || this.#closed) return;
    this.#resting = new AbortController();
    // Spread, so that the consumers of many nodes do not look all at the same moment.
    await clock.sleep(pollMs * (0.75 + random.chance() / 2), this.#resting.signal);
  }

  async #handle(taken: Taken): Promise<void> {
    const { handler, queue, log } = this.#o;
    const over = new AbortController();
    const renewing = this.#keep(taken, over.signal);
    let failed = false;
    try {
      await handler(
        taken.messages.map(({ key, text, deliveries }) => ({
          key,
          body: JSON.parse(text) as unknown,
          deliveries,
        })),
      );
    } catch (err) {
      failed = true;
      log?.warn({ queue, messages: taken.messages.length, err }, "a batch failed; it is delivered again");
    }
    over.abort();
    await renewing;
    if (failed) {
      const restMs = redeliveryDelayMs(Math.max(...taken.messages.map(({ deliveries }) => deliveries)));
      await this.#giveBack(taken, restMs, true);
      if (restMs === 0) await this.#o.clock.sleep(YIELD_MS, this.#closing.signal);
    } else await this.#settle(taken, () => this.#o.messages.done(taken));
  }

  async #giveBack(taken: Taken, restMs: number, seen: boolean): Promise<void> {
    await this.#settle(taken, () => this.#o.messages.back(taken, restMs, seen));
    this.#o.onLeft(restMs);
  }

  /** Renews the batch while its handler runs. */
  async #keep(taken: Taken, signal: AbortSignal): Promise<void> {
    const { clock, messages, leaseMs, queue, log } = this.#o;
    for (;;) {
      await clock.sleep(leaseMs / RENEWALS, signal);
      if (signal.aborted) return;
      const sentAt = clock.monotonic();
      try {
        const left = await messages.renew(taken, leaseMs);
        this.#oursUntil = sentAt + leaseMs;
        if (left === taken.messages.length) continue;
        log?.warn(
          { queue, messages: taken.messages.length - left },
          "a batch took too long without a sign of life; messages of it went to another",
        );
        return;
      } catch {
        // The next renewal, or the end, tries again.
      }
    }
  }

  /** Tries for as long as the batch is ours; after that it is delivered again, whatever we say. */
  async #settle(taken: Taken, work: () => Promise<void>): Promise<void> {
    const { clock, queue, log } = this.#o;
    for (;;) {
      try {
        return await work();
      } catch (err) {
        if (this.#closed || clock.monotonic() >= this.#oursUntil) {
          log?.warn(
            { queue, messages: taken.messages.length, err },
            "the end of a batch could not be told; it is delivered again",
          );
          return;
        }
        await clock.sleep(SETTLE_RETRY_MS, this.#closing.signal);
      }
    }
  }
}
