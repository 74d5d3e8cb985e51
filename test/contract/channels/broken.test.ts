/** Channels with one mistake each, and the promise whose proof must find it. */

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

class LosesWhatNobodyWaitsFor extends MemoryChannels {
  readonly #consumed = new Set<string>();

  override async send(queue: string, messages: readonly Message[]): Promise<void> {
    if (this.#consumed.has(queue)) await super.send(queue, messages);
  }

  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    this.#consumed.add(queue);
    return super.consume(queue, handler, options);
  }
}

class LosesTheLastOfALargeCall extends MemoryChannels {
  override send(queue: string, messages: readonly Message[]): Promise<void> {
    return super.send(queue, messages.slice(0, 10_000));
  }
}

class GivesEachConsumerEverything extends MemoryChannels {
  override async send(queue: string, messages: readonly Message[]): Promise<void> {
    await super.send(queue, messages);
    await this.publish(`copies of ${queue}`, messages);
  }

  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    super.subscribe(`copies of ${queue}`, (message) => handler([{ ...message, deliveries: 1 }]));
    return super.consume(queue, handler, options);
  }
}

class FavoursOneConsumer extends MemoryChannels {
  readonly #taken = new Set<string>();

  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    if (this.#taken.has(queue)) return { close: () => Promise.resolve() };
    this.#taken.add(queue);
    return super.consume(queue, handler, options);
  }
}

class SwallowsFailures extends MemoryChannels {
  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    const quietly: BatchHandler = async (batch) => {
      try {
        await handler(batch);
      } catch {}
    };
    return super.consume(queue, quietly, options);
  }
}

class CountsNoDeliveries extends MemoryChannels {
  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    const uncounted: BatchHandler = (batch) => handler(batch.map((one) => ({ ...one, deliveries: 1 })));
    return super.consume(queue, uncounted, options);
  }
}

class RedeliversOnlyTheFirstOfABatch extends MemoryChannels {
  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    const forgetful: BatchHandler = (batch) =>
      handler(batch.filter(({ deliveries }, i) => deliveries === 1 || i === 0));
    return super.consume(queue, forgetful, options);
  }
}

class LosesTheBatchOfAConsumerThatCloses extends MemoryChannels {
  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    let closing = false;
    const subscription = super.consume(
      queue,
      async (batch) => {
        try {
          await handler(batch);
        } catch (error) {
          if (!closing) throw error;
        }
      },
      options,
    );
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

class TurnsBatchesRound extends MemoryChannels {
  override send(queue: string, messages: readonly Message[]): Promise<void> {
    return super.send(queue, messages.toReversed());
  }

  override publish(topic: string, messages: readonly Message[]): Promise<void> {
    return super.publish(topic, messages.toReversed());
  }
}

class IsNeverExclusive extends MemoryChannels {
  override consume(queue: string, handler: BatchHandler, options?: ConsumeOptions): Subscription {
    return super.consume(queue, handler, { ...options, exclusive: false });
  }
}

class MixesUpKeys extends MemoryChannels {
  override send(queue: string, messages: readonly Message[]): Promise<void> {
    return super.send(
      queue,
      messages.map(({ key, body }) => ({ key: key.normalize().toWellFormed(), body })),
    );
  }
}

class CutsLongKeys extends MemoryChannels {
  override send(queue: string, messages: readonly Message[]): Promise<void> {
    return super.send(
      queue,
      messages.map(({ key, body }) => ({ key: key.slice(0, 255), body })),
    );
  }
}

class MakesBatchesAsLargeAsItLikes extends MemoryChannels {
  override consume(queue: string, handler: BatchHandler): Subscription {
    return super.consume(queue, handler, { batchMax: 1_000 });
  }
}

class SendsHalfOfABadCall extends MemoryChannels {
  override async send(queue: string, messages: readonly Message[]): Promise<void> {
    for (const message of messages) await super.send(queue, [message]);
  }
}

class SharesBodies extends MemoryChannels {
  readonly #subscribers = new Map<TopicHandler, string>();

