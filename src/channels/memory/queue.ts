/**
 * One queue in memory. Messages with the same key form a lane. A lane is with one consumer at a time, which preserves
 * the order of its messages.
 *
 *     lanes:   ready ---taken---> busy ---handled, more left---> ready (behind the others)
 *                                   \---handler failed---> messages back at the front of their lanes
 */

import type { Clock } from "../../platform/clock.ts";
import type { Delivery, Subscription } from "../channels.ts";
import { Fifo } from "../fifo.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import { redeliveryDelayMs } from "../redelivery-rules.ts";

interface Entry extends EncodedMessage {
  deliveries: number;
}

interface Lane {
  readonly key: string;
  readonly entries: Fifo<Entry>;
  /** With a consumer. */
  busy: boolean;
  /** In the list of those to be taken. */
  listed: boolean;
}

interface Consumer {
  readonly handler: (batch: readonly Delivery[]) => Promise<void>;
  readonly batchMax: number;
  /** The batch under way. */
  running: Promise<void> | null;
  closed: boolean;
}

export interface MemoryQueueOptions {
  readonly clock: Clock;
  /** Told of every batch that failed. */
  readonly failed: (error: unknown, messages: number) => void;
}

export class MemoryQueue {
  readonly #options: MemoryQueueOptions;
  readonly #lanes = new Map<string, Lane>();
  /** Taken from the front; a Set keeps the order and lets go of what was taken at no cost. */
  readonly #ready = new Set<Lane>();
  /** In the order in which they are served next. */
  readonly #consumers = new Set<Consumer>();
  /** Failed batches that wait for their redelivery, with what ends the wait. */
  readonly #resting = new Map<() => void, () => void>();
  #scheduled = false;

  constructor(options: MemoryQueueOptions) {
    this.#options = options;
  }

  push(messages: readonly EncodedMessage[]): void {
    for (const { key, text } of messages) {
      const lane = this.#lane(key);
      lane.entries.push({ key, text, deliveries: 0 });
      this.#list(lane);
    }
    this.#schedule();
  }

  consume(handler: Consumer["handler"], batchMax: number): Subscription {
    const consumer: Consumer = { handler, batchMax, running: null, closed: false };
    this.#consumers.add(consumer);
    this.#schedule();
    return {
      close: async () => {
        consumer.closed = true;
        this.#consumers.delete(consumer);
        await consumer.running;
      },
    };
  }

  /** What waits for its redelivery waits no longer. */
  wake(): void {
    for (const [back, cancel] of this.#resting) {
      cancel();
      back();
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#ready.size === 0 || this.#consumers.size === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#serve();
    });
  }

  #serve(): void {
    const idle = Array.from(this.#consumers).filter((consumer) => !consumer.running);
    for (const consumer of idle) {
      if (this.#ready.size === 0) return;
      // Behind the others for the next time.
      this.#consumers.delete(consumer);
      this.#consumers.add(consumer);
      consumer.running = this.#deliver(consumer, this.#take(consumer.batchMax)).then(() => {
        consumer.running = null;
        this.#schedule();
      });
    }
  }

  #take(max: number): Entry[] {
    const batch: Entry[] = [];
    for (const lane of this.#ready) {
      this.#ready.delete(lane);
      lane.listed = false;
      lane.busy = true;
      for (const entry of lane.entries.take(max - batch.length)) batch.push(entry);
      if (batch.length === max) break;
    }
    return batch;
  }

  async #deliver(consumer: Consumer, batch: readonly Entry[]): Promise<void> {
    for (const entry of batch) entry.deliveries += 1;
    try {
      await consumer.handler(
        batch.map(({ key, text, deliveries }) => ({ key, body: JSON.parse(text) as unknown, deliveries })),
      );
      this.#free(batch);
    } catch (error) {
      this.#options.failed(error, batch.length);
      this.#giveBack(batch);
    }
  }

  /** Lanes whose messages were handled may be taken again. */
  #free(batch: readonly Entry[]): void {
    for (const key of new Set(batch.map((entry) => entry.key))) {
      const lane = this.#lanes.get(key)!;
      lane.busy = false;
      if (lane.entries.size > 0) this.#list(lane);
      else this.#lanes.delete(key);
    }
  }

  #giveBack(batch: readonly Entry[]): void {
    const delayMs = redeliveryDelayMs(Math.max(...batch.map((entry) => entry.deliveries)));
    const back = (): void => {
      this.#resting.delete(back);
      for (const [key, entries] of Map.groupBy(batch, (entry) => entry.key)) {
        const lane = this.#lane(key);
        lane.entries.putBack(entries);
        this.#list(lane);
      }
      this.#schedule();
    };
    if (delayMs === 0) {
      for (const { key } of batch) this.#lanes.get(key)!.busy = false;
      back();
    } else {
      // Meanwhile the messages behind them go on: one that cannot be handled does not block its key.
      this.#free(batch);
      this.#resting.set(back, this.#options.clock.after(delayMs, back));
    }
  }

  #lane(key: string): Lane {
    let lane = this.#lanes.get(key);
    if (!lane) {
      lane = { key, entries: new Fifo(), busy: false, listed: false };
      this.#lanes.set(key, lane);
    }
    return lane;
  }

  #list(lane: Lane): void {
    if (lane.busy || lane.listed) return;
    lane.listed = true;
    this.#ready.add(lane);
  }
}
