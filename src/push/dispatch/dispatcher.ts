/**
 * A leader's duty: hands due jobs out to the workers that want them. Each term has its own DispatchTerm.
 *
 *   jobs.ready, worker heartbeats, time ──> look ──> mark due jobs in the store ──> publish
 *        ^                                    |
 *        '───────────── rest <── no demand, or nothing is due
 *
 * If the store had fewer jobs for a group of workers than they demanded, it is not asked again for that group until a signal says that
 * there may be more: heartbeats arrive hundreds of times a second and must not cause as many queries.
 */

import type { Channels } from "../../channels/channels.ts";
import type { WorkerHeartbeat } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import { assignmentSize, dispatchLimit, type WorkerGroup } from "../../core/push/dispatch.ts";
import { hasCode } from "../../core/errors.ts";
import { isSuspect, type Budgets } from "../../core/jobs/job.ts";
import type { Term } from "../../core/leadership/term.ts";
import { Pause, STORE_RETRY_MS } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { OwnershipStore } from "../../store/ownership.ts";
import { WorkerDemand } from "./worker-demand.ts";
import { DispatchPublisher } from "./dispatch-publisher.ts";

export interface DispatcherOptions {
  readonly ownership: Pick<OwnershipStore, "dispatch" | "undispatch">;
  readonly channels: Pick<Channels, "send" | "publish" | "subscribe">;
  readonly budgets: Budgets;
  readonly isGone: (incarnation: string) => boolean;
  /** How long a worker has to accept a job. Shorter, and jobs of a busy queue are dispatched twice, for nothing. */
  readonly timeoutMs: number;
  /** How often workers publish their state, at least. */
  readonly heartbeatMs: number;
}

/** The net below hints: so long may a job wait at worst if all of them fail. */
const READ_MS = 1_000;
/** Shorter, and a flood of hints becomes as many small portions. The first after a rest does not wait. */
const SPACING_MS = 2;
/** The more is outstanding, the longer it takes to count it; it never takes more than this part of the time. */
const UPKEEP_SHARE = 1 / 20;
/** A worker that was silent for so many of its heartbeats gets nothing more. */
const SILENT_HEARTBEATS = 3;

export class Dispatcher {
  readonly #o: Platform & DispatcherOptions;
  #current: DispatchTerm | null = null;

  constructor(platform: Platform, options: DispatcherOptions) {
    this.#o = { ...platform, ...options };
  }

  /** The dispatch queues that are used in the term; none while another node leads. */
  channels(): string[] {
    return this.#current?.channels ?? [];
  }

  wake(): void {
    this.#current?.wake();
  }

  async duty(term: Term, signal: AbortSignal): Promise<void> {
    const current = new DispatchTerm(this.#o, term, signal);
    this.#current = current;
    try {
      await current.run();
    } finally {
      if (this.#current === current) this.#current = null;
    }
  }
}

class DispatchTerm {
  readonly #o: Platform & DispatcherOptions & { readonly term: Term; readonly signal: AbortSignal };
  readonly #demand = new WorkerDemand();
  readonly #publisher: DispatchPublisher;
  /** Scopes of groups for which nothing was left. */
  readonly #exhausted = new Set<string>();
  #ready = true;
  readonly #pause: Pause;
  #readAt = -Infinity;
  #upkeepAt = -Infinity;
  #failed = false;

  constructor(options: Platform & DispatcherOptions, term: Term, signal: AbortSignal) {
    this.#o = { ...options, term, signal };
    this.#pause = new Pause(options.clock);
    this.#publisher = new DispatchPublisher(options, options.channels, term.epoch);
  }

  get channels(): string[] {
    return this.#publisher.channels;
  }

  /** Jobs may have become due. */
  wake(): void {
    this.#ready = true;
    this.#pause.wake();
  }

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

  /** What no worker accepted in time is due again, and everything is counted anew. */
  async #upkeep(): Promise<void> {
    const { ownership, clock, log, events, timeoutMs, heartbeatMs, isGone, term } = this.#o;
    const now = clock.monotonic();
    this.#demand.forget(now - SILENT_HEARTBEATS * heartbeatMs, isGone);
    this.#publisher.announceUsed();
    const undispatching = ownership.undispatch(timeoutMs, term);
    const { freed, outstanding } = await events.fenced("ownership.undispatch", undispatching);
    this.#demand.recount(outstanding);
    const tookMs = clock.monotonic() - now;
    this.#upkeepAt =
      now + Math.max(Math.min(timeoutMs / 2, SILENT_HEARTBEATS * heartbeatMs), tookMs / UPKEEP_SHARE);
    if (freed.size === 0) return;
    this.#ready = true;
    log.info({ jobs: Object.fromEntries(freed) }, "dispatched jobs that no worker accepted go out again");
  }

  #heard(heartbeat: WorkerHeartbeat): void {
    if (this.#o.isGone(heartbeat.incarnation)) return;
    const isNew = this.#demand.heard(heartbeat, this.#o.clock.monotonic());
    if (isNew && this.channels.length > 0) this.#publisher.announce(this.channels);
    if (heartbeat.wants > 0) this.#pause.wake();
  }
}
