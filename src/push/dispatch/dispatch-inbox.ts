/**
 * A worker's end of push dispatch, in place of the store's `claim`: the same request, the same answer.
 *
 *   dispatch queue ──> buffer ──claim: accepted in the store──> worker
 *        ^               |
 *        '──sent back <──'  no room, or an unknown task: nothing of it was claimed, so no attempt is used
 *
 * The worker's demand is the limit of its last claim, less the jobs that the claim returned. While its jobs are short, the buffer also holds
 * as many as it finished lately (`pace`). A message is acknowledged when the store has accepted or refused each of its jobs, or it was sent
 * on. The leader finds a lost job when no worker accepts it in time.
 *
 * While no leader dispatches (the channels are unavailable, or `dispatch.mode` changes node by node), the worker claims from the store. A
 * claim compares epochs as an accept does, so a dispatch at the same time does no harm.
 */

import type { Channels, Delivery, Subscription } from "../../channels/channels.ts";
import type { CoordinatorHeartbeat, Dispatch, Dispatching } from "../../channels/messages.ts";
import { dispatchRoute, queues, topics } from "../../channels/channel-names.ts";
import { listensTo } from "../../core/push/dispatch.ts";
import { isSuspect, type Budgets } from "../../core/jobs/job.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Accepted, AcceptRequest, OwnershipStore } from "../../store/ownership.ts";
import type { WorkerClaim } from "../../jobs/run/worker-ports.ts";
import type { WorkerSettings } from "../../jobs/run/worker-settings.ts";
import type { Claimed, ClaimedJob, ClaimRequest, Store } from "../../store/store.ts";
import { USED_MS } from "./dispatch-publisher.ts";
import { DispatchConsumers } from "./dispatch-consumers.ts";
import { deliveryBatch, type DispatchMessage, type JobInHand } from "./dispatch-message.ts";
import { WorkerHeartbeatPublisher, type WorkerState } from "./worker-heartbeat-publisher.ts";

export interface DispatchInboxOptions {
  readonly ownership: Pick<OwnershipStore, "accept">;
  readonly store: Pick<Store, "jobs">;
  readonly channels: Channels;
  readonly budgets: Budgets;
  readonly tasks: { names(): ReadonlySet<string> };
  readonly settings: Pick<WorkerSettings, "concurrency" | "queues" | "exceptQueues"> & {
    readonly heartbeatMs: number;
    /** After this time without a message of a leader, the worker claims from the store. */
    readonly unledMs?: number;
  };
  readonly signal: { raise(): void };
}

/** Buffered jobs above the worker's demand, at most: a crash loses none of them, but urgent jobs wait behind them. */
const AHEAD_MAX = 4_000;
/** Messages of short jobs in one delivery; each has up to 25. With 40, a third of them was too much and went back. */
const SHORT_BATCH_MAX = 20;
const CHECK_MS = 100;
/**
 * How long the pace of a claim counts. Longer, and messages wait while long jobs fill the slots; shorter, and they go back and forth when
 * the store is slow.
 */
const PACE_MS = 200;
/** A worker that has not claimed for this long while something was buffered is stuck: the store does not take its results, for example. */
const HELD_MS = 1_000;
/** A message that was sent back this often could have been everywhere and is dropped: its mark times out. */
const PASSED_MAX = 20;
/** The same for a suspect, which goes back also when workers have room for other jobs. */
const SUSPECT_PASSED_MAX = 3;
/** Longer than a leader announces a dispatch queue after its last use: a used queue is never left. */
const UNUSED_MS = 2 * USED_MS;
/** Heartbeats without a message of a leader. Fewer, and a change of leaders looks the same. */
const UNLED_HEARTBEATS = 5;

const NOTHING: Claimed = { jobs: [], held: true, nextDueInMs: null };

export class DispatchInbox extends Lifecycle {
  readonly #o: Platform & DispatchInboxOptions;
  /** In the order in which they arrived. */
  readonly #buffer: JobInHand[] = [];
  readonly #consumers: DispatchConsumers;
  readonly #beat: WorkerHeartbeatPublisher;
  readonly #taken: Record<string, number> = {};
  #suspectsTaken = 0;
  #takesSuspect = true;
  /** How many more jobs the worker wants, by its last claim. */
  #demand = 0;
  #running = 0;
  #pace = 0;
  #paceAt = -Infinity;
  #accepting = 0;
  #claimedAt = 0;
  #ledAt = 0;
  #pulls = false;
  #closed = true;
  #callOffCheck: (() => void) | null = null;
  #subscriptions: Subscription[] = [];

  constructor(platform: Platform, options: DispatchInboxOptions) {
    super();
    this.#o = { ...platform, ...options };
    const { channels, settings } = options;
    this.#consumers = new DispatchConsumers(channels, (...what) => this.#receive(...what));
    const { heartbeatMs } = settings;
    const state = (): WorkerState => this.#state();
    this.#beat = new WorkerHeartbeatPublisher({ ...platform, channels, heartbeatMs, state });
  }

