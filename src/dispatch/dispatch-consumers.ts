import { BATCH_MAX, type Channels, type Delivery, type Subscription } from "../channels/channels.ts";

export interface DispatchConsumersOptions {
  readonly channels: Pick<Channels, "consume">;
  readonly onMessages: (channel: string, batch: readonly Delivery[]) => Promise<void>;
}

/**
 * A worker's consumers of dispatch queues. They are there only while it wants more: who listens without an appetite takes what
 * another could run at once.
 */
export class DispatchConsumers {
  readonly #o: DispatchConsumersOptions;
  readonly #known = new Set<string>();
  readonly #open = new Map<string, Subscription>();
  /** Closed, and their last batch is still in hand. */
  readonly #closing = new Set<Promise<void>>();
  #batchMax = 0;

  constructor(options: DispatchConsumersOptions) {
    this.#o = options;
  }

  know(channel: string): void {
    if (this.#known.has(channel)) return;
    this.#known.add(channel);
    if (this.#batchMax > 0) this.#consume(channel);
  }

  /** At most so many messages come at a time; none with 0. Those who listen already go on as they are. */
  listen(batchMax: number): void {
    const listened = this.#batchMax > 0;
    this.#batchMax = Math.min(batchMax, BATCH_MAX);
    if (batchMax === 0) this.#closeAll();
    else if (!listened) for (const channel of this.#known) this.#consume(channel);
  }

  /** Resolves when no handler runs any more. */
  async close(): Promise<void> {
    this.listen(0);
    await Promise.all(this.#closing);
  }

  #consume(channel: string): void {
    const handler = (batch: readonly Delivery[]): Promise<void> => this.#o.onMessages(channel, batch);
    this.#open.set(channel, this.#o.channels.consume(channel, handler, { batchMax: this.#batchMax }));
  }

  #closeAll(): void {
    for (const subscription of this.#open.values()) {
      const closing = subscription.close().finally(() => this.#closing.delete(closing));
      this.#closing.add(closing);
    }
    this.#open.clear();
  }
}
