/**
 * Claims jobs and runs them. It knows neither stores nor leaders: jobs, leases and results go through its ports.
 *
 *   slot ─────v
 *   claim ──> buffer ──> running (up to `concurrency`) ──> settlements ──> settle
 *     ^                                                                      |
 *     '------------- together with the next claim, in one commit ------------'
 *
 * One timer watches all deadlines, and one renewal covers all leases.
 */

import { topics } from "../../channels/channel-names.ts";
import type { Subscription } from "../../channels/channels.ts";
import type { CancelRequest, GivenJob } from "../../channels/messages.ts";
import type { JobId, LeaseId } from "../../core/ids.ts";
import type { AbortReason } from "../../core/jobs/job.ts";
import { worksOn } from "../../core/push/dispatch.ts";
import { traceFields } from "../../core/trace.ts";
import { IdleWait } from "../../platform/in-flight.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { ClaimedJob } from "../../store/store.ts";
import { ClaimBuffer } from "./claim-buffer.ts";
import { ClaimLoop } from "./claim-loop.ts";
import { ConsoleCapture } from "./console-capture.ts";
import { invoke, isThenable, JobRun } from "./job-run.ts";
import { outcomeOf, type Ending } from "./run-outcome.ts";
import { ResultWriter } from "./result-writer.ts";
import { RunningRuns } from "./running-runs.ts";
import { Slots } from "./slots.ts";
import { readPayload, type Task, taskDefaults } from "../tasks/task.ts";
import { WorkerMonitor } from "./worker-monitor.ts";
import type { WorkerOptions, WorkerPlatform } from "./worker-options.ts";
import type { LeasePort } from "./worker-ports.ts";
import type { DrainLimits } from "./worker-settings.ts";

export type { WorkerOptions } from "./worker-options.ts";
export type { WorkerSettings } from "./worker-settings.ts";

/** What handlers have for tidying up when a stop is hurried: the whole stop has five seconds. */
const HURRIED_CLEANUP_MS = 1_000;

export class Worker extends Lifecycle {
  readonly #o: WorkerPlatform & WorkerOptions;
  readonly #lease: LeasePort;
  readonly #results: ResultWriter;
  readonly #buffer: ClaimBuffer;
  readonly #idle: IdleWait;
  readonly #watch: WorkerMonitor;
  readonly #running: RunningRuns;
  readonly #captured = new ConsoleCapture();
  readonly #claims: ClaimLoop;

  readonly #slots: Slots<JobRun>;
  #draining = true;
  #subscriptions: Subscription[] = [];
  readonly #hooks;

