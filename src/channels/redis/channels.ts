/**
 * Channels through Redis Streams.
 *
 * - **Queues** are streams with one consumer group each, read from the beginning. Scripts assign their messages
 *   (queue-keys.ts),
 *   because a group alone does not preserve the order of a key: it gives the next entry to any consumer. Messages of a consumer
 *   stay pending under its name and return to the queue when it dies. Handled messages are deleted, and so is an empty stream
 *   when its last consumer leaves, so that nothing has to be trimmed or cleaned up when a job ends.
 * - **Topics** are one short stream that every node reads from its last position. Subscribers in this process receive
 *   messages
 *   at once, without Redis: in order, also while it is unavailable. `publish` rejects with STORE_UNAVAILABLE when other nodes
 *   could not be reached.
 *
 * An empty queue costs next to nothing: no read, no timer, only an entry in the list of idle consumers. A sender wakes
 * one of them through the stream of its node, which is read, together with the topics, by the node's single blocking
 * read. So an owner of ten thousand jobs can consume from one queue per job, and receives exactly the messages for its
 * jobs. A few shared streams for all jobs would need as few reads, but a group gives each entry to any node, and only
 * the owner needs it.
 *
 * Connections: one for commands, one for the blocking read.
 */

import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { checkRedis, Redis } from "../../platform/drivers/redis/redis.ts";
import type { RedisSession } from "../../platform/drivers/redis/session.ts";
import type { Log } from "../../platform/log.ts";
import type { Random } from "../../platform/random.ts";
import { Lifecycle } from "../../platform/service.ts";
import {
  BATCH_MAX,
  type Channels,
  type ConsumeOptions,
  type Delivery,
  type Message,
  type Subscription,
} from "../channels.ts";
import { LocalTopics } from "../local-topics.ts";
import { checkBatchMax, checkName, encodeMessage } from "../message-encoding.ts";
import { Subscriptions } from "../subscriptions.ts";
import { Consumer } from "./consumer.ts";
import { Listener } from "./listener.ts";
import { QueueMessages, type QueueConsumer } from "./queue-messages.ts";
import { ConsumerHeartbeat, type TopicsPosition } from "./consumer-heartbeat.ts";
import { Publisher } from "./publisher.ts";
import { isStale } from "./queue-keys.ts";
import { ConsumerRegistry } from "./consumer-registry.ts";

export interface RedisChannelsOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Two clusters on one server have a prefix each, and do not hear each other. */
  readonly prefix?: string;
  readonly log?: Pick<Log, "info" | "warn">;
  /** Shown in `CLIENT LIST`. No spaces. */
  readonly name?: string;
  /** What this life of the node is called by those who find it dead; no two may have the same. */
  readonly consumer?: string;
  /** Hints may have been missed, and are heard again now: a good moment to look into the store. */
  readonly onGap?: () => void;
  readonly connectMs?: number;
  readonly commandMs?: number;
  readonly leaseMs?: number;
  readonly beatMs?: number;
  readonly topicEntriesMax?: number;
}

const COMMAND_MS = 5_000;
/** What a consumer that died had taken is delivered again after this; a handler that blocks for longer runs twice. */
const LEASE_MS = 10_000;
/** Far enough below the lease that some may be late. Redis having forgotten us is noticed after this when nothing else happens. */
const BEAT_MS = 1_000;
/** A node whose connection breaks in a flood of hints has so many entries, each with many hints, to be back without a gap. */
const TOPIC_ENTRIES_MAX = 4_000;
/** What is under way at a stop has so long. A server that is silent would hold it up for all of a command's deadline. */
const LAST_WORDS_MS = 500;
/** Our timers may fire early and Redis rounds its time. */
const CLOCKS_DIFFER_MS = 5;

