/**
 * Channels through one PostgreSQL database.
 *
 * - **Topics** are notifications. Subscribers in this process receive messages at once, without the database: in order,
 *   also
 *   while it is unavailable; our own messages that return from the database are only counted. `publish` rejects with
 *   STORE_UNAVAILABLE when other nodes could not be reached.
 * - **Queues** are rows. A notification wakes the consumers, which also poll.
 *
 * Connections: one that sends and one that listens, and a third one for queues when they are used. Behind a transaction
 * pooler LISTEN receives nothing: topics then reach only the subscribers of this process, and queues depend on polling.
 */

import { createHash } from "node:crypto";
import { BatonError } from "../../core/errors.ts";
import { Batcher } from "../../platform/batcher.ts";
import type { Clock } from "../../platform/clock.ts";
import { plainSchema, write } from "../../platform/drivers/postgres/postgres.ts";
import { PoolerCheck } from "../../platform/drivers/postgres/pooler-check.ts";
import { PostgresSession, type PostgresSessionOptions } from "../../platform/drivers/postgres/session.ts";
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
import { checkBatchMax, checkName, type EncodedMessage, encodeMessage } from "../message-encoding.ts";
import { Subscriptions } from "../subscriptions.ts";
import { Consumer } from "./consumer.ts";
import { OrderedDelivery } from "./ordered-delivery.ts";
import { Listener } from "./listener.ts";
import { QueueMessages } from "./queue-messages.ts";
import { Publisher } from "./publisher.ts";

export interface PostgresChannelsOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Two clusters in one database have a schema each, and do not hear each other. */
  readonly schema?: string;
  readonly log?: Pick<Log, "info" | "warn">;
  readonly applicationName?: string;
  readonly pooler?: PoolerCheck;
  /** False: as behind a pooler. */
  readonly listen?: boolean;
  /** Hints may have been missed, and are heard again now: a good moment to look into the store. */
  readonly onGap?: () => void;
  readonly connectMs?: number;
  readonly statementMs?: number;
  readonly probeMs?: number;
  readonly answerMs?: number;
  readonly pollMs?: number;
  readonly leaseMs?: number;
}

/** A deaf connection costs polling instead of hints for this long. Each node hears the probes of all others. */
const PROBE_MS = 5_000;
/** Shorter, and a server that is merely busy loses us a connection that works. */
const ANSWER_MS = 2_000;
const POLL_MS = 1_000;
/** What is under way at a stop has so long. A server that is silent would hold it up for all of a statement's deadline. */
const LAST_WORDS_MS = 500;
/** What a consumer that died had taken is delivered again after this; a handler that blocks for longer runs twice. */
const LEASE_MS = 10_000;

/** Our timers may fire early and the database rounds its time: who looks a moment too soon sleeps until the next poll. */
const CLOCKS_DIFFER_MS = 5;

const LAZY_COMMITS = write("channels-lazy", "SET synchronous_commit = off");

interface Sending {
  readonly queue: string;
  readonly messages: readonly EncodedMessage[];
}

export class PostgresChannels extends Lifecycle implements Channels {
  readonly kind = "postgres";
  readonly shared = true;
  readonly notifiesOnSubmit = true;
  readonly limits = [];
  readonly #o: PostgresChannelsOptions;
  readonly #pooler: PoolerCheck;
  readonly #sender: PostgresSession;
  readonly #publisher: Publisher;
  readonly #listener: Listener;
  /** Whether others hear us and we hear them. */
  #connected = false;
  readonly #queues: PostgresSession;
  readonly #messages: QueueMessages;
  readonly #outbox: Batcher<Sending, undefined>;
  readonly #topics: LocalTopics;
  readonly #consumers = new Map<string, Set<Consumer>>();
  readonly #subscriptions = new Subscriptions();
  /** Redeliveries that are waited for, each with what calls it off. */
  readonly #redeliveries = new Set<() => void>();

