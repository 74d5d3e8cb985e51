/**
 * What all channels share: checks, topics in this process, consumers of queues, and redeliveries. A backend supplies how messages are
 * stored and taken, and how topics reach other nodes.
 */

import { BatonError } from "../core/errors.ts";
import { within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import {
  BATCH_MAX,
  type Channels,
  type ConsumeOptions,
  type Delivery,
  type Message,
  type Subscription,
} from "./channels.ts";
import { LocalTopics } from "./local-topics.ts";
import { checkBatchMax, checkName, encodeMessage, type EncodedMessage } from "./message-encoding.ts";
import { QueueConsumer, type QueueSource } from "./queue-consumer.ts";

export interface BaseChannelsOptions extends Pick<Platform, "clock"> {
  readonly log?: Pick<Platform["log"], "warn">;
}

/** Of channels that reach other nodes through a server. */
export interface SharedChannelsOptions extends BaseChannelsOptions, Pick<Platform, "random"> {
  readonly url: string;
  readonly log?: Pick<Platform["log"], "info" | "warn">;
  /** Hints may have been missed, and are heard again now: a good moment to look into the store. */
  readonly onGap?: () => void;
  readonly connectMs?: number;
  /** What a consumer that died had taken is delivered again after this; a handler that blocks for longer runs twice. */
  readonly leaseMs?: number;
}

export const LEASE_MS = 10_000;

export interface OpenedQueue {
  readonly queue: string;
  readonly batchMax: number;
  readonly exclusive: boolean;
}

/** What is under way at a stop has so long. A silent server would delay it for all of a command's deadline. */
const LAST_WORDS_MS = 500;
/** Our timers may fire early and a server rounds its time: one that polls a moment too soon waits until the next poll. */
const CLOCKS_DIFFER_MS = 5;

export abstract class BaseChannels<Source extends QueueSource> extends Lifecycle implements Channels {
  abstract readonly kind: string;
  abstract readonly shared: boolean;
  abstract readonly notifiesOnSubmit: boolean;
  abstract readonly limits: readonly string[];
  protected readonly topics: LocalTopics;
  readonly #base: BaseChannelsOptions;
  readonly #consumers = new Map<string, Set<QueueConsumer>>();
  readonly #subscriptions = new Set<Subscription>();
  readonly #redeliveries = new Set<() => void>();

  constructor(options: BaseChannelsOptions) {
    super();
    this.#base = options;
    this.topics = new LocalTopics(options.clock, options.log);
  }

  protected abstract store(queue: string, messages: readonly EncodedMessage[]): Promise<void>;
  protected abstract open(queue: OpenedQueue): Source;
  /** Null: consumers wait until they are woken. */
  protected abstract pollMs(): number | null;
  /** Messages that were given back may be taken again. */
  protected abstract released(queue: string): void;
  protected abstract broadcast(topic: string, messages: readonly EncodedMessage[]): Promise<void>;
  protected onConsume(_source: Source, _consumer: QueueConsumer): void {}
  /** Its consumer has closed; `last`: no other consumer of this node uses the queue. */
  protected onLeave(_source: Source, _queue: string, _last: boolean): void {}

  async send(queue: string, messages: readonly Message[]): Promise<void> {
    this.requireRunning();
    checkName("queue", queue);
    // All are encoded before the first is stored: a bad one sends none.
    const encoded = encodeMessage(messages);
    if (encoded.length > 0) await this.store(queue, encoded);
  }

  consume(
    queue: string,
    handler: (batch: readonly Delivery[]) => Promise<void>,
    { batchMax = BATCH_MAX, exclusive = false }: ConsumeOptions = {},
  ): Subscription {
    this.requireRunning();
    checkName("queue", queue);
    checkBatchMax(batchMax);
    const { clock, log } = this.#base;
    const source = this.open({ queue, batchMax, exclusive });
    const consumer = new QueueConsumer({
      queue,
      handler,
      source,
      clock,
      log,
      pollMs: () => this.pollMs(),
      onBack: (restMs) => this.#release(queue, restMs),
    });
    const consumers = this.#consumers.get(queue) ?? new Set();
    this.#consumers.set(queue, consumers.add(consumer));
    this.onConsume(source, consumer);
    return this.#opened(async () => {
      await consumer.close();
      if (!consumers.delete(consumer)) return;
      if (consumers.size === 0) this.#consumers.delete(queue);
      this.onLeave(source, queue, consumers.size === 0);
    });
  }

  async publish(topic: string, messages: readonly Message[]): Promise<void> {
    this.requireRunning();
    checkName("topic", topic);
    if (messages.length === 0 || !(this.shared || this.topics.hasSubscribers(topic))) return;
    const encoded = encodeMessage(messages);
    this.topics.deliver(topic, encoded);
    await this.broadcast(topic, encoded);
  }

  subscribe(topic: string, handler: (message: Message) => void | Promise<void>): Subscription {
    this.requireRunning();
    checkName("topic", topic);
    const subscription = this.topics.subscribe(topic, handler);
    return this.#opened(() => subscription.close());
  }

  protected get queues(): readonly string[] {
    return [...this.#consumers.keys()];
  }

  protected wake(queue: string): void {
    for (const consumer of this.#consumers.get(queue) ?? []) consumer.wake();
  }

  protected requireRunning(): void {
    if (!this.running) throw new BatonError("STOPPED", "the channels are not running; start them first");
  }

  /** First of a stop: no handler runs any more afterwards. */
  protected async closeAll(): Promise<void> {
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
    for (const cancel of this.#redeliveries) cancel();
    this.#redeliveries.clear();
  }

  protected async finish(work: Promise<unknown>): Promise<void> {
    await within(this.#base.clock, LAST_WORDS_MS, work);
  }

  #release(queue: string, restMs: number): void {
    if (restMs === 0) return this.released(queue);
    if (!this.running) return;
    const cancel = this.#base.clock.after(restMs + CLOCKS_DIFFER_MS, () => {
      this.#redeliveries.delete(cancel);
      this.released(queue);
    });
    this.#redeliveries.add(cancel);
  }

  #opened(close: () => Promise<void>): Subscription {
    const subscription: Subscription = {
      close: async () => {
        await close();
        this.#subscriptions.delete(subscription);
      },
    };
    this.#subscriptions.add(subscription);
    return subscription;
  }
}
