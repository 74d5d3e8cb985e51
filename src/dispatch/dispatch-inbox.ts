/**
 * A worker's end of push dispatch. It stands where the store's `claim` stands for a worker that helps itself: the same request, the
 * same answer.
 *
 *   dispatch queue ──> hand ──claim: accepted in the store──> the worker
 *        ^              |
 *        '──sent back <─'  no room, or not for us: nothing of it was claimed, so nothing is burnt
 *
 * What the worker would take is the limit of its last claim, less what that gave; and when its jobs are short, as much more as it
 * finished lately: those wait in hand, so that the next claim finds them. A message is done with when each of its jobs was accepted or
 * refused by the store, or has been sent on. A job that goes astray is found by the leader, when nobody accepts it.
 *
 * While nobody dispatches, the worker helps itself: the channels are away, or whoever leads does not push (a change of `dispatch.mode`,
 * node by node). A claim compares as an accept does, so it does not matter if somebody dispatches all the same.
 */

import type { Channels, Delivery, Subscription } from "../channels/channels.ts";
import type { CoordinatorHeartbeat, Dispatching } from "../channels/messages.ts";
import { dispatchRoute, queues, topics } from "../channels/names.ts";
import { listensTo } from "../core/dispatch.ts";
import { isSuspect, type Budgets } from "../core/job.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Accepted, AcceptRequest, DispatchedJob, OwnershipStore } from "../store/ownership.ts";
import type { Claimed, ClaimedJob, ClaimRequest, JobStore } from "../store/store.ts";
import { USED_MS } from "./dispatch-publisher.ts";
import { DispatchConsumers } from "./dispatch-consumers.ts";
import { DeliveryBatch, DispatchMessage } from "./dispatch-message.ts";
import { LocalBuffer } from "./local-buffer.ts";
import { WorkerHeartbeatPublisher, type WorkerState } from "./worker-heartbeat-publisher.ts";

export interface DispatchInboxOptions {
  readonly ownership: Pick<OwnershipStore, "accept">;
  /** The store's own claim, for when nobody dispatches. */
  readonly helpYourself: JobStore["claim"];
  readonly channels: Channels;
  readonly clock: Clock;
  readonly log: Log;
  readonly identity: NodeIdentity;
  readonly budgets: Budgets;
  /** The tasks that the worker knows. */
  readonly tasks: { names(): ReadonlySet<string> };
  readonly settings: {
    readonly concurrency: number;
    readonly queues: ReadonlySet<string> | null;
    readonly exceptQueues: ReadonlySet<string>;
    readonly heartbeatMs?: number;
    /** Without a word of anybody who dispatches for so long, the worker helps itself. */
    readonly unledMs?: number;
  };
  /** The worker: how many jobs run, and how many it finished in about a tenth of a second. */
  readonly load: () => { readonly running: number; readonly pace: number };
  /** There is something to claim. */
  readonly onMessages: () => void;
}

/** Jobs in hand beside what the worker would take, at most: a crash strands none of them, but urgent ones come behind them. */
const AHEAD_MAX = 4_000;
/** Messages of short jobs that come at a time; each has up to 25. With 40, a third of them was too much and went back. */
const SHORT_BATCH_MAX = 20;
/** How often it is looked at whether what is in hand is still wanted. */
const LOOK_MS = 100;
/** A worker that has not claimed for so long while something was in hand will not soon: its results are not taken, say. */
const HELD_MS = 1_000;
/** Who sends a message back so often that it could have been everywhere drops it: its mark times out. */
const PASSED_MAX = 20;
/** The same for a suspect, which goes back while nobody is too busy for other jobs. */
const SUSPECT_PASSED_MAX = 3;
const HEARTBEAT_MS = 1_000;
/** Longer than a leader names a dispatch queue after its last use: what is used is never let go. */
const UNUSED_MS = 2 * USED_MS;
/** Heartbeats in which nothing was heard of anybody who dispatches. Fewer, and a change of leaders is taken for it. */
const UNLED_HEARTBEATS = 5;

