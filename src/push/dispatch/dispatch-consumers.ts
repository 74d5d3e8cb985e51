/** The consumers of dispatch queues, open only while the worker has demand: otherwise they would take jobs that another could run at once. */

import { BATCH_MAX, type Channels, type Delivery, type Subscription } from "../../channels/channels.ts";

type OnMessages = (channel: string, batch: readonly Delivery[]) => Promise<void>;

export class DispatchConsumers {
  readonly #channels: Pick<Channels, "consume">;
  readonly #onMessages: OnMessages;
  readonly #known = new Map<string, number>();
  readonly #open = new Map<string, Subscription>();
  /** Closed, and their last batch is still in hand. */
  readonly #closing = new Set<Promise<void>>();
  #batchMax = 0;

  constructor(channels: Pick<Channels, "consume">, onMessages: OnMessages) {
    this.#channels = channels;
    this.#onMessages = onMessages;
  }

  know(channel: string, at: number): void {
    const fresh = !this.#known.has(channel);
    this.#known.set(channel, at);
    if (fresh && this.#batchMax > 0) this.#consume(channel);
  }

  /**
   * Forgets what was not heard of since then: queues may be named after customers, who come and go. Only while it listens, so that nothing
   * stays behind in them.
   */
  forget(since: number): void {
    for (const [channel, at] of this.#known) {
      const subscription = this.#open.get(channel);
      if (at >= since || !subscription) continue;
      this.#known.delete(channel);
      this.#open.delete(channel);
      this.#close(subscription);
    }
  }

  /** At most so many messages come at a time; none with 0. Those who listen already go on as they are. */
  listen(batchMax: number): void {
    const listened = this.#batchMax > 0;
    this.#batchMax = Math.min(batchMax, BATCH_MAX);
    if (batchMax === 0) this.#closeAll();
    else if (!listened) for (const channel of this.#known.keys()) this.#consume(channel);
  }

  async close(): Promise<void> {
    this.listen(0);
    await Promise.all(this.#closing);
  }

  #consume(channel: string): void {
    const handler = (batch: readonly Delivery[]): Promise<void> => this.#onMessages(channel, batch);
    this.#open.set(channel, this.#channels.consume(channel, handler, { batchMax: this.#batchMax }));
  }

  #closeAll(): void {
    for (const subscription of this.#open.values()) this.#close(subscription);
    this.#open.clear();
  }

  #close(subscription: Subscription): void {
    const closing = subscription.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
