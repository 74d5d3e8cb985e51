/** Channels with one mistake each, and the promises whose proofs must find it. */

import { describe, test } from "node:test";
import type { ConsumeOptions, Delivery, Message, Subscription } from "../../../src/channels/channels.ts";
import { MemoryChannels } from "../../../src/channels/memory/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { findsOut } from "../promises.ts";
import { channelsPromises, withChannels } from "./contract.ts";
import { patience } from "./world.ts";

patience.ms = 1_000;

type BatchHandler = (batch: readonly Delivery[]) => Promise<void>;
type TopicHandler = (message: Message) => void | Promise<void>;
type Messages = readonly Message[];
const CLOSED: Subscription = { close: () => Promise.resolve() };

const sends = (as: (messages: Messages) => Messages) =>
  class extends MemoryChannels {
    override send(queue: string, messages: Messages): Promise<void> {
      return super.send(queue, as(messages));
    }
  };

/** Consumes with another handler, or with other options. */
const consumes = (
  as: (handler: BatchHandler) => BatchHandler,
  by: (options?: ConsumeOptions) => ConsumeOptions | undefined = (options) => options,
) =>
  class extends MemoryChannels {
    override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
      return super.consume(queue, as(handler), by(options));
    }
  };

const hears = (as: (handler: TopicHandler) => TopicHandler) =>
  class extends MemoryChannels {
    override subscribe(topic: string, handler: TopicHandler): Subscription {
      return super.subscribe(topic, as(handler));
    }
  };

class LosesWhatNobodyWaitsFor extends MemoryChannels {
  readonly #consumed = new Set<string>();

  override async send(queue: string, messages: Messages): Promise<void> {
    if (this.#consumed.has(queue)) await super.send(queue, messages);
  }

  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    this.#consumed.add(queue);
    return super.consume(queue, handler, options);
  }
}

class GivesEachConsumerEverything extends MemoryChannels {
  override async send(queue: string, messages: Messages): Promise<void> {
    await super.send(queue, messages);
    await this.publish(`copies of ${queue}`, messages);
  }

  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    super.subscribe(`copies of ${queue}`, (message) => handler([{ ...message, deliveries: 1 }]));
    return super.consume(queue, handler, options);
  }
}

/** Only the first consumer of a queue, and the first subscriber of a topic, get anything. */
class ServesTheFirst extends MemoryChannels {
  readonly #taken = new Set<string>();

  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    return this.#first(`queue ${queue}`) ? super.consume(queue, handler, options) : CLOSED;
  }

  override subscribe(topic: string, handler: TopicHandler): Subscription {
    return this.#first(`topic ${topic}`) ? super.subscribe(topic, handler) : CLOSED;
  }

  #first(of: string): boolean {
    return !this.#taken.has(of) && this.#taken.add(of) !== null;
  }
}

class LosesTheBatchOfAConsumerThatCloses extends MemoryChannels {
  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    let closing = false;
    const forgiving: BatchHandler = async (batch) => {
      try {
        await handler(batch);
      } catch (error) {
        if (!closing) throw error;
      }
    };
    const subscription = super.consume(queue, forgiving, options);
    return {
      close: () => {
        closing = true;
        return subscription.close();
      },
    };
  }
}

class DoesNotWaitForHandlersToEnd extends MemoryChannels {
  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    const subscription = super.consume(queue, handler, options);
    return { close: async () => void subscription.close() };
  }

  override subscribe(topic: string, handler: TopicHandler): Subscription {
    const subscription = super.subscribe(topic, handler);
    return { close: async () => void subscription.close() };
  }

  protected override async onStop(): Promise<void> {
    void super.onStop();
  }
}

class TurnsBatchesRound extends sends((messages) => messages.toReversed()) {
  override publish(topic: string, messages: Messages): Promise<void> {
    return super.publish(topic, messages.toReversed());
  }
}

class SendsHalfOfABadCall extends MemoryChannels {
  override async send(queue: string, messages: Messages): Promise<void> {
    for (const message of messages) await super.send(queue, [message]);
  }
}

class SharesBodies extends MemoryChannels {
  readonly #subscribers = new Map<TopicHandler, string>();