  constructor(options: PostgresChannelsOptions) {
    super();
    const { url, clock, random, log } = options;
    this.#o = options;
    this.#pooler = options.pooler ?? new PoolerCheck({ url, clock });
    const session: PostgresSessionOptions = { ...sessionOptions(options), pooler: this.#pooler };
    const channel = channelName(plainSchema(options.schema));
    const origin = random.uuid().replaceAll("-", "").slice(0, 16);
    this.#topics = new LocalTopics(log);
    this.#sender = new PostgresSession({
      ...session,
      onOpen: async (opened) => void (await opened.query(LAZY_COMMITS)),
    });
    this.#publisher = new Publisher({ session: this.#sender, channel, origin, random });
    const inbox = new OrderedDelivery({
      session: this.#sender,
      log,
      wanted: (topic) => this.#topics.hasSubscribers(topic),
      deliver: (topic, messages) => this.#topics.deliver(topic, messages),
      onQueue: (queue) => this.#wake(queue),
    });
    this.#listener = new Listener({
      session,
      clock,
      log,
      channel,
      origin,
      probeMs: options.probeMs ?? PROBE_MS,
      answerMs: options.answerMs ?? ANSWER_MS,
      probe: () => this.#publisher.probe(),
      hear: (entries) => inbox.receive(entries),
      onGap: () => this.#gap(),
    });
    this.#queues = new PostgresSession(session);
    this.#messages = new QueueMessages(this.#queues, origin);
    this.#outbox = new Batcher({ flush: (batch) => this.#insert(batch) });
  }

  get counters() {
    return { ...this.#publisher.counters, ...this.#listener.counters };
  }

  async send(queue: string, messages: readonly Message[]): Promise<void> {
    this.#usable();
    checkName("queue", queue);
    const texts = encodeMessage(messages);
    if (texts.length > 0) await this.#outbox.add({ queue, messages: texts });
  }

  consume(
    queue: string,
    handler: (batch: readonly Delivery[]) => Promise<void>,
    { batchMax = BATCH_MAX }: ConsumeOptions = {},
  ): Subscription {
    this.#usable();
    checkName("queue", queue);
    checkBatchMax(batchMax);
    const { clock, random, log, pollMs = POLL_MS, leaseMs = LEASE_MS } = this.#o;
    const consumer = new Consumer({
      queue,
      handler,
      batchMax,
      clock,
      random,
      log,
      pollMs,
      leaseMs,
      messages: this.#messages,
      onLeft: (delayMs) => this.#left(queue, delayMs),
      onMore: () => this.#wake(queue),
    });
    const consumers = this.#consumers.get(queue) ?? new Set();
    this.#consumers.set(queue, consumers.add(consumer));
    return this.#subscriptions.add({
      close: async () => {
        consumers.delete(consumer);
        await consumer.close();
      },
    });
  }

  async publish(topic: string, messages: readonly Message[]): Promise<void> {
    this.#usable();
    checkName("topic", topic);
    const texts = encodeMessage(messages);
    if (texts.length === 0) return;
    this.#topics.deliver(topic, texts);
    if (this.#connected) await this.#publisher.publish(topic, texts);
  }

  subscribe(topic: string, handler: (message: Message) => void | Promise<void>): Subscription {
    this.#usable();
    checkName("topic", topic);
    return this.#subscriptions.add(this.#topics.subscribe(topic, handler));
  }

  protected async onStart(): Promise<void> {
    this.#connected = this.#o.listen !== false && !(await this.#pooler.pooled());
    if (!this.#connected) return;
    await this.#sender.start();
    try {
      await this.#publisher.forgetOld();
      await this.#listener.start();
    } catch (error) {
      await this.#sender.stop();
      throw error;
    }
  }

  protected async onStop(): Promise<void> {
    await this.#subscriptions.closeAll();
    for (const callOff of this.#redeliveries) callOff();
    this.#redeliveries.clear();
    const over = new AbortController();
    const sent = Promise.all([this.#outbox.idle(), this.#publisher.idle()]);
    await Promise.race([sent, this.#o.clock.sleep(LAST_WORDS_MS, over.signal)]);
    over.abort();
    // Together: a probe that is under way ends with the session that sent it.
    await Promise.all([this.#listener.stop(), this.#queues.stop(), this.#sender.stop()]);
  }

  async #insert(batch: readonly Sending[]): Promise<undefined[]> {
    await this.#messages.send(
      batch.flatMap(({ queue, messages }) => messages.map((message) => ({ queue, ...message }))),
    );
    for (const queue of new Set(batch.map((sending) => sending.queue))) {
      this.#wake(queue);
      void this.#announce(queue);
    }
    return batch.map(() => undefined);
  }

  /**
   * Something was given back, for now or for later. The others hear of it first: our own consumers, being nearer, would
   * always be the ones who try again.
   */
  #left(queue: string, delayMs: number): void {
    if (delayMs === 0) void this.#announce(queue).then(() => this.#wake(queue));
    else if (this.running) {
      const callOff = this.#o.clock.after(delayMs + CLOCKS_DIFFER_MS, () => {
        this.#redeliveries.delete(callOff);
        this.#left(queue, 0);
      });
      this.#redeliveries.add(callOff);
    }
  }

  /** Wakes the consumers of other nodes. They look by themselves too, so a failure is not told. */
  async #announce(queue: string): Promise<void> {
    if (this.#connected) await this.#publisher.announce(queue).catch(() => {});
  }

  #wake(queue: string): void {
    for (const consumer of this.#consumers.get(queue) ?? []) consumer.wake();
  }

  #gap(): void {
    for (const queue of this.#consumers.keys()) this.#wake(queue);
    this.#o.onGap?.();
  }

  #usable(): void {
    if (!this.running) throw new BatonError("STOPPED", "the channels are not running; start them first");
  }
}

function sessionOptions(options: PostgresChannelsOptions): PostgresSessionOptions {
  const { url, clock, random, schema, applicationName, connectMs, statementMs } = options;
  return {
    url,
    clock,
    random,
    ...(schema !== undefined && { schema }),
    ...(applicationName !== undefined && { applicationName }),
    ...(connectMs !== undefined && { connectMs }),
    ...(statementMs !== undefined && { statementMs }),
  };
}

const CHANNEL_LENGTH_MAX = 63;

/** The SQL functions that submit jobs (store/postgres/jobs/submit-function.ts) notify on it too, and must agree. */
function channelName(schema: string): string {
  const name = `${schema}.hints`;
  if (name.length <= CHANNEL_LENGTH_MAX) return name;
  return `hints.${createHash("sha256").update(schema).digest("hex").slice(0, 32)}`;
}