  protected onStart(): void {
    const { channels, settings } = this.#o;
    this.#closed = false;
    this.#demand = 0;
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

  /** Takes no more, and sends back what is buffered. A claim that is under way is completed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#callOffCheck?.();
    this.#callOffCheck = null;
    this.#adjust();
    await this.#consumers.close();
  }

  open(): void {
    this.#closed = false;
    this.#led();
    this.#adjust();
  }

  async claim(request: WorkerClaim): Promise<Claimed> {
    this.#demand = request.limit;
    this.#running = request.running;
    this.#pace = request.pace;
    this.#takesSuspect = request.suspect;
    this.#claimedAt = this.#paceAt = this.#o.clock.monotonic();
    const picked = this.#pick(request);
    const runs = picked.map(({ job: { id, jobEpoch, ref }, from }) => {
      return { id, jobEpoch, ref, assignment: from.dispatch.assignment };
    });
    if (runs.length === 0) {
      this.#adjust();
      return this.#unled() ? this.#o.store.jobs.claim(request) : NOTHING;
    }
    this.#accepting = runs.length;
    const { author, worker, lease, leaseMs, opens } = request;
    const answer = await this.#accept({ author, worker, lease, leaseMs, opens, runs }, picked);
    if (!answer.held) return { ...NOTHING, held: false };
    const jobs = this.#accepted(picked, answer.accepted, request);
    this.#demand = Math.max(0, request.limit - jobs.length);
    this.#running = Math.min(request.running + jobs.length, this.#o.settings.concurrency);
    this.#paceAt = this.#o.clock.monotonic();
    this.#adjust();
    for (const { from } of picked) from.batch.done();
    return { jobs, held: true, nextDueInMs: null };
  }

  // ------------------------------------------------ claiming

  #led(): void {
    this.#ledAt = this.#o.clock.monotonic();
    if (this.#pulls) this.#o.log.info({}, "jobs are dispatched again");
    this.#pulls = false;
  }

  #unled(): boolean {
    const { clock, settings, log } = this.#o;
    const { heartbeatMs, unledMs = UNLED_HEARTBEATS * heartbeatMs } = settings;
    const silentMs = clock.monotonic() - this.#ledAt;
    if (silentMs < unledMs) return false;
    if (!this.#pulls)
      log.warn({ silentMs }, "no leader dispatches jobs; they are claimed from the store meanwhile");
    this.#pulls = true;
    return true;
  }

  /** No job twice in one claim, and at most one suspect; what is left out is acknowledged or sent back. */
  #pick({ limit, suspect }: ClaimRequest): JobInHand[] {
    const seen = new Set<string>();
    const unwanted: JobInHand[] = [];
    let mayHave = suspect;
    const picked = this.#buffer.splice(0, limit).filter((one) => {
      const { id, crashes } = one.job;
      if (seen.has(id)) {
        one.from.batch.done();
        return false;
      }
      seen.add(id);
      if (!isSuspect(crashes, this.#o.budgets)) return true;
      const wanted = mayHave;
      mayHave = false;
      if (!wanted) unwanted.push(one);
      return wanted;
    });
    this.#sendBack(unwanted, SUSPECT_PASSED_MAX);
    return picked;
  }

