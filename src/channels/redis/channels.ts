/**
 * Channels through Redis Streams.
 *
 * - **Queues** are streams with one consumer group each, read by scripts (queue-scripts.ts). Messages of a consumer stay pending
 *   under its name and return when its node dies. Handled messages are deleted, and so is an empty stream without consumers.
 * - **Topics** are one short stream that every node reads from its last position. Subscribers in this process receive messages
 *   at once and in order, also without Redis. `publish` rejects with STORE_UNAVAILABLE when other nodes could not be reached.
 *
 * An empty queue costs no read and no timer, only an entry in the list of idle consumers. A sender wakes one of them through the stream of
 * its node, which is read together with the topics, so an owner of ten thousand jobs can consume from one queue per job. Few shared streams
 * would need as few reads, but a group gives each entry to any node, and only the owner needs it.
 *
 * Connections: one for commands, one for the blocking read.
 */

import { checkRedis, Redis, type RedisOptions } from "../../platform/drivers/redis/redis.ts";
import type { RedisSession } from "../../platform/drivers/redis/session.ts";
import { Loop } from "../../platform/loop.ts";
import { startWith } from "../../platform/service.ts";
import { BaseChannels, LEASE_MS, type OpenedQueue, type SharedChannelsOptions } from "../base-channels.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { QueueConsumer } from "../queue-consumer.ts";
import { Listener } from "./listener.ts";
import { QueueMessages, type RedisSource } from "./queue-messages.ts";
import { ConsumerHeartbeat, type TopicsPosition } from "./consumer-heartbeat.ts";
import type { RedisLink } from "./link.ts";
import { Publisher } from "./publisher.ts";

export interface RedisChannelsOptions extends SharedChannelsOptions, RedisOptions {
  /** The name of this incarnation of the node, by which others declare it dead; no two may have the same. */
  readonly consumer?: string;
  readonly beatMs?: number;
  readonly topicEntriesMax?: number;
}

const COMMAND_MS = 5_000;
/** Far enough below the lease that some may be late. Redis having forgotten us is noticed after this when nothing else happens. */
const BEAT_MS = 1_000;
/** A node whose connection breaks in a flood of hints has so many entries, each with many hints, to be back without a gap. */
const TOPIC_ENTRIES_MAX = 4_000;
/** Idle consumers that take by themselves with each beat, in turns: the net below wake-ups that went to a dead node. */
const POLLS_MAX = 100;

export class RedisChannels extends BaseChannels<RedisSource> {
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
  /** By the numbers under which they are woken, in the order in which they take by themselves next. */
  readonly #consumers = new Map<number, { readonly source: RedisSource; readonly consumer: QueueConsumer }>();
  #count = 0;
  readonly #missed = new Set<string>();
  #position: TopicsPosition | null = null;
  readonly #beats: Loop;

