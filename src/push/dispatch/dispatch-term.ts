/**
 * One term of a leader that dispatches.
 *
 *   jobs.ready, worker heartbeats, time ──> look ──> mark due jobs in the store ──> publish
 *        ^                                    |
 *        '───────────── rest <── no demand, or nothing is due
 *
 * If the store had fewer jobs for a group of workers than they demanded, it is not asked again for that group until a
 * signal says that there may be more: heartbeats arrive hundreds of times a second and must not cause as many queries.
 */

import type { Channels } from "../../channels/channels.ts";
import type { WorkerHeartbeat } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import { assignmentSize, dispatchLimit, type WorkerGroup } from "../../core/push/dispatch.ts";
import { hasCode } from "../../core/errors.ts";
import { isSuspect, type Budgets } from "../../core/jobs/job.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { Clock } from "../../platform/clock.ts";
import { Pause } from "../../platform/loop.ts";
import type { Log } from "../../platform/log.ts";
import type { NodeEvents } from "../../platform/node-events.ts";
import type { OwnershipStore } from "../../store/ownership.ts";
import { WorkerDemand } from "./worker-demand.ts";
import { DispatchPublisher } from "./dispatch-publisher.ts";

export interface DispatchTermOptions {
  readonly ownership: Pick<OwnershipStore, "dispatch" | "undispatch" | "outstanding">;
  readonly channels: Pick<Channels, "send" | "publish" | "subscribe">;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: NodeEvents;
  readonly budgets: Budgets;
  readonly isGone: (incarnation: string) => boolean;
  readonly timeoutMs: number;
  readonly heartbeatMs: number;
  readonly term: Term;
  readonly signal: AbortSignal;
}

/** The net below hints: so long may a job wait at worst if all of them fail. */
const READ_MS = 1_000;
/** Shorter, and a flood of hints becomes as many small portions. The first after a rest does not wait. */
const SPACING_MS = 2;
const STORE_RETRY_MS = 250;
/** The more is outstanding, the longer it takes to count it; it never takes more than this part of the time. */
const UPKEEP_SHARE = 1 / 20;
/** A worker that was silent for so many of its heartbeats gets nothing more. */
const SILENT_HEARTBEATS = 3;

export class DispatchTerm {
  readonly #o: DispatchTermOptions;
  readonly #demand = new WorkerDemand();
  readonly #publisher: DispatchPublisher;
  /** Scopes of groups for which nothing was left. */
  readonly #exhausted = new Set<string>();
  #ready = true;
  readonly #pause: Pause;
  #readAt = -Infinity;
  #upkeepAt = -Infinity;
  #failed = false;

  constructor(options: DispatchTermOptions) {
    const { channels, clock, log, term } = options;
    this.#o = options;
    this.#pause = new Pause(clock);
    this.#publisher = new DispatchPublisher({ channels, clock, log, leaderEpoch: term.epoch });
  }

  /** The dispatch queues that were used so far. */
  get channels(): string[] {
    return this.#publisher.channels;
  }

  /** Jobs may have become due. */
  wake(): void {
    this.#ready = true;
    this.#pause.wake();
  }