  /** When it is unknown what was accepted, or nothing was, all of it stays in the buffer: a repeated accept does no harm. */
  async #accept(request: AcceptRequest, picked: readonly JobInHand[]): Promise<Accepted> {
    let answer: Accepted | null = null;
    try {
      answer = await this.#o.ownership.accept(request);
      return answer;
    } finally {
      this.#accepting = 0;
      if (!answer?.held) {
        this.#buffer.unshift(...picked);
        this.#adjust();
      }
    }
  }

  /** No other code holds these jobs, so they become the claimed jobs without a copy. */
  #accepted(
    picked: readonly JobInHand[],
    accepted: readonly boolean[],
    { lease }: ClaimRequest,
  ): ClaimedJob[] {
    const claimed: ClaimedJob[] = [];
    for (const [at, { job, from }] of picked.entries()) {
      if (!accepted[at]) continue;
      const { assignment, leaderEpoch } = from.dispatch;
      claimed.push(Object.assign(job, { lease, leaderEpoch, assignment }));
      this.#taken[from.channel] = (this.#taken[from.channel] ?? 0) + 1;
      if (!isSuspect(job.crashes, this.#o.budgets)) continue;
      this.#suspectsTaken++;
      this.#takesSuspect = false;
    }
    return claimed;
  }

  // ------------------------------------------------ messages

  async #receive(channel: string, deliveries: readonly Delivery[]): Promise<void> {
    const batch = deliveryBatch();
    batch.add(); // until all of them are buffered
    this.#led();
    if (this.#buffer.length === 0) this.#claimedAt = this.#o.clock.monotonic();
    const tasks = this.#o.tasks.names();
    const unknown: JobInHand[] = [];
    for (const { body } of deliveries) {
      const { jobs, ...dispatch } = body as Dispatch;
      const from = { channel, dispatch, batch };
      for (const job of jobs) {
        batch.add();
        (tasks.has(job.task) ? this.#buffer : unknown).push({ job, from });
      }
    }
    if (unknown.length > 0) this.#passOn(unknown);
    batch.done();
    this.#adjust();
    if (this.#buffer.length > 0) this.#o.signal.raise();
    await batch.handled;
  }

  /** To the workers that know their tasks. */
  #passOn(unknown: readonly JobInHand[]): void {
    const channelOf = ({ job }: JobInHand): string => queues.dispatch(job.queue, job.task);
    const body: Dispatching = { channels: [...new Set(unknown.map(channelOf))] };
    void this.#o.channels.publish(topics.dispatching, [{ key: "", body }]).catch(() => {}); // workers that know the task may listen already
    this.#sendBack(unknown, PASSED_MAX, channelOf);
  }

  /** Each is sent before its message is acknowledged. Those that were sent back too often are dropped. */
  #sendBack(
    those: readonly JobInHand[],
    passedMax: number,
    channelOf = ({ from }: JobInHand): string => from.channel,
  ): void {
    const going = those.filter(({ from }) => {
      const goes = passedOf(from) < passedMax;
      if (!goes) from.batch.done();
      return goes;
    });
    for (const [channel, theirs] of Map.groupBy(going, channelOf)) {
      const messages = [...Map.groupBy(theirs, ({ from }) => from)].map(([from, some]) => {
        const jobs = some.map(({ job }) => job);
        const body: Dispatch = { ...from.dispatch, jobs, passed: passedOf(from) + 1 };
        return { key: jobs[0]!.id, body };
      });
      this.#o.channels
        .send(channel, messages)
        .then(() => theirs.forEach(({ from }) => from.batch.done()))
        // The whole batch is delivered again: what was accepted of it will be refused.
        .catch((error: unknown) => theirs.forEach(({ from }) => from.batch.fail(error)));
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

  // ------------------------------------------------ demand

  /** None unless a slot finishes several jobs within PACE_MS: a buffered job is not in the store's queue, where an urgent one goes first. */
  get #ahead(): number {
    const { clock, settings } = this.#o;
    const recent = this.#accepting > 0 || clock.monotonic() - this.#paceAt < PACE_MS;
    return this.#closed || !recent || this.#pace <= settings.concurrency
      ? 0
      : Math.min(this.#pace, AHEAD_MAX);
  }

  #wants(ahead: number): number {
    return this.#closed ? 0 : this.#demand + ahead;
  }

  /** Sends back what is too much, and consumes more if there is room for it. */
  #adjust(): void {
    const ahead = this.#ahead;
    const room = this.#wants(ahead) - this.#buffer.length - this.#accepting;
    if (room < 0 && this.#buffer.length > 0) this.#sendBack(this.#buffer.splice(room), PASSED_MAX);
    this.#consumers.listen(ahead > 0 ? SHORT_BATCH_MAX : Math.max(room, 0));
    this.#beat.changed();
    if (!this.#closed && (ahead > 0 || this.#buffer.length > 0)) this.#checkLater();
  }

  #checkLater(): void {
    this.#callOffCheck ??= this.#o.clock.after(CHECK_MS, () => {
      this.#callOffCheck = null;
      const silentMs = this.#o.clock.monotonic() - this.#claimedAt;
      if (this.#buffer.length > 0 && this.#accepting === 0 && silentMs >= HELD_MS) this.#giveUp();
      this.#adjust();
    });
  }

  #giveUp(): void {
    this.#o.log.warn(
      { jobs: this.#buffer.length },
      "the worker does not take what was dispatched; it goes back",
    );
    this.#demand = 0;
    this.#sendBack(this.#buffer.splice(0), PASSED_MAX);
  }

  #state(): WorkerState {
    const { settings, tasks } = this.#o;
    const { queues: worked, exceptQueues, concurrency } = settings;
    return {
      status: this.#closed ? "draining" : "active",
      queues: worked && [...worked].sort(),
      exceptQueues: [...exceptQueues].sort(),
      tasks: [...tasks.names()].sort(),
      running: this.#running,
      runningMax: concurrency,
      wants: this.#wants(this.#ahead),
      taken: this.#taken,
      suspects: { wanted: this.#takesSuspect && !this.#closed, taken: this.#suspectsTaken },
    };
  }
}

function passedOf({ dispatch }: DispatchMessage): number {
  return dispatch.passed ?? 0;
}