const NOTHING: Claimed = { jobs: [], held: true, nextDueInMs: null };

export class DispatchInbox extends Lifecycle {
  readonly #o: DispatchInboxOptions;
  readonly #buffer = new LocalBuffer();
  readonly #consumers: DispatchConsumers;
  readonly #beat: WorkerHeartbeatPublisher;
  readonly #taken: Record<string, number> = {};
  #suspectsTaken = 0;
  #takesSuspect = true;
  #appetite = 0;
  /** Jobs that the store is asked for. */
  #accepting = 0;
  #claimedAt = 0;
  /** When somebody was heard who dispatches. */
  #ledAt = 0;
  #helpsItself = false;
  #closed = true;
  #callOffLook: (() => void) | null = null;
  #subscriptions: Subscription[] = [];

  constructor(options: DispatchInboxOptions) {
    super();
    this.#o = options;
    const { channels, clock, identity, settings } = options;
    this.#consumers = new DispatchConsumers({ channels, onMessages: (...what) => this.#receive(...what) });
    this.#beat = new WorkerHeartbeatPublisher({
      channels,
      clock,
      identity,
      heartbeatMs: settings.heartbeatMs ?? HEARTBEAT_MS,
      state: () => this.#state(),
    });
  }

  protected onStart(): void {
    const { channels, settings } = this.#o;
    this.#closed = false;
    this.#appetite = 0;
    this.#led();
    for (const queue of settings.queues ?? []) this.#know([queues.dispatch(queue)], Infinity);
    this.#subscriptions = [
      channels.subscribe(topics.dispatching, ({ body }) => {
        const { channels: used, asks } = body as Dispatching;
        this.#led();
        this.#know(used);
        if (asks) this.#beat.beat();
      }),
      channels.subscribe(topics.coordinatorHeartbeat, ({ body }) => {
        const { leaderEpoch, dispatches } = body as CoordinatorHeartbeat;
        this.#know(dispatches);
        if (leaderEpoch === null) return;
        this.#led();
        this.#consumers.forget(this.#ledAt - UNUSED_MS);
      }),
    ];
    this.#beat.start();
  }

  protected async onStop(): Promise<void> {
    await this.close();
    this.#beat.stop();
    await Promise.all(this.#subscriptions.map((subscription) => subscription.close()));
  }

  /** Takes no more, and sends back what is in hand. What is being claimed goes to the worker all the same. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#callOffLook?.();
    this.#callOffLook = null;
    this.#adjust();
    await this.#consumers.close();
  }

  /** Takes again. */
  open(): void {
    this.#closed = false;
    this.#led();
    this.#adjust();
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    this.#appetite = request.limit;
    this.#takesSuspect = request.suspect;
    this.#claimedAt = this.#o.clock.monotonic();
    const messages = this.#pick(request);
    const runs = messages.flatMap(({ dispatch: { assignment }, jobs }) =>
      jobs.map(({ id, jobEpoch, ref }) => ({ id, jobEpoch, ref, assignment })),
    );
    if (runs.length === 0) {
      this.#adjust();
      return this.#unled() ? this.#o.helpYourself(request) : NOTHING;
    }
    this.#accepting = runs.length;
    const { author, worker, lease, leaseMs, opens } = request;
    const answer = await this.#accept({ author, worker, lease, leaseMs, opens, runs }, messages);
    if (!answer.held) return { ...NOTHING, held: false };
    const jobs = this.#accepted(messages, answer.accepted, request);
    this.#appetite = Math.max(0, request.limit - jobs.length);
    this.#adjust();
    for (const { batch } of messages) batch.done();
    return { jobs, held: true, nextDueInMs: null };
  }

  // ------------------------------------------------ claiming

  #led(): void {
    this.#ledAt = this.#o.clock.monotonic();
    if (this.#helpsItself) this.#o.log.info({}, "jobs are dispatched again");
    this.#helpsItself = false;
  }

  #unled(): boolean {
    const { clock, settings, log } = this.#o;
    const { heartbeatMs = HEARTBEAT_MS, unledMs = UNLED_HEARTBEATS * heartbeatMs } = settings;
    const silentMs = clock.monotonic() - this.#ledAt;
    if (silentMs < unledMs) return false;
    if (!this.#helpsItself)
      log.warn({ silentMs }, "nobody dispatches jobs; they are taken from the store meanwhile");
    this.#helpsItself = true;
    return true;
  }

  /** In one claim no job twice, and of suspects one at most; what is left out of it is done with here. */
  #pick({ limit, suspect }: ClaimRequest): DispatchMessage[] {
    const messages = this.#buffer.take(limit);
    const seen = new Set<string>();
    const unwanted: DispatchMessage[] = [];
    let mayHave = suspect;
    const picked = messages.filter((message) => {
      const fresh = message.jobs.filter(({ id }) => seen.size < seen.add(id).size);
      if (fresh.length < message.jobs.length) message.jobs = fresh;
      if (fresh.length === 0) {
        message.batch.done();
        return false;
      }
      // A suspect is dispatched alone.
      if (!isSuspect(fresh[0]!.crashes, this.#o.budgets)) return true;
      if (mayHave) {
        mayHave = false;
        return true;
      }
      unwanted.push(message);
      return false;
    });
    this.#sendBack(unwanted, SUSPECT_PASSED_MAX);
    return picked;
  }

  /** When it is unknown what was accepted, or nothing was, all of it stays in hand: asking again is harmless. */
  async #accept(request: AcceptRequest, messages: readonly DispatchMessage[]): Promise<Accepted> {
    let answer: Accepted | null = null;
    try {
      answer = await this.#o.ownership.accept(request);
      return answer;
    } finally {
      this.#accepting = 0;
      if (!answer?.held) {
        this.#buffer.putBack(messages);
        this.#adjust();
      }
    }
  }

  /** Messages are ours alone, so that what came in them becomes the claimed jobs without a copy. */
  #accepted(
    messages: readonly DispatchMessage[],
    accepted: readonly boolean[],
    { lease }: ClaimRequest,
  ): ClaimedJob[] {
    const claimed: ClaimedJob[] = [];
    let at = 0;
    for (const { channel, dispatch, jobs } of messages) {
      const { assignment, leaderEpoch } = dispatch;
      const before = claimed.length;
      for (const job of jobs) {
        if (accepted[at++]) claimed.push(Object.assign(job, { lease, leaderEpoch, assignment }));
      }
      this.#taken[channel] = (this.#taken[channel] ?? 0) + claimed.length - before;
    }
    for (const { crashes } of claimed) {
      if (!isSuspect(crashes, this.#o.budgets)) continue;
      this.#suspectsTaken++;
      this.#takesSuspect = false;
    }
    return claimed;
  }

  // ------------------------------------------------ messages

  async #receive(channel: string, deliveries: readonly Delivery[]): Promise<void> {
    const batch = new DeliveryBatch();
    batch.add(); // until all of them are in hand
    this.#led();
    if (this.#buffer.size === 0) this.#claimedAt = this.#o.clock.monotonic();
    for (const delivery of deliveries) {
      const message = DispatchMessage.of(channel, delivery, batch);
      message.jobs = this.#passOn(message);
      if (message.jobs.length > 0) this.#buffer.add(message);
      else batch.done();
    }
    batch.done();
    this.#adjust();
    if (this.#buffer.size > 0) this.#o.onMessages();
    await batch.handled;
  }

  /** Jobs whose task we do not know go to those who do. Answers with the others. */
  #passOn({ dispatch, jobs, batch }: DispatchMessage): readonly DispatchedJob[] {
    const tasks = this.#o.tasks.names();
    if (jobs.every(({ task }) => tasks.has(task))) return jobs;
    const strange = jobs.filter(({ task }) => !tasks.has(task));
    const byChannel = Map.groupBy(strange, ({ queue, task }) => queues.dispatch(queue, task));
    const body: Dispatching = { channels: [...byChannel.keys()] };
    void this.#o.channels.publish(topics.dispatching, [{ key: "", body }]).catch(() => {}); // those who know it may listen already
    this.#sendBack(
      [...byChannel].map(([channel, theirs]) => new DispatchMessage(channel, dispatch, theirs, batch)),
      PASSED_MAX,
    );
    return jobs.filter(({ task }) => tasks.has(task));
  }

  /** Each is sent before its message is done with. Those that have gone round too often are dropped. */
  #sendBack(messages: readonly DispatchMessage[], passedMax: number): void {
    const going = messages.filter((message) => {
      if (message.passed >= passedMax) message.batch.done();
      return message.passed < passedMax;
    });
    for (const [channel, theirs] of Map.groupBy(going, (message) => message.channel)) {
      this.#o.channels
        .send(
          channel,
          theirs.map((message) => message.forwarded()),
        )
        .then(() => theirs.forEach(({ batch }) => batch.done()))
        // All of the batch comes again: what was accepted of it will be refused.
        .catch((error: unknown) => theirs.forEach(({ batch }) => batch.fail(error)));
    }
  }

  #know(channels: readonly string[], at = this.#o.clock.monotonic()): void {
    const { settings, tasks } = this.#o;
    const scope = { ...settings, tasks: tasks.names() };
    for (const channel of channels) {
      const route = dispatchRoute(channel);
      if (route && listensTo(scope, route)) this.#consumers.know(channel, at);
    }
  }

  // ------------------------------------------------ appetite

  /** Nothing while a slot is busy for longer than a few round trips: what waits in hand is neither here nor in the store's line. */
  get #ahead(): number {
    const { pace } = this.#o.load();
    return this.#closed || pace <= this.#o.settings.concurrency ? 0 : Math.min(pace, AHEAD_MAX);
  }

  #wants(ahead: number): number {
    return this.#closed ? 0 : this.#appetite + ahead;
  }

  /** Sends back what is too much, and listens for more if there is room for it. */
  #adjust(): void {
    const ahead = this.#ahead;
    const room = this.#wants(ahead) - this.#buffer.size - this.#accepting;
    if (room < 0 && this.#buffer.size > 0) this.#sendBack(this.#buffer.takeLast(-room), PASSED_MAX);
    this.#consumers.listen(ahead > 0 ? SHORT_BATCH_MAX : Math.max(room, 0));
    this.#beat.changed();
    if (!this.#closed && (ahead > 0 || this.#buffer.size > 0)) this.#lookLater();
  }

  #lookLater(): void {
    this.#callOffLook ??= this.#o.clock.after(LOOK_MS, () => {
      this.#callOffLook = null;
      const silentMs = this.#o.clock.monotonic() - this.#claimedAt;
      if (this.#buffer.size > 0 && this.#accepting === 0 && silentMs >= HELD_MS) this.#giveUp();
      this.#adjust();
    });
  }

  #giveUp(): void {
    this.#o.log.warn(
      { jobs: this.#buffer.size },
      "the worker does not take what was dispatched; it goes back",
    );
    this.#appetite = 0;
    this.#sendBack(this.#buffer.takeLast(this.#buffer.size), PASSED_MAX);
  }

  #state(): WorkerState {
    const { settings, tasks, load } = this.#o;
    const { queues: worked, exceptQueues, concurrency } = settings;
    return {
      status: this.#closed ? "draining" : "active",
      queues: worked && [...worked].sort(),
      exceptQueues: [...exceptQueues].sort(),
      tasks: [...tasks.names()].sort(),
      running: load().running,
      runningMax: concurrency,
      wants: this.#wants(this.#ahead),
      taken: this.#taken,
      suspects: { wanted: this.#takesSuspect && !this.#closed, taken: this.#suspectsTaken },
    };
  }
}