  override async publish(topic: string, messages: readonly Message[]): Promise<void> {
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

  override async publish(topic: string, messages: readonly Message[]): Promise<void> {
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

class PublishesToOneOfMany extends MemoryChannels {
  readonly #topics = new Set<string>();

  override subscribe(topic: string, handler: TopicHandler): Subscription {
    if (this.#topics.has(topic)) return { close: () => Promise.resolve() };
    this.#topics.add(topic);
    return super.subscribe(topic, handler);
  }
}

class WaitsForSubscribers extends MemoryChannels {
  readonly #handlers = new Set<TopicHandler>();

  override async publish(topic: string, messages: readonly Message[]): Promise<void> {
    await super.publish(topic, messages);
    for (const message of messages) {
      for (const handler of this.#handlers) await handler(message);
    }
  }

  override subscribe(_topic: string, handler: TopicHandler): Subscription {
    this.#handlers.add(handler);
    return { close: async () => void this.#handlers.delete(handler) };
  }
}

class DropsASubscriberThatThrows extends MemoryChannels {
  override subscribe(topic: string, handler: TopicHandler): Subscription {
    let fine = true;
    return super.subscribe(topic, async (message) => {
      if (!fine) return;
      fine = false;
      await handler(message);
      fine = true;
    });
  }
}

class RunsASubscriberSideBySide extends MemoryChannels {
  override subscribe(topic: string, handler: TopicHandler): Subscription {
    return super.subscribe(topic, (message) => {
      Promise.resolve(handler(message)).catch(() => {});
    });
  }
}

class CannotUnsubscribe extends MemoryChannels {
  override subscribe(topic: string, handler: TopicHandler): Subscription {
    super.subscribe(topic, handler);
    return { close: () => Promise.resolve() };
  }
}

class MixesQueuesAndTopics extends MemoryChannels {
  override async send(queue: string, messages: readonly Message[]): Promise<void> {
    await super.send(queue, messages);
    await super.publish(queue, messages);
  }
}

class AnswersAfterItsStop extends MemoryChannels {
  override async send(queue: string, messages: readonly Message[]): Promise<void> {
    if (this.running) await super.send(queue, messages);
  }
}

const BROKEN: readonly (readonly [typeof MemoryChannels, ...sentences: string[]])[] = [
  [LosesWhatNobodyWaitsFor, "what was sent before anybody consumed is kept"],
  [LosesTheLastOfALargeCall, "twenty thousand messages in one call get through, each once"],
  [
    GivesEachConsumerEverything,
    "of consumers that compete, one handles each message, and all of them get some",
    "twenty thousand messages in one call get through, each once",
  ],
  [FavoursOneConsumer, "of consumers that compete, one handles each message, and all of them get some"],
  [
    SwallowsFailures,
    "a batch whose handler rejected comes again as a whole, counted",
    "a handler that throws before it waits for anything has failed too",
    "what one consumer cannot handle, another may",
  ],
  [CountsNoDeliveries, "a batch whose handler rejected comes again as a whole, counted"],
  [RedeliversOnlyTheFirstOfABatch, "a batch whose handler rejected comes again as a whole, counted"],
  [
    LosesTheBatchOfAConsumerThatCloses,
    "a consumer that closes in the middle of a batch leaves to the others what it did not handle",
  ],
  [
    DoesNotWaitForHandlersToEnd,
    "closing resolves when no handler runs any more, and what was handled stays handled",
    "after a subscription is closed nothing arrives, and closing waits for its handler",
    "a stop waits for the handlers that run, and no handler starts after it",
  ],
  [
    TurnsBatchesRound,
    "what was sent before anybody consumed is kept",
    "a topic reaches everybody who is subscribed, in the order of publishing",
  ],
  [
    IsNeverExclusive,
    "an exclusive queue has one batch out at a time, on all nodes, in the order of sending",
    "while a failed batch of an exclusive queue waits, nothing behind it is delivered",
  ],
  [MixesUpKeys, "any string is a key, and no two of them are mixed up"],
  [CutsLongKeys, "a key or a name that is no short string is refused, and nothing of its call is sent"],
  [MakesBatchesAsLargeAsItLikes, "no batch is larger than asked for", "a batch size below one is refused"],
  [
    SendsHalfOfABadCall,
    "a body that is no JSON value is refused by its place, and nothing of its call is sent",
  ],
  [SharesBodies, "each subscriber gets a copy of its own"],
  [RemembersTopics, "nothing is kept for those who subscribe later"],
  [PublishesToOneOfMany, "a topic reaches everybody who is subscribed, in the order of publishing"],
  [
    WaitsForSubscribers,
    "a slow subscriber holds up neither the publisher nor the others, and misses nothing itself",
  ],
  [DropsASubscriberThatThrows, "a handler that throws or rejects loses that message and gets the next"],
  [RunsASubscriberSideBySide, "a subscriber gets one message at a time"],
  [
    CannotUnsubscribe,
    "after a subscription is closed nothing arrives, and closing waits for its handler",
    "a handler that is subscribed twice is called twice",
  ],
  [MixesQueuesAndTopics, "topics do not mix, and a queue of the same name is another thing"],
  [AnswersAfterItsStop, "every call on stopped channels is refused with STOPPED"],
];

describe("the contract of channels finds out channels that", { concurrency: true }, () => {
  for (const [Kind, ...sentences] of BROKEN) {
    const within = withChannels(async () => {
      const channels = new Kind({ clock: systemClock });
      await channels.start();
      return { here: channels, there: channels };
    });
    const mistake = Kind.name.replaceAll(/(?!^)[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
    for (const sentence of sentences) {
      test(`${mistake}: ${sentence}`, () => findsOut(channelsPromises, sentence, within));
    }
  }
});
