import type { Message, Subscription } from "../channels.ts";
import { Fifo } from "./fifo.ts";

interface Hint {
  readonly key: string;
  readonly text: string;
}

/**
 * Hints that one subscriber may be behind with. Beyond it the oldest are dropped: a subscriber that hangs must not eat
 * the memory, and what a topic says can be read from the store.
 */
const BACKLOG_MAX = 100_000;

/** Hints handled in one go before others get their turn of the event loop. */
const TURN_MAX = 500;

export interface MemoryTopicOptions {
  /** Told of every handler that failed. */
  readonly failed: (error: unknown) => void;
  readonly dropped: (messages: number) => void;
}

/** One topic. Each subscriber has a backlog of its own and works it off one by one. */
export class MemoryTopic {
  readonly #options: MemoryTopicOptions;
  readonly #subscribers = new Set<Subscriber>();

  constructor(options: MemoryTopicOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#subscribers.size;
  }

  push(messages: readonly Message[], texts: readonly string[]): void {
    const hints = messages.map(({ key }, i) => ({ key, text: texts[i]! }));
    for (const subscriber of this.#subscribers) {
      const dropped = subscriber.push(hints);
      if (dropped > 0) this.#options.dropped(dropped);
    }
  }

  subscribe(handler: (message: Message) => void | Promise<void>): Subscription {
    const subscriber = new Subscriber(handler, this.#options.failed);
    this.#subscribers.add(subscriber);
    return {
      close: () => {
        this.#subscribers.delete(subscriber);
        return subscriber.close();
      },
    };
  }
}

class Subscriber {
  readonly #handler: (message: Message) => void | Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #backlog = new Fifo<Hint>();
  #closed = false;
  #working: Promise<void> | null = null;

  constructor(handler: (message: Message) => void | Promise<void>, failed: (error: unknown) => void) {
    this.#handler = handler;
    this.#failed = failed;
  }

  /** How many had to be dropped. */
  push(hints: readonly Hint[]): number {
    for (const hint of hints) this.#backlog.push(hint);
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
      await new Promise<void>((resolve) => setImmediate(resolve));
      for (let turn = 0; turn < TURN_MAX; turn++) {
        const [hint] = this.#backlog.take(1);
        if (!hint || this.#closed) break;
        try {
          const handled = this.#handler({ key: hint.key, body: JSON.parse(hint.text) as unknown });
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