  override async publish(topic: string, messages: Messages): Promise<void> {
    await super.publish(topic, messages);
    for (const message of structuredClone(messages)) {
      for (const [handler, at] of this.#subscribers)
        if (at === topic) setImmediate(() => void handler(message));
    }
  }

  override subscribe(topic: string, handler: TopicHandler): Subscription {
    this.#subscribers.set(handler, topic);
    return { close: async () => void this.#subscribers.delete(handler) };
  }
}

class RemembersTopics extends MemoryChannels {
  readonly #last = new Map<string, Message>();

  override async publish(topic: string, messages: Messages): Promise<void> {
    const last = messages.at(-1);
    if (last) this.#last.set(topic, last);
    await super.publish(topic, messages);
  }

  override subscribe(topic: string, handler: TopicHandler): Subscription {
    const last = this.#last.get(topic);
    if (last) setImmediate(() => void handler(last));
    return super.subscribe(topic, handler);
  }
}

class WaitsForSubscribers extends MemoryChannels {
  readonly #handlers = new Set<TopicHandler>();

  override async publish(topic: string, messages: Messages): Promise<void> {
    await super.publish(topic, messages);
    for (const message of messages) for (const handler of this.#handlers) await handler(message);
  }

  override subscribe(_topic: string, handler: TopicHandler): Subscription {
    this.#handlers.add(handler);
    return { close: async () => void this.#handlers.delete(handler) };
  }
}

class CannotUnsubscribe extends MemoryChannels {
  override subscribe(topic: string, handler: TopicHandler): Subscription {
    super.subscribe(topic, handler);
    return CLOSED;
  }
}

class MixesQueuesAndTopics extends MemoryChannels {
  override async send(queue: string, messages: Messages): Promise<void> {
    await super.send(queue, messages);
    await super.publish(queue, messages);
  }
}

class AnswersAfterItsStop extends MemoryChannels {
  override async send(queue: string, messages: Messages): Promise<void> {
    if (this.running) await super.send(queue, messages);
  }
}

const COMPETING = "of consumers that compete, one handles each message, and all of them get some";
const ALL_OF_A_LARGE_CALL = "twenty thousand messages in one call get through, each once";
const COMES_AGAIN = "a batch whose handler rejected comes again as a whole, counted";
const IN_ORDER = "a topic reaches everybody who is subscribed, in the order of publishing";
const KEPT = "what was sent before anybody consumed is kept";
const CLOSED_TOPIC = "after a subscription is closed nothing arrives, and closing waits for its handler";

const BROKEN: Readonly<Record<string, readonly [typeof MemoryChannels, ...sentences: string[]]>> = {
  "loses what nobody waits for": [LosesWhatNobodyWaitsFor, KEPT],
  "loses the last of a large call": [sends((messages) => messages.slice(0, 10_000)), ALL_OF_A_LARGE_CALL],
  "gives each consumer everything": [GivesEachConsumerEverything, COMPETING, ALL_OF_A_LARGE_CALL],
  "serves only who came first": [ServesTheFirst, COMPETING, IN_ORDER],
  "swallows failures": [
    consumes((handler) => async (batch) => {
      try {
        await handler(batch);
      } catch {}
    }),
    COMES_AGAIN,
    "a handler that throws before it waits for anything has failed too",
    "what one consumer cannot handle, another may",
  ],
  "counts no deliveries": [
    consumes((handler) => (batch) => handler(batch.map((one) => ({ ...one, deliveries: 1 })))),
    COMES_AGAIN,
  ],
  "redelivers only the first of a batch": [
    consumes(
      (handler) => (batch) => handler(batch.filter(({ deliveries }, i) => deliveries === 1 || i === 0)),
    ),
    COMES_AGAIN,
  ],
  "loses the batch of a consumer that closes": [
    LosesTheBatchOfAConsumerThatCloses,
    "a consumer that closes in the middle of a batch leaves to the others what it did not handle",
  ],
  "does not wait for handlers to end": [
    DoesNotWaitForHandlersToEnd,
    "closing resolves when no handler runs any more, and what was handled stays handled",
    CLOSED_TOPIC,
    "a stop waits for the handlers that run, and no handler starts after it",
  ],
  "turns batches round": [TurnsBatchesRound, KEPT, IN_ORDER],
  "is never exclusive": [
    consumes(
      (handler) => handler,
      (options) => ({ ...options, exclusive: false }),
    ),
    "an exclusive queue has one batch out at a time, on all nodes, in the order of sending",
    "while a failed batch of an exclusive queue waits, nothing behind it is delivered",
  ],
  "mixes up keys": [
    sends((all) => all.map(({ key, body }) => ({ key: key.normalize().toWellFormed(), body }))),
    "any string is a key, and no two of them are mixed up",
  ],
  "cuts long keys": [
    sends((all) => all.map(({ key, body }) => ({ key: key.slice(0, 255), body }))),
    "a key or a name that is no short string is refused, and nothing of its call is sent",
  ],
  "makes batches as large as it likes": [
    consumes(
      (handler) => handler,
      () => ({ batchMax: 1_000 }),
    ),
    "no batch is larger than asked for",
    "a batch size below one is refused",
  ],
  "sends half of a bad call": [
    SendsHalfOfABadCall,
    "a body that is no JSON value is refused by its place, and nothing of its call is sent",
  ],
  "shares bodies": [SharesBodies, "each subscriber gets a copy of its own"],
  "remembers topics": [RemembersTopics, "nothing is kept for those who subscribe later"],
  "waits for subscribers": [
    WaitsForSubscribers,
    "a slow subscriber holds up neither the publisher nor the others, and misses nothing itself",
  ],
  "drops a subscriber that throws": [
    hears((handler) => {
      let fine = true;
      return async (message) => {
        if (!fine) return;
        fine = false;
        await handler(message);
        fine = true;
      };
    }),
    "a handler that throws or rejects loses that message and gets the next",
  ],
  "runs a subscriber side by side": [
    hears((handler) => (message) => {
      Promise.resolve(handler(message)).catch(() => {});
    }),
    "a subscriber gets one message at a time",
  ],
  "cannot unsubscribe": [
    CannotUnsubscribe,
    CLOSED_TOPIC,
    "a handler that is subscribed twice is called twice",
  ],
  "mixes queues and topics": [
    MixesQueuesAndTopics,
    "topics do not mix, and a queue of the same name is another thing",
  ],
  "answers after its stop": [AnswersAfterItsStop, "every call on stopped channels is refused with STOPPED"],
};

describe("the contract of channels finds out channels that", { concurrency: true }, () => {
  for (const [mistake, [Kind, ...sentences]] of Object.entries(BROKEN)) {
    const within = withChannels(async () => {
      const channels = new Kind({ clock: systemClock });
      await channels.start();
      return { here: channels, there: channels };
    });
    for (const sentence of sentences)
      test(`${mistake}: ${sentence}`, () => findsOut(channelsPromises, sentence, within));
  }
});
