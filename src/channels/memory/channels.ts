/**
 * Channels inside one process. Queues and topics end with the process, so everything that must survive is in the store.
 *
 * Bodies are passed as JSON text, as between processes: each reader gets its own copy.
 */

import { BaseChannels, type BaseChannelsOptions, type OpenedQueue } from "../base-channels.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { QueueSource } from "../queue-consumer.ts";
import { MemoryQueue } from "./queue.ts";

export type MemoryChannelsOptions = BaseChannelsOptions;

export class MemoryChannels extends BaseChannels<QueueSource> {
  readonly kind = "memory";
  readonly shared = false;
  readonly notifiesOnSubmit = false;
  readonly limits = [];
  readonly #o: MemoryChannelsOptions;
  readonly #queues = new Map<string, MemoryQueue>();

  constructor(options: MemoryChannelsOptions) {
    super(options);
    this.#o = options;
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

  /** There is no other node. */
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
    if (!queue) {
      queue = new MemoryQueue(this.#o.clock);
      this.#queues.set(name, queue);
    }
    return queue;
  }
}
