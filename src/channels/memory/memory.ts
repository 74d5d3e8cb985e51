/**
 * Channels inside one process. Queues and topics are gone with it, so whatever must survive stands in the store.
 *
 * Bodies travel as JSON text, as they would between processes: each reader gets a copy of its own. Handlers start on
 * a turn of the event loop of their own, never inside `send` or `publish`.
 */

import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Channels, ConsumeOptions, Delivery, Message, Subscription } from "../channels.ts";
import { MemoryQueue } from "./queue.ts";
import { MemoryTopic } from "./topic.ts";

export interface MemoryChannelsOptions {
  readonly clock: Clock;
  readonly log?: Pick<Log, "warn">;
}

/** Large enough to make a batch worth it, small enough that one bad message takes few others back with it. */
const BATCH_MAX = 100;

export class MemoryChannels extends Lifecycle implements Channels {
  readonly kind = "memory";
  readonly #options: MemoryChannelsOptions;
  readonly #queues = new Map<string, MemoryQueue>();
  readonly #topics = new Map<string, MemoryTopic>();
  readonly #subscriptions = new Set<Subscription>();

  constructor(options: MemoryChannelsOptions) {
    super();
    this.#options = options;
  }

  async send(queue: string, messages: readonly Message[]): Promise<void> {
    this.#usable();
    // All of them are turned into text before the first one is queued: a bad one sends none.
    const texts = messages.map((message, i) => textOf(message, i));
    if (texts.length > 0) this.#queue(queue).push(messages, texts);
  }

  consume(
    queue: string,
    handler: (batch: readonly Delivery[]) => Promise<void>,
    { batchMax = BATCH_MAX }: ConsumeOptions = {},
  ): Subscription {
    this.#usable();
    if (!Number.isSafeInteger(batchMax) || batchMax < 1) {
      throw new BatonError("BAD_REQUEST", `batchMax must be a whole number from 1, not ${batchMax}`, {
        field: "batchMax",
      });
    }
    return this.#remembered(this.#queue(queue).consume(handler, batchMax));
  }

  async publish(topic: string, messages: readonly Message[]): Promise<void> {
    this.#usable();
    const listening = this.#topics.get(topic);
    // Nobody listens: the cost of making text of every change would be for nothing.
    if (!listening || listening.size === 0) return;
    const texts = messages.map((message, i) => textOf(message, i));
    listening.push(messages, texts);
  }

  subscribe(topic: string, handler: (message: Message) => void | Promise<void>): Subscription {
    this.#usable();
    let listening = this.#topics.get(topic);
    if (!listening) {
      const { log } = this.#options;
      listening = new MemoryTopic({
        failed: (err) => log?.warn({ topic, err }, "a topic handler failed; its message is lost"),
        dropped: (messages) =>
          log?.warn({ topic, messages }, "a subscriber is too far behind; its oldest are dropped"),
      });
      this.#topics.set(topic, listening);
    }
    return this.#remembered(listening.subscribe(handler));
  }

  protected override onStart(): void {}

  protected override async onStop(): Promise<void> {
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
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

  #remembered(subscription: Subscription): Subscription {
    const remembered: Subscription = {
      close: async () => {
        await subscription.close();
        this.#subscriptions.delete(remembered);
      },
    };
    this.#subscriptions.add(remembered);
    return remembered;
  }

  #usable(): void {
    if (!this.running) throw new BatonError("STOPPED", "the channels are not running; start them first");
  }
}

function textOf({ key, body }: Message, index: number): string {
  if (typeof key !== "string") {
    throw new BatonError("BAD_REQUEST", `the key of message ${index} must be a string`, {
      field: `[${index}].key`,
    });
  }
  let text: string | undefined;
  let cause: unknown;
  try {
    text = JSON.stringify(body);
  } catch (error) {
    cause = error;
  }
  if (text !== undefined) return text;
  throw new BatonError(
    "BAD_REQUEST",
    `the body of message ${index} must be a plain JSON value`,
    { field: `[${index}].body` },
    { cause },
  );
}
