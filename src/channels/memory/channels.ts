/** Channels inside one process, which end with it. Bodies are passed as JSON text, as between processes: each reader gets its own copy. */

import type { Clock } from "../../platform/clock.ts";
import { BaseChannels, type BaseChannelsOptions, type OpenedQueue } from "../base-channels.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { QueueSource, Taken, TakenMessage } from "../queue-consumer.ts";

export class MemoryChannels extends BaseChannels<QueueSource> {
  readonly kind = "memory";
  readonly shared = false;
  readonly notifiesOnSubmit = false;
  readonly limits = [];
  readonly #clock: Clock;
  readonly #queues = new Map<string, MemoryQueue>();

  constructor(options: BaseChannelsOptions) {
    super(options);
    this.#clock = options.clock;
  }

  protected async store(queue: string, messages: readonly EncodedMessage[]): Promise<void> {
    this.#queue(queue).push(messages);
    this.wake(queue);
  }

  protected open({ queue, batchMax, exclusive }: OpenedQueue): QueueSource {
    return this.#queue(queue).source(batchMax, exclusive);
  }

  protected pollMs(): null {
    return null;
  }

  protected released(queue: string): void {
    this.wake(queue);
  }

  protected async broadcast(): Promise<void> {}

  protected override onLeave(_: QueueSource, queue: string): void {
    // Others were refused while this one had an exclusive queue.
    this.wake(queue);
  }

  protected override onStart(): void {}

  protected override async onStop(): Promise<void> {
    await this.closeAll();
    for (const queue of this.#queues.values()) queue.releaseAll();
  }

  #queue(name: string): MemoryQueue {
    let queue = this.#queues.get(name);
    if (!queue) this.#queues.set(name, (queue = new MemoryQueue(this.#clock)));
    return queue;
  }
}

interface Resting {
  readonly messages: readonly TakenMessage[];
  /** Monotonic. */
  readonly until: number;
}

class MemoryQueue {
  readonly #clock: Clock;
  readonly #waiting: TakenMessage[] = [];
  #resting: Resting[] = [];
  /** Batches with a consumer. */
  #out = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  push(messages: readonly EncodedMessage[]): void {
    for (const message of messages) this.#waiting.push({ ...message, deliveries: 0 });
  }

  releaseAll(): void {
    for (const { messages } of this.#resting.splice(0).toReversed()) this.#waiting.unshift(...messages);
  }

  source(batchMax: number, exclusive: boolean): QueueSource {
    return {
      take: async () => {
        // Handlers start in a separate turn of the event loop, and what is sent in one turn is taken together.
        await this.#clock.turn();
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
    for (const { messages } of due.toReversed()) this.#waiting.unshift(...messages);
    if (exclusive && (this.#out > 0 || this.#resting.length > 0)) return null;
    const messages = this.#waiting
      .splice(0, max)
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
    if (restMs === 0) this.#waiting.unshift(...messages);
    else this.#resting.push({ messages, until: this.#clock.monotonic() + restMs });
  }
}