export class RedisChannels extends Lifecycle implements Channels {
  readonly kind = "redis";
  readonly shared = true;
  readonly notifiesOnSubmit = false;
  readonly limits = [
    "That work goes on without Redis: while it is away nobody leads and no job begins; what runs goes on, and its results are stored.",
  ];
  readonly #o: RedisChannelsOptions;
  readonly #redis: Redis;
  readonly #commands: RedisSession;
  readonly #reading: RedisSession;
  readonly #messages: QueueMessages;
  readonly #presence: ConsumerHeartbeat;
  readonly #publisher: Publisher;
  readonly #listener: Listener;
  readonly #topics: LocalTopics;
  readonly #subscriptions = new Subscriptions();
  readonly #seats = new ConsumerRegistry();
  /** Queues for which one was woken who has gone. */
  readonly #missed = new Set<string>();
  #position: TopicsPosition | null = null;
  /** What Redis believes to be with us may be wrong. */
  #doubtful = false;
  #over = new AbortController();
  #beating: Promise<void> = Promise.resolve();
  /** Redeliveries that are waited for, each with what calls it off. */
  readonly #redeliveries = new Set<() => void>();

  constructor(options: RedisChannelsOptions) {
    super();
    const { clock, random, log, commandMs = COMMAND_MS } = options;
    this.#o = options;
    this.#redis = new Redis(options);
    const key = (...parts: readonly string[]): string => this.#redis.keys.key(...parts);
    const origin = options.consumer ?? random.uuid().replaceAll("-", "").slice(0, 16);
    this.#topics = new LocalTopics(log);
    this.#commands = this.#redis.dedicated({
      commandMs,
      onOpen: async (session) => {
        await this.#messages.prepare(session);
        const position = await this.#presence.hello(session);
        this.#position ??= position;
      },
      onReady: () => this.#reopened(),
    });
    this.#reading = this.#redis.dedicated({
      commandMs,
      onReady: () => this.#listener.opened(),
      onLost: (err) => {
        if (this.running) log?.warn({ err }, "topics are not heard at the moment");
      },
    });
    this.#messages = new QueueMessages({
      session: this.#commands,
      key,
      speaker: () => this.#presence.speaker,
      onDoubt: (reason) => this.#doubt(reason),
    });
    this.#presence = new ConsumerHeartbeat({
      session: this.#commands,
      key,
      clock,
      log,
      consumer: origin,
      leaseMs: options.leaseMs ?? LEASE_MS,
      lastWake: () => this.#listener.lastWake,
      onTopics: (count) => this.#listener.topicsAreAt(count),
      onForgotten: () => this.#forgotten(),
    });
    this.#publisher = new Publisher({
      session: this.#commands,
      key,
      origin,
      random,
      entriesMax: options.topicEntriesMax ?? TOPIC_ENTRIES_MAX,
    });
    this.#listener = new Listener({
      session: this.#reading,
      key,
      clock,
      log,
      origin,
      consumer: () => this.#presence.speaker.name,
      commandMs,
      wanted: (topic) => this.#topics.hasSubscribers(topic),
      deliver: (topic, messages) => this.#topics.deliver(topic, messages),
      wake: (number, queue) => {
        if (this.#seats.wake(number) || queue === "") return;
        this.#missed.add(queue);
        this.#passOn();
      },
      onGap: () => this.#o.onGap?.(),
    });
  }

  get counters() {
    return { ...this.#publisher.counters, ...this.#listener.counters };
  }

  async send(queue: string, messages: readonly Message[]): Promise<void> {
    this.#usable();
    checkName("queue", queue);
    const texts = encodeMessage(messages);
    if (texts.length > 0) await this.#messages.send(queue, texts);
  }

  consume(
    queue: string,
    handler: (batch: readonly Delivery[]) => Promise<void>,
    { batchMax = BATCH_MAX }: ConsumeOptions = {},
  ): Subscription {
    this.#usable();
    checkName("queue", queue);
    checkBatchMax(batchMax);
    const { clock, log } = this.#o;
    const { seat, consumer } = this.#seats.take(
      queue,
      (taken) =>
        new Consumer({
          seat: taken,
          handler,
          batchMax,
          clock,
          log,
          messages: this.#messages,
          oursUntil: () => this.#presence.oursUntil,
          onRest: (restMs) => this.#rest(queue, restMs),
          onLost: () => (this.#doubtful = true),
        }),
    );
    return this.#subscriptions.add({ close: () => this.#leave(seat, consumer) });
  }

  async publish(topic: string, messages: readonly Message[]): Promise<void> {
    this.#usable();
    checkName("topic", topic);
    const texts = encodeMessage(messages);
    if (texts.length === 0) return;
    this.#topics.deliver(topic, texts);
    await this.#publisher.publish(topic, texts);
  }

  subscribe(topic: string, handler: (message: Message) => void | Promise<void>): Subscription {
    this.#usable();
    checkName("topic", topic);
    return this.#subscriptions.add(this.#topics.subscribe(topic, handler));
  }

  /** What a consumer had that is known to be dead is delivered again now, without waiting for its lease. */
  async takeOver(consumer: string): Promise<void> {
    this.#usable();
    await this.#presence.condemn(consumer);
  }

  protected async onStart(): Promise<void> {
    this.#over = new AbortController();
    this.#position = null;
    await this.#commands.start();
    try {
      await checkRedis(this.#commands, this.#redis.shown);
      await this.#warnOfEviction();
      await this.#reading.start();
    } catch (error) {
      await this.#commands.stop();
      throw error;
    }
    this.#listener.start(this.#position!);
    this.#beating = this.#beat(this.#over.signal);
  }

  protected async onStop(): Promise<void> {
    await this.#subscriptions.closeAll();
    this.#over.abort();
    for (const callOff of this.#redeliveries) callOff();
    this.#redeliveries.clear();
    const waited = new AbortController();
    const lastWords = this.#lastWords().catch(() => {}); // the lease is the net
    await Promise.race([lastWords, this.#o.clock.sleep(LAST_WORDS_MS, waited.signal)]);
    waited.abort();
    await Promise.all([this.#reading.stop(), this.#commands.stop()]);
    await Promise.all([this.#listener.stop(), this.#beating, lastWords]);
    this.#presence.end();
  }

  async #lastWords(): Promise<void> {
    await Promise.all([this.#messages.idle(), this.#publisher.idle()]);
    await this.#presence.goodbye();
  }

  async #leave(seat: QueueConsumer, consumer: Consumer): Promise<void> {
    await consumer.close();
    const left = this.#seats.leave(seat);
    if (left === null) return;
    // Not waited for: it goes before whatever is asked for later, and when it fails the lease is the net.
    void this.#messages.leave(seat, left === 0).catch(() => {});
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { clock, random, beatMs = BEAT_MS } = this.#o;
    while (!signal.aborted) {
      await this.#presence.beat().catch(() => {}); // the next one, or a new connection, tries again
      if (this.#doubtful && !signal.aborted) void this.#mend();
      this.#passOn();
      this.#seats.wakeSome();
      // Spread, so that many nodes do not beat all at the same moment.
      await clock.sleep(beatMs * (0.75 + random.chance() / 2), signal);
    }
  }

  #passOn(): void {
    for (const queue of this.#missed) {
      this.#missed.delete(queue);
      void this.#messages.passOn(queue).catch(() => this.#missed.add(queue)); // with the next beat
    }
  }

  #reopened(): void {
    if (!this.running) return;
    this.#doubtful = true;
    void this.#mend();
  }

  #doubt(reason: unknown): void {
    this.#doubtful = true;
    if (isStale(reason)) void this.#presence.beat().catch(() => {}); // the next one tries again
  }

  /** Beside the beats: with thousands of queues it takes a while. */
  async #mend(): Promise<void> {
    this.#doubtful = false;
    try {
      await this.#messages.mend(this.#seats.queues);
      this.#seats.wakeAll();
    } catch {
      this.#doubtful = true; // the next beat, or a new connection, tries again
    }
  }

  /** Redis knows us by a new name: it has nothing of what we told the old one. */
  #forgotten(): void {
    this.#seats.forgotten();
    this.#o.onGap?.();
  }

  #rest(queue: string, restMs: number): void {
    if (!this.running) return;
    const callOff = this.#o.clock.after(restMs + CLOCKS_DIFFER_MS, () => {
      this.#redeliveries.delete(callOff);
      void this.#messages.rested(queue).catch(() => {}); // whoever looks by himself finds it
    });
    this.#redeliveries.add(callOff);
  }

  async #warnOfEviction(): Promise<void> {
    const info = await this.#commands.send<string>(["INFO", "memory"]);
    const policy = /^maxmemory_policy:(.*?)\r?$/m.exec(info)?.[1];
    if (policy === undefined || policy === "noeviction") return;
    this.#o.log?.warn(
      { policy },
      "Redis may evict what is not handled yet: set maxmemory-policy to noeviction",
    );
  }

  #usable(): void {
    if (!this.running) throw new BatonError("STOPPED", "the channels are not running; start them first");
  }
}