  constructor(options: RedisChannelsOptions) {
    super(options);
    const { clock, random, log, commandMs = COMMAND_MS } = options;
    this.#o = options;
    this.#beats = new Loop(clock, () => this.#beat());
    this.#redis = new Redis(options);
    this.#commands = this.#redis.session({
      commandMs,
      onOpen: async (session) => {
        await this.#messages.prepare(session);
        const position = await this.#presence.hello(session);
        this.#position ??= position;
      },
      onReady: () => {
        if (this.running) this.#wakeAll();
      },
    });
    this.#reading = this.#redis.session({
      commandMs,
      onReady: () => this.#listener.opened(),
      onLost: (err) => {
        if (this.running) log?.warn({ err }, "topics are not heard at the moment");
      },
    });
    const link: RedisLink = {
      clock,
      random,
      log,
      session: this.#commands,
      key: (...parts) => this.#redis.keys.key(...parts),
      origin: options.consumer ?? random.uuid().replaceAll("-", "").slice(0, 16),
    };
    this.#presence = new ConsumerHeartbeat(link, {
      leaseMs: options.leaseMs ?? LEASE_MS,
      lastWake: () => this.#listener.lastWake,
      onTopics: (count) => this.#listener.topicsAreAt(count),
      onForgotten: () => this.#forgotten(),
    });
    this.#messages = new QueueMessages(link, this.#presence);
    this.#publisher = new Publisher(link, options.topicEntriesMax ?? TOPIC_ENTRIES_MAX);
    this.#listener = new Listener(link, {
      session: this.#reading,
      commandMs,
      presence: this.#presence,
      topics: this.topics,
      wake: (number, queue) => this.#wake(number, queue),
      onGap: () => this.#o.onGap?.(),
    });
  }

  get counters() {
    return this.#listener.counters;
  }

  protected async store(queue: string, messages: readonly EncodedMessage[]): Promise<void> {
    await this.#messages.send(queue, messages);
  }

  protected open(queue: OpenedQueue): RedisSource {
    return this.#messages.source(queue, ++this.#count);
  }

  protected pollMs(): null {
    return null;
  }

  protected released(queue: string): void {
    void this.#messages.due(queue).catch(() => {}); // a consumer that takes by itself finds it
  }

  protected broadcast(topic: string, messages: readonly EncodedMessage[]): Promise<void> {
    return this.#publisher.publish(topic, messages);
  }

  protected override onConsume(source: RedisSource, consumer: QueueConsumer): void {
    this.#consumers.set(source.number, { source, consumer });
  }

  /** Not waited for: it is sent before whatever is asked for later, and when it fails the lease is the net. */
  protected override onLeave(source: RedisSource, _queue: string, last: boolean): void {
    this.#consumers.delete(source.number);
    void source.leave(last).catch(() => {});
  }

  async takeOver(consumer: string): Promise<void> {
    this.requireRunning();
    await this.#presence.declareDead(consumer);
  }

  protected async onStart(): Promise<void> {
    this.#position = null;
    await startWith(this.#commands, async () => {
      const { evicts: policy } = await checkRedis(this.#commands, this.#redis.shown);
      if (policy !== null) {
        const message = "Redis may evict what is not handled yet: set maxmemory-policy to noeviction";
        this.#o.log?.warn({ policy }, message);
      }
      await this.#reading.start();
    });
    this.#listener.start(this.#position!);
    this.#beats.start();
  }

  protected async onStop(): Promise<void> {
    await this.closeAll();
    const beating = this.#beats.stop();
    const lastWords = this.#lastWords().catch(() => {}); // the lease is the net
    await this.finish(lastWords);
    await Promise.all([this.#reading.stop(), this.#commands.stop()]);
    await Promise.all([this.#listener.stop(), beating, lastWords]);
    this.#presence.end();
  }

  async #lastWords(): Promise<void> {
    await Promise.all([this.#messages.idle(), this.#publisher.idle()]);
    await this.#presence.leave();
  }

  async #beat(): Promise<number> {
    const { random, beatMs = BEAT_MS } = this.#o;
    await this.#presence.beat().catch(() => {}); // the next one, or a new connection, tries again
    this.#passOn();
    this.#wakeSome();
    return beatMs * (0.75 + random.chance() / 2);
  }

  #wake(number: number, queue: string): void {
    const woken = this.#consumers.get(number);
    woken?.source.woken();
    woken?.consumer.wake();
    if (woken || queue === "") return;
    this.#missed.add(queue);
    this.#passOn();
  }

  #passOn(): void {
    for (const queue of this.#missed) {
      this.#missed.delete(queue);
      void this.#messages.passOn(queue).catch(() => this.#missed.add(queue)); // with the next beat
    }
  }

  #wakeAll(): void {
    for (const { consumer } of this.#consumers.values()) consumer.wake();
  }

  #wakeSome(): void {
    let left = Math.min(POLLS_MAX, this.#consumers.size);
    for (const [number, entry] of this.#consumers) {
      if (left-- === 0) return;
      // Behind the others for the next time.
      this.#consumers.delete(number);
      this.#consumers.set(number, entry);
      if (entry.consumer.idle) entry.consumer.wake();
    }
  }

  /** Redis knows us by a new name, and nothing of what was sent under the old one. */
  #forgotten(): void {
    for (const { source } of this.#consumers.values()) source.forgotten();
    this.#wakeAll();
    this.#o.onGap?.();
  }
}
