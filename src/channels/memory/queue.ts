/** One queue in memory: messages in the order of sending, and those that wait for their redelivery. */

import type { Clock } from "../../platform/clock.ts";
import { Fifo } from "../fifo.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { QueueSource, Taken, TakenMessage } from "../queue-consumer.ts";

interface Resting {
  readonly messages: readonly TakenMessage[];
  /** Monotonic. */
  readonly until: number;
}

export class MemoryQueue {
  readonly #clock: Clock;
  readonly #waiting = new Fifo<TakenMessage>();
  #resting: Resting[] = [];
  /** Batches with a consumer. */
  #out = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  push(messages: readonly EncodedMessage[]): void {
    for (const message of messages) this.#waiting.push({ ...message, deliveries: 0 });
  }

  /** Ends all waits for a redelivery. */
  releaseAll(): void {
    for (const { messages } of this.#resting.splice(0).toReversed()) this.#waiting.putBack(messages);
  }

  source(batchMax: number, exclusive: boolean): QueueSource {
    return {
      take: async () => {
        // Handlers start in a separate turn of the event loop, and what is sent in one turn is taken together.
        await new Promise<void>((resolve) => setImmediate(resolve));
        return this.#take(batchMax, exclusive);
      },
      done: async () => void (this.#out -= 1),
      back: async (batch, restMs, seen) => this.#back(batch, restMs, seen),
      renew: async () => true,
      renewMs: null,
      oursUntil: () => Infinity,
    };
  }

  #take(max: number, exclusive: boolean): Taken | null {
    const now = this.#clock.monotonic();
    const due = this.#resting.filter(({ until }) => until <= now);
    this.#resting = this.#resting.filter(({ until }) => until > now);
    for (const { messages } of due.toReversed()) this.#waiting.putBack(messages);
    if (exclusive && (this.#out > 0 || this.#resting.length > 0)) return null;
    const messages = this.#waiting
      .take(max)
      .map((message) => ({ ...message, deliveries: message.deliveries + 1 }));
    if (messages.length === 0) return null;
    this.#out += 1;
    return { messages };
  }

  #back(batch: Taken, restMs: number, seen: boolean): void {
    this.#out -= 1;
    const messages = seen
      ? batch.messages
      : batch.messages.map((message) => ({ ...message, deliveries: message.deliveries - 1 }));
    if (restMs === 0) this.#waiting.putBack(messages);
    else this.#resting.push({ messages, until: this.#clock.monotonic() + restMs });
  }
}
