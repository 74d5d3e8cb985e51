/**
 * Channels through one PostgreSQL database.
 *
 * - **Topics** are notifications. Subscribers in this process receive messages at once and in order, also without the database.
 *   `publish` rejects with STORE_UNAVAILABLE when other nodes could not be reached.
 * - **Queues** are rows. A notification wakes the consumers, which also poll.
 *
 * Connections: one that sends, one that listens, and a third one for queues when they are used. Behind a transaction pooler LISTEN receives
 * nothing: topics reach only the subscribers of this process, and queues depend on polling.
 */

import { hash } from "node:crypto";
import { Batcher } from "../../platform/batcher.ts";
import { plainSchema, type PostgresAddress, write } from "../../platform/drivers/postgres/postgres.ts";
import { poolerCheck, type PoolerCheck } from "../../platform/drivers/postgres/pooler-check.ts";
import { PostgresSession, type PostgresSessionOptions } from "../../platform/drivers/postgres/session.ts";
import { startWith } from "../../platform/service.ts";
import { BaseChannels, LEASE_MS, type OpenedQueue, type SharedChannelsOptions } from "../base-channels.ts";
import type { EncodedMessage } from "../message-encoding.ts";
import type { QueueSource } from "../queue-consumer.ts";
import { Listener } from "./listener.ts";
import { QueueMessages, type TakenRows } from "./queue-messages.ts";
import { Publisher } from "./publisher.ts";

/** Two clusters in one database have a schema each, and do not hear each other. */
export interface PostgresChannelsOptions extends SharedChannelsOptions, PostgresAddress {
  /** False: as behind a pooler. */
  readonly listen?: boolean;
  readonly probeMs?: number;
  readonly answerMs?: number;
  readonly pollMs?: number;
}

/** A deaf connection costs polling instead of hints for this long. Each node hears the probes of all others. */
const PROBE_MS = 5_000;
/** Shorter, and a server that is merely busy loses us a connection that works. */
const ANSWER_MS = 2_000;
const POLL_MS = 1_000;

const LAZY_COMMITS = write("channels-lazy", "SET synchronous_commit = off");

interface Sending {
  readonly queue: string;
  readonly messages: readonly EncodedMessage[];
}

export class PostgresChannels extends BaseChannels<QueueSource<TakenRows>> {
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
  readonly #privateChannel: string;
  readonly #queues: PostgresSession;
  readonly #messages: QueueMessages;
  readonly #outbox: Batcher<Sending, void>;

  constructor(options: PostgresChannelsOptions) {
    super(options);
    const { url, clock, random, log } = options;
    this.#o = options;
    this.#pooler = options.pooler ?? poolerCheck({ url, clock });
    const session: PostgresSessionOptions = { ...options, pooler: this.#pooler };
    const channel = channelName(plainSchema(options.schema));
    const origin = random.uuid().replaceAll("-", "").slice(0, 16);
    this.#privateChannel = `private.${random.uuid()}`;
    this.#sender = new PostgresSession({
      ...session,
      onOpen: async (opened) => void (await opened.query(LAZY_COMMITS)),
    });
    this.#publisher = new Publisher({ session: this.#sender, channel, origin, clock, random });
    this.#listener = new Listener({
      session,
      clock,
      log,
      channel,
      privateChannel: this.#privateChannel,
      origin,
      probeMs: options.probeMs ?? PROBE_MS,
      answerMs: options.answerMs ?? ANSWER_MS,
      publisher: this.#publisher,
      sender: this.#sender,
      topics: this.topics,
      onQueue: (queue) => this.wake(queue),
      onGap: () => this.#gap(),
    });
    this.#queues = new PostgresSession(session);
    const { leaseMs = LEASE_MS } = options;
    this.#messages = new QueueMessages({ session: this.#queues, clock, origin, leaseMs });
    this.#outbox = new Batcher({ clock, flush: (batch) => this.#insert(batch) });
  }

  get privateChannel(): string | null {
    return this.#connected ? this.#privateChannel : null;
  }

  get counters() {
    return { ...this.#publisher.counters, ...this.#listener.counters };
  }

  protected async store(queue: string, messages: readonly EncodedMessage[]): Promise<void> {
    await this.#outbox.add({ queue, messages });
  }

  protected open(queue: OpenedQueue): QueueSource<TakenRows> {
    return this.#messages.source(queue);
  }

  protected pollMs(): number {
    const { random, pollMs = POLL_MS } = this.#o;
    return pollMs * (0.75 + random.chance() / 2);
  }

  /** Other nodes are notified first: our own consumers, being nearer, would always be the ones that try again. */
  protected released(queue: string): void {
    void this.#announce(queue).then(() => this.wake(queue));
  }

  protected async broadcast(topic: string, messages: readonly EncodedMessage[]): Promise<void> {
    if (this.#connected) await this.#publisher.publish(topic, messages);
  }

  protected override onLeave(_: QueueSource<TakenRows>, queue: string): void {
    this.released(queue);
  }

  protected async onStart(): Promise<void> {
    this.#connected = this.#o.listen !== false && !(await this.#pooler.pooled());
    if (!this.#connected) return;
    await startWith(this.#sender, async () => {
      await this.#publisher.forgetOld();
      await this.#listener.start();
    });
  }

  protected async onStop(): Promise<void> {
    await this.closeAll();
    await this.finish(Promise.all([this.#outbox.idle(), this.#publisher.idle()]));
    // Together: a probe that is under way ends with the session that sent it.
    await Promise.all([this.#listener.stop(), this.#queues.stop(), this.#sender.stop()]);
  }

  async #insert(batch: readonly Sending[]): Promise<void> {
    await this.#messages.send(
      batch.flatMap(({ queue, messages }) => messages.map((message) => ({ queue, ...message }))),
    );
    for (const queue of new Set(batch.map((sending) => sending.queue))) {
      this.wake(queue);
      void this.#announce(queue);
    }
  }

  /** Wakes the consumers of other nodes. They also poll, so a failure is not reported. */
  async #announce(queue: string): Promise<void> {
    if (this.#connected) await this.#publisher.announce(queue).catch(() => {});
  }

  #gap(): void {
    for (const queue of this.queues) this.wake(queue);
    this.#o.onGap?.();
  }
}

const CHANNEL_LENGTH_MAX = 63;

/** The SQL functions that submit jobs (store/postgres/jobs/submit-function.ts) notify on it too, and must agree. */
function channelName(schema: string): string {
  const name = `${schema}.hints`;
  if (name.length <= CHANNEL_LENGTH_MAX) return name;
  return `hints.${hash("sha256", schema).slice(0, 32)}`;
}