  constructor(platform: WorkerPlatform, options: WorkerOptions) {
    super();
    const { clock, log, identity } = platform;
    this.#o = { clock, log, identity, ...options };
    const { settings, onChange } = options;
    this.#watch = options.watch ?? new WorkerMonitor(platform, { slots: settings.concurrency });
    const giveBack = (job: ClaimedJob): void => this.#results.settle(job, { kind: "released" });
    this.#buffer = new ClaimBuffer(clock, settings, giveBack);
    this.#results = new ResultWriter(platform, {
      results: options.results,
      watch: this.#watch,
      onChange,
      onEnded: options.onEnded,
      onSent: () => this.#claims.wakeForMore(),
    });
    this.#lease = options.lease({
      needed: (lease) => this.#holdsUnder(lease),
      onLost: (lease, why) => this.#leaseLost(lease, why),
      onCancelRequest: (id, reason) => this.#cancel(id, reason),
    });
    this.#running = new RunningRuns(clock, (run) =>
      run.aborted ? this.#abandon(run) : this.#abort(run, "timeout", null),
    );
    this.#slots = new Slots(settings.concurrency);
    this.#claims = new ClaimLoop(platform, {
      claims: options.claims,
      lease: this.#lease,
      results: this.#results,
      buffer: this.#buffer,
      running: this.#running,
      active: () => this.active,
      watch: this.#watch,
      tasks: options.tasks,
      settings,
      budgets: options.rules.budgets,
      author: options.author,
      channels: options.channels,
      hasPlace: () => this.#slots.free && this.#buffer.size === 0,
      onJobs: () => this.#start(),
    });
    this.#idle = new IdleWait(clock, () => this.#running.size > 0);
    this.#hooks = {
      now: () => clock.now(),
      jobs: options.jobs,
      wait: <Answer>(run: JobRun, work: () => Promise<Answer>) => this.#wait(run, work),
      onReport: (run: JobRun) => {
        if (!run.abandoned) this.#results.report(run);
      },
    };
  }

  /** Runs with a slot. */
  get active(): number {
    return this.#running.size - this.#slots.away;
  }

  fits(jobs: readonly Pick<ClaimedJob, "task" | "queue">[]): boolean {
    const { tasks, settings } = this.#o;
    const free = settings.concurrency - this.active - this.#buffer.size;
    if (this.#draining || jobs.length > free) return false;
    return jobs.every((job) => worksOn(settings, job.queue) && tasks.get(job.task) !== undefined);
  }

  list(): { readonly id: JobId; readonly task: string }[] {
    return this.#running.all().map(({ claimed }) => ({ id: claimed.id, task: claimed.task }));
  }

  protected onStart(): void {
    this.#draining = false;
    this.#captured.open();
    this.#watch.begin();
    this.#results.open();
    const { channels } = this.#o;
    if (channels) {
      const ready = channels.subscribe(topics.jobsReady, () => this.wake());
      const cancel = channels.subscribe(topics.jobCancel, ({ body }) => {
        const request = body as CancelRequest;
        this.#cancel(request.id, request.reason);
      });
      this.#subscriptions = [ready, cancel];
      if (this.#o.claims.slots) {
        const topic = topics.jobGiven(this.#o.identity.incarnation);
        const given = channels.subscribe(topic, ({ body }) => this.#claims.hear(body as GivenJob));
        this.#subscriptions.push(given);
      }
    }
    this.#lease.start();
    this.#claims.start();
  }

  /** Stops at once: what runs is interrupted and goes back to the queue. A drain first makes it gentle. */
  protected async onStop(): Promise<void> {
    await this.drain({ timeoutMs: 0, cleanupMs: 0 });
    this.#captured.close();
    this.#claims.stop();
    this.#lease.stop();
    this.#running.stop();
    this.#buffer.takeAll();
    await Promise.all(this.#subscriptions.map((subscription) => subscription.close()));
  }

  wake(): void {
    this.#claims.wake();
  }

  /** A job of this process runs under the slot. */
  give(job: ClaimedJob): void {
    this.#claims.give(job);
  }

  /**
   * Takes no new jobs, lets runs end, tells the rest to stop `cleanupMs` before the timeout, and puts back what is left. Burns no attempt.
   * Null when it was called off, and takes jobs again.
   */
  async drain(limits: DrainLimits): Promise<{ interrupted: number } | null> {
    this.#draining = true;
    this.#claims.close();
    for (const job of this.#buffer.takeAll()) this.#results.settle(job, { kind: "released" });
    const { cleanupMs, hurry, callOff } = limits;
    const early = AbortSignal.any([hurry, callOff].filter((signal) => signal !== undefined));
    await this.#idle.within(limits.timeoutMs - cleanupMs, early);
    if (callOff?.aborted) {
      this.#draining = false;
      await this.#claims.open();
      return null;
    }
    const interrupted = this.#running.size;
    for (const run of this.#running.all()) this.#abort(run, "drain", "the worker is being stopped");
    await this.#idle.within(cleanupMs, hurry);
    if (hurry?.aborted) await this.#idle.within(Math.min(cleanupMs, HURRIED_CLEANUP_MS));
    for (const run of this.#running.all()) this.#abandon(run);
    await this.#results.finish(() => this.#claims.underWay);
    return { interrupted };
  }

  /** Results that the store has not taken yet need the lease as much as runs do; under a retired one, what is left of it must do for them. */
  #holdsUnder(lease: LeaseId): boolean {
    const needs = ({ claimed, aborted }: JobRun): boolean =>
      claimed.lease === lease && aborted?.why !== "lease_lost";
    if (this.#running.some(needs)) return true;
    if (this.#buffer.some((job) => job.lease === lease) || this.#claims.slot.isUnder(lease)) return true;
    return lease === this.#lease.id && this.#results.busy;
  }

  // ------------------------------------------------ running

  #start(): void {
    while (this.#slots.free && this.#buffer.size > 0) void this.#occupy();
  }

  /** Runs one job after the other until none is left. One promise for all of them: a short job would cost less than its own. */
  async #occupy(): Promise<void> {
    const { clock, tasks } = this.#o;
    this.#slots.take();
    let now = clock.monotonic();
    for (let job = this.#buffer.take(); job; job = this.#slots.wanted ? undefined : this.#buffer.take()) {
      const run = this.#begin(job, now);
      const task = tasks.get(job.task)!;
      let ending: Ending;
      try {
        const payload = readPayload(task, job.payload);
        const result = this.#invoke(task, payload instanceof Promise ? await payload : payload, run);
        if (this.#claims.slot.open) this.#claims.slot.noteHandler(clock.monotonic() - now);
        ending = { ended: "returned", result: isThenable(result) ? await result : result };
      } catch (error) {
        ending = { ended: "threw", error };
      }
      if (run.abandoned) return; // another has its place
      now = clock.monotonic();
      this.#end(run, task, ending, now);
      if (this.#slots.forget(run)) return this.#tellIdle(); // it did not wait for what it began to wait for
    }
    this.#slots.leave();
    this.#tellIdle();
  }

  #invoke(task: Task, payload: unknown, run: JobRun): unknown {
    const { around, threads } = this.#o;
    const places = { threads, captured: this.#captured };
    return around
      ? around(run, () => invoke(task, payload, run, places))
      : invoke(task, payload, run, places);
  }

  async #wait<Answer>(run: JobRun, work: () => Promise<Answer>): Promise<Answer> {
    if (!this.#running.has(run)) return work(); // it has ended, or was given up
    try {
      return await this.#slots.wait(run, work, () => {
        this.#start();
        this.wake();
      });
    } finally {
      // No place is left for what others put into the announced slot.
      if (!this.#slots.free && this.#claims.slot.open) this.wake();
    }
  }

  #tellIdle(): void {
    if (this.#running.size === 0) this.#idle.tell();
  }

  #begin(job: ClaimedJob, now: number): JobRun {
    const run = new JobRun(job, now, this.#hooks);
    if (job.jobEpoch > 1) this.#replaceEarlier(job.id);
    this.#running.add(run);
    this.#watch.started(run);
    this.#o.onChange(job.id, "processing", job);
    if (this.#buffer.halfGone) this.#claims.wakeForMore();
    return run;
  }

  #end(run: JobRun, task: Task, ending: Ending, now: number): void {
    const { claimed } = run;
    const { active } = this;
    this.#running.delete(run);
    run.over = true;
    const outcome = outcomeOf(claimed, ending, run.aborted, taskDefaults(task).retry, this.#o.rules);
    this.#watch.ended(run, outcome, active, now);
    const thrown = ending.ended === "threw" ? ending.error : undefined;
    if (outcome) this.#results.settle(claimed, outcome, run.span?.trace, thrown);
    else this.#results.forget(run);
    this.#buffer.noteFinished();
    if (!outcome) this.wake(); // nothing is flushed, so no claim goes along with it
  }

  // ------------------------------------------------ stopping runs

  #cancel(id: JobId, reason: string | null): void {
    const run = this.#running.of(id);
    if (run) return this.#abort(run, "cancel", reason ?? "cancelled");
    const waiting = this.#buffer.remove(id);
    if (!waiting) return;
    const error = { code: "CANCELLED", message: reason ?? "cancelled" };
    this.#results.settle(waiting, { kind: "cancelled", error });
  }

  #abort(run: JobRun, why: AbortReason, message: string | null): void {
    if (!run.abort(why, message)) return;
    this.#slots.hurry(run);
    run.deadline = this.#o.clock.monotonic() + this.#o.settings.abortGraceMs;
    this.#running.watch(run.deadline);
  }

  /** The handler did not end in time: its job is settled without it, and its slot is free again. */
  #abandon(run: JobRun): void {
    const { id, task, trace } = run.claimed;
    const fields = { jobId: id, task, why: run.aborted?.why, ...traceFields(trace) };
    this.#o.log.warn(fields, "the handler did not end in time and was given up");
    run.abandoned = true;
    this.#end(run, this.#o.tasks.get(task)!, { ended: "abandoned" }, this.#o.clock.monotonic());
    if (!this.#slots.forget(run)) this.#slots.leave();
    this.#tellIdle();
    this.#start();
  }

  /** After a lost lease a job may come back to us before its handler has ended, or has even heard of the loss. */
  #replaceEarlier(id: JobId): void {
    const earlier = this.#running.of(id);
    if (!earlier) return;
    this.#abort(earlier, "lease_lost", "the lease is lost: the job was given out again");
    this.#abandon(earlier);
  }

  /** Others may run our jobs by now. Whatever we would say of them is refused by the store, so say nothing. */
  #leaseLost(lease: LeaseId, why: string): void {
    this.#claims.slot.lost(lease);
    const dropped = this.#buffer.takeUnder(lease);
    const runs = this.#running.all().filter((run) => run.claimed.lease === lease);
    if (runs.length + dropped.length === 0) return;
    this.#watch.leaseLost(runs.length + dropped.length);
    this.#o.log.error({ jobs: runs.length }, `the lease on running jobs is lost: ${why}`);
    for (const run of runs) this.#abort(run, "lease_lost", `the lease is lost: ${why}`);
    this.wake();
  }
}
