/** Topics inside this process: each subscriber has its own backlog and handles it one message at a time. */

import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Message, Subscription } from "./channels.ts";
import type { EncodedMessage } from "./message-encoding.ts";

type Handler = (message: Message) => void | Promise<void>;

/** Hints that one subscriber may be behind with. Beyond it the oldest are dropped: what a topic says can be read from the store. */
const BACKLOG_MAX = 100_000;

/** Hints handled in one go before others get their turn of the event loop. */
const TURN_MAX = 500;

export class LocalTopics {
  readonly #clock: Clock;
  readonly #log: Pick<Log, "warn"> | undefined;
  readonly #topics = new Map<string, Set<Subscriber>>();

  constructor(clock: Clock, log?: Pick<Log, "warn">) {
    this.#clock = clock;
    this.#log = log;
  }

  hasSubscribers(topic: string): boolean {
    return this.#topics.has(topic);
  }

  deliver(topic: string, messages: readonly EncodedMessage[]): void {
    for (const subscriber of this.#topics.get(topic) ?? []) {
      const dropped = subscriber.push(messages);
      if (dropped === 0) continue;
      const fields = { topic, messages: dropped };
      this.#log?.warn(fields, "a subscriber is too far behind; its oldest are dropped");
    }
  }

  subscribe(topic: string, handler: Handler): Subscription {
    const subscriber = new Subscriber(this.#clock, handler, (err) =>
      this.#log?.warn({ topic, err }, "a topic handler failed; its message is lost"),
    );
    const subscribers = this.#topics.get(topic) ?? new Set();
    this.#topics.set(topic, subscribers.add(subscriber));
    return {
      close: () => {
        subscribers.delete(subscriber);
        if (subscribers.size === 0 && this.#topics.get(topic) === subscribers) this.#topics.delete(topic);
        return subscriber.close();
      },
    };
  }
}

class Subscriber {
  readonly #clock: Clock;
  readonly #handler: Handler;
  readonly #failed: (error: unknown) => void;
  readonly #backlog = new Fifo<EncodedMessage>();
  #closed = false;
  #working: Promise<void> | null = null;

  constructor(clock: Clock, handler: Handler, failed: (error: unknown) => void) {
    this.#clock = clock;
    this.#handler = handler;
    this.#failed = failed;
  }

  push(messages: readonly EncodedMessage[]): number {
    for (const message of messages) this.#backlog.push(message);
    const dropped = Math.max(0, this.#backlog.size - BACKLOG_MAX);
    if (dropped > 0) this.#backlog.take(dropped);
    this.#working ??= this.#work();
    return dropped;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    do {
      await this.#clock.turn();
      for (let turn = 0; turn < TURN_MAX; turn++) {
        const [message] = this.#backlog.take(1);
        if (!message || this.#closed) break;
        try {
          const handled = this.#handler({ key: message.key, body: JSON.parse(message.text) as unknown });
          // Not waiting for a handler that is done already keeps a flood of hints cheap.
          if (handled) await handled;
        } catch (error) {
          this.#failed(error);
        }
      }
    } while (this.#backlog.size > 0 && !this.#closed);
    this.#working = null;
  }
}

/** First in, first out. Taking from the front of a plain array costs its whole length; here it costs one step. */
class Fifo<Item> {
  #items: Item[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  take(max: number): Item[] {
    const taken = this.#items.slice(this.#head, this.#head + max);
    this.#head += taken.length;
    // Half of it is used up: moving the rest now costs no more than what was taken since the last time.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return taken;
  }
}
