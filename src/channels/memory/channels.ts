/**
 * Channels inside one process. Queues and topics end with the process, so everything that must survive is in the store.
 *
 * Bodies are passed as JSON text, as between processes: each reader gets its own copy. Handlers start in a separate
 * turn of the event loop, never inside `send` or `publish`.
 */

import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Channels, ConsumeOptions, Delivery, Message, Subscription } from "../channels.ts";
import { BATCH_MAX } from "../channels.ts";
import { LocalTopics } from "../local-topics.ts";
import { checkBatchMax, checkName, encodeMessage } from "../message-encoding.ts";
import { Subscriptions } from "../subscriptions.ts";
import { MemoryQueue } from "./queue.ts";

export interface MemoryChannelsOptions {
  readonly clock: Clock;
  readonly log?: Pick<Log, "warn">;
}

export class MemoryChannels extends Lifecycle implements Channels {
  readonly kind = "memory";
  readonly shared = false;
  readonly notifiesOnSubmit = false;
  readonly limits = [];
  readonly #options: MemoryChannelsOptions;
  readonly #queues = new Map<string, MemoryQueue>();
  readonly #topics: LocalTopics;
  readonly #subscriptions = new Subscriptions();

  constructor(options: MemoryChannelsOptions) {
    super();
    this.#options = options;
    this.#topics = new LocalTopics(options.log);
  }

  async send(queue: string, messages: readonly Message[]): Promise<void> {
    this.#usable();
    checkName("queue", queue);
    // All of them are turned into text before the first one is queued: a bad one sends none.
    const texts = encodeMessage(messages);
    if (texts.length > 0) this.#queue(queue).push(texts);
  }

  consume(
    queue: string,
    handler: (batch: readonly Delivery[]) => Promise<void>,
    { batchMax = BATCH_MAX }: ConsumeOptions = {},
  ): Subscription {
    this.#usable();
    checkName("queue", queue);
    checkBatchMax(batchMax);
    return this.#subscriptions.add(this.#queue(queue).consume(handler, batchMax));
  }

  async publish(topic: string, messages: readonly Message[]): Promise<void> {
    this.#usable();
    checkName("topic", topic);
    // Nobody listens: the cost of making text of every change would be for nothing.
    if (this.#topics.hasSubscribers(topic)) this.#topics.deliver(topic, encodeMessage(messages));
  }

  subscribe(topic: string, handler: (message: Message) => void | Promise<void>): Subscription {
    this.#usable();
    checkName("topic", topic);
    return this.#subscriptions.add(this.#topics.subscribe(topic, handler));
  }

  protected override onStart(): void {}

  protected override async onStop(): Promise<void> {
    await this.#subscriptions.closeAll();
    for (const queue of this.#queues.values()) queue.wake();
  }

  #queue(name: string): MemoryQueue {
    let queue = this.#queues.get(name);
    if (!queue) {
      const { clock, log } = this.#options;
      queue = new MemoryQueue({
        clock,
        failed: (err, messages) =>
          log?.warn({ queue: name, messages, err }, "a batch failed; it is delivered again"),
      });
      this.#queues.set(name, queue);
    }
    return queue;
  }

  #usable(): void {
    if (!this.running) throw new BatonError("STOPPED", "the channels are not running; start them first");
  }
}