  /** Until the signal is aborted. */
  async run(): Promise<void> {
    const { channels, signal } = this.#o;
    const subscriptions = [
      channels.subscribe(topics.jobsReady, () => this.wake()),
      channels.subscribe(topics.workerHeartbeat, ({ body }) => this.#heard(body as WorkerHeartbeat)),
    ];
    try {
      this.#publisher.announce([], true);
      while (!signal.aborted) await this.#step();
    } finally {
      await Promise.all([this.#publisher.idle(), ...subscriptions.map((each) => each.close())]);
    }
  }

  async #step(): Promise<void> {
    const { clock, log, signal } = this.#o;
    const startedAt = clock.monotonic();
    this.#pause.clear();
    try {
      if (startedAt >= this.#upkeepAt) await this.#upkeep();
      await this.#dispatchDue(startedAt);
      this.#failed = false;
      await this.#pause.sleep(Math.min(this.#readAt, this.#upkeepAt) - clock.monotonic(), signal);
    } catch (error) {
      if (signal.aborted) return;
      if (hasCode(error, "STALE_EPOCH")) throw error;
      if (!this.#failed) log.warn({ err: error }, "could not dispatch jobs; trying again");
      this.#failed = true;
      this.#ready = true;
      await clock.sleep(STORE_RETRY_MS, signal);
    }
    const early = SPACING_MS - (clock.monotonic() - startedAt);
    if (early > 0) await clock.sleep(early, signal);
  }

  async #dispatchDue(now: number): Promise<void> {
    if (this.#ready || now >= this.#readAt) {
      this.#ready = false;
      this.#exhausted.clear();
      this.#readAt = now + READ_MS;
    }
    for (const { scope } of this.#demand.groups()) {
      if (this.#exhausted.has(scope) || this.#o.signal.aborted) continue;
      // Read again, as what is outstanding is: both change while the store answers for the group before.
      const groups = this.#demand.groups();
      const group = groups.find((candidate) => candidate.scope === scope);
      if (!group) continue;
      const limit = dispatchLimit(group, groups, this.#demand.outstanding);
      if (limit > 0) await this.#dispatch(group, groups, limit);
    }
  }

  async #dispatch(group: WorkerGroup, groups: readonly WorkerGroup[], limit: number): Promise<void> {
    const { ownership, clock, events, budgets, term } = this.#o;
    const { tasks, queues, exceptQueues } = group;
    const size = assignmentSize(group);
    const suspect = group.suspects > this.#demand.suspects;
    const request = { tasks, queues, exceptQueues, limit, size, suspect };
    const dispatching = ownership.dispatch(request, term);
    const { assignments, nextDueInMs } = await events.fenced("ownership.dispatch", dispatching);
    if (nextDueInMs !== null) this.#readAt = Math.min(this.#readAt, clock.monotonic() + nextDueInMs);
    let dispatched = 0;
    for (const { jobs } of assignments) {
      dispatched += jobs.length;
      if (isSuspect(jobs[0]?.crashes ?? 0, budgets)) this.#demand.sentSuspect();
    }
    if (dispatched < limit) this.#exhausted.add(group.scope);
    else this.#pause.wake(); // more of them may be due and wanted
    if (dispatched === 0) return;
    const counts = await this.#publisher.publish(assignments, group, groups);
    for (const [channel, jobs] of counts) this.#demand.sent(channel, jobs);
  }

  /** What nobody accepted in time is due again, and everything is counted anew. */
  async #upkeep(): Promise<void> {
    const { ownership, clock, log, events, timeoutMs, heartbeatMs, isGone, term } = this.#o;
    const now = clock.monotonic();
    this.#demand.forget(now - SILENT_HEARTBEATS * heartbeatMs, isGone);
    this.#publisher.announceUsed();
    const freed = await events.fenced("ownership.undispatch", ownership.undispatch(timeoutMs, term));
    this.#demand.recount(await ownership.outstanding());
    const tookMs = clock.monotonic() - now;
    this.#upkeepAt =
      now + Math.max(Math.min(timeoutMs / 2, SILENT_HEARTBEATS * heartbeatMs), tookMs / UPKEEP_SHARE);
    if (freed.size === 0) return;
    this.#ready = true;
    log.info({ jobs: Object.fromEntries(freed) }, "dispatched jobs that nobody accepted go out again");
  }

  #heard(heartbeat: WorkerHeartbeat): void {
    if (this.#o.isGone(heartbeat.incarnation)) return;
    const isNew = this.#demand.heard(heartbeat, this.#o.clock.monotonic());
    if (isNew) this.#publisher.announce(this.channels);
    if (heartbeat.wants > 0) this.#pause.wake();
  }
}
