/**
 * Takes jobs from the store and runs them.
 *
 *   claim ──> buffer ──> running (up to `concurrency`) ──> settlements ──> settle
 *     ^                                                                      |
 *     '------------- together with the next claim, in one commit ------------'
 *
 * How much is claimed ahead follows how much was run lately: nothing for slow jobs, so that a crash strands none of
 * them, and up to `prefetchMax` for short ones. One timer watches all deadlines and one renewal keeps all leases.
 */

import { topics } from "../channels/names.ts";
import type { Channels, Subscription } from "../channels/channels.ts";
import type { CancelWish } from "../channels/messages.ts";
import { hasCode } from "../core/errors.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import { isSuspect, type AbortReason, type JobStatus } from "../core/job.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Author, ClaimedJob, Store, Outcome, Report, Settlement } from "../store/store.ts";
import { JobRun } from "./job-run.ts";
import { outcomeOf, type Ending, type OutcomeRules } from "./outcome.ts";
import { checkPayload, type Task } from "./task.ts";
import type { TaskRegistry } from "./task-registry.ts";
import type { ThreadPool } from "./thread-pool.ts";

export interface WorkerSettings {
  readonly concurrency: number;
  /** Null for all queues. */
  readonly queues: ReadonlySet<string> | null;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly prefetchMax: number;
  /** How long an aborted handler may take to end before it is given up. */
  readonly abortGraceMs: number;
}

export interface WorkerOptions {
  readonly store: Pick<Store, "jobs">;
  readonly tasks: TaskRegistry;
  readonly threads: ThreadPool;
  readonly channels: Channels;
  readonly clock: Clock;
  readonly identity: NodeIdentity;
  readonly author: () => Author;
  readonly rules: OutcomeRules;
  readonly settings: WorkerSettings;
  readonly log: Log;
  /** A job changed in the store, for those who follow it. */
  readonly onChange: (id: JobId, status: JobStatus | null) => void;
}

/** The net under wake-ups and timers: so long may a job wait at worst if all of them fail. */
const POLL_MS = 1_000;
/** The window over which the rate of finished jobs decides how far to claim ahead. */
const RATE_WINDOW_MS = 100;
const STORE_RETRY_MS = 250;
/** How long a drain goes on trying to store results. Longer, and a stop with a full disk ends as a kill. */
const LAST_TRIES_MS = 2_000;
/** What handlers have for tidying up when a stop is hurried: the whole stop has five seconds. */
const HURRIED_CLEANUP_MS = 1_000;

export class Worker extends Lifecycle {
  readonly #o: WorkerOptions;
  #lease: LeaseId;
  #leases = 0;
  #leaseTrustedUntil = Infinity;

  #buffer: ClaimedJob[] = [];
  #bufferAt = 0;
  readonly #running = new Map<JobId, JobRun>();
  #settlements: Settlement[] = [];
  readonly #reporting = new Set<JobRun>();

  #claiming: Promise<void> | null = null;
  #claimAgain = false;
  #claimFailed = false;
  #starting = false;
  #flushing: Promise<void> | null = null;
  #flushScheduled = false;
  #storeFailed = false;
  /** From then on results that the store does not take are let go. */
  #giveUpAt = Infinity;
  #draining = true;

  #finishedInWindow = 0;
  #windowFrom = 0;
  #lastWindow = 0;

  #nextDeadline = Infinity;
  #cancelDeadline: (() => void) | null = null;
  #cancelPoll: (() => void) | null = null;
  #cancelRenew: (() => void) | null = null;
  #subscriptions: Subscription[] = [];
  #idleWaiters: (() => void)[] = [];
  #lastClaimAt = 0;

  readonly #hooks;

  constructor(options: WorkerOptions) {
    super();
    this.#o = options;
    this.#lease = this.#newLease();
    this.#hooks = {
      now: () => options.clock.now(),
      onReport: (run: JobRun) => {
        if (run.abandoned) return;
        this.#reporting.add(run);
        this.#scheduleFlush();
      },
    };
  }

  /** Jobs that run here now. */
  get active(): number {
    return this.#running.size;
  }

  list(): { readonly id: JobId; readonly task: string }[] {
    return [...this.#running.values()].map(({ claimed }) => ({ id: claimed.id, task: claimed.task }));
  }

  /** When the store was last asked for work, on the monotonic clock. */
  get lastClaimAt(): number {
    return this.#lastClaimAt;
  }

  protected onStart(): void {
    this.#draining = false;
    this.#giveUpAt = Infinity;
    const { channels } = this.#o;
    this.#subscriptions = [
      channels.subscribe(topics.jobsReady, () => this.wake()),
      channels.subscribe(topics.jobCancel, ({ body }) => {
        const wish = body as CancelWish;
        this.#cancel(wish.id, wish.reason);
      }),
    ];
    this.#renewLater();
    this.wake();
  }

  /** Stops at once: what runs is interrupted and goes back to the queue. A drain first makes it gentle. */
  protected async onStop(): Promise<void> {
    await this.drain({ timeoutMs: 0, cleanupMs: 0 });
    this.#cancelPoll?.();
    this.#cancelRenew?.();
    this.#cancelDeadline?.();
    await Promise.all(this.#subscriptions.map((subscription) => subscription.close()));
  }

  /** There may be work. */
  wake(): void {
    if (this.#claiming) this.#claimAgain = true;
    else this.#claim();
  }

  /**
   * Takes no new jobs, lets those that run come to their end, tells the rest to stop `cleanupMs` before the timeout, and
   * puts back what is left. Nothing of it burns an attempt. `hurry` tells them to stop now.
   */
  async drain(limits: {
    timeoutMs: number;
    cleanupMs: number;
    hurry?: AbortSignal;
  }): Promise<{ interrupted: number }> {
    this.#draining = true;
    for (const job of this.#takeBuffer()) this.#settle(job, { kind: "released" });
    const { cleanupMs, hurry } = limits;
    await this.#idleWithin(limits.timeoutMs - cleanupMs, hurry);
    const interrupted = this.#running.size;
    for (const run of this.#running.values()) this.#abort(run, "drain", "the node is being stopped");
    await this.#idleWithin(cleanupMs, hurry);
    if (hurry?.aborted) await this.#idleWithin(Math.min(cleanupMs, HURRIED_CLEANUP_MS));
    for (const run of this.#running.values()) this.#abandon(run);
    this.#giveUpAt = this.#o.clock.monotonic() + LAST_TRIES_MS;
    await this.#flushAll();
    return { interrupted };
  }

  async #idleWithin(ms: number, hurry?: AbortSignal): Promise<void> {
    if (this.#running.size === 0 || ms <= 0 || hurry?.aborted) return;
    const over = new AbortController();
    const end = (): void => over.abort();
    hurry?.addEventListener("abort", end, { once: true });
    await Promise.race([this.#idle(), this.#o.clock.sleep(ms, over.signal)]);
    hurry?.removeEventListener("abort", end);
    end();
  }

  // ------------------------------------------------ claiming

  #claim(): void {
    if (this.#draining || this.#storeFailed) return this.#pollLater(POLL_MS);
    const limit = this.#wanted();
    if (limit <= 0) return; // whatever makes room wakes us
    this.#claimAgain = false;
    this.#cancelPoll?.();
    this.#claiming = this.#claimAndStart(limit);
  }

  async #claimAndStart(limit: number): Promise<void> {
    let nextMs = STORE_RETRY_MS;
    try {
      nextMs = await this.#claimOnce(limit);
      this.#claimFailed = false;
    } catch (error) {
      if (!this.#claimFailed && !hasCode(error, "STOPPED"))
        this.#o.log.warn({ err: error }, "could not claim jobs; trying again");
      this.#claimFailed = true;
    }
    this.#claiming = null;
    this.#start();
    if (this.#claimAgain || (nextMs === 0 && this.#wanted() > 0)) this.wake();
    else this.#pollLater(nextMs);
  }

  async #claimOnce(limit: number): Promise<number> {
    const { store, settings, identity, tasks, author, clock } = this.#o;
    const sentAt = clock.monotonic();
    this.#lastClaimAt = sentAt;
    const { jobs, nextDueInMs } = await store.jobs.claim({
      author: author(),
      worker: identity.name,
      lease: this.#lease,
      leaseMs: settings.leaseMs,
      limit,
      tasks: tasks.names(),
      queues: settings.queues,
      suspect: !this.#holdsSuspect(),
    });
    if (jobs.length > 0) this.#leaseTrustedUntil = sentAt + settings.leaseMs;
    if (this.#draining) for (const job of jobs) this.#settle(job, { kind: "released" });
    else this.#addToBuffer(jobs);
    if (jobs.length === limit) return 0;
    return nextDueInMs === null ? POLL_MS : Math.min(nextDueInMs, POLL_MS);
  }

  /** How many more jobs this worker wants now. Asks only when half of what it may hold is gone, to ask for many at once. */
  #wanted(): number {
    const { concurrency, prefetchMax } = this.#o.settings;
    const ahead = Math.min(prefetchMax, this.#recentlyFinished());
    const room = concurrency + ahead - this.#running.size - this.#buffered();
    const free = concurrency - this.#running.size - this.#buffered();
    return free > 0 || room * 2 >= concurrency + ahead ? room : 0;
  }

  #recentlyFinished(): number {
    const now = this.#o.clock.monotonic();
    if (now - this.#windowFrom >= RATE_WINDOW_MS) {
      this.#lastWindow = now - this.#windowFrom < 2 * RATE_WINDOW_MS ? this.#finishedInWindow : 0;
      this.#finishedInWindow = 0;
      this.#windowFrom = now;
    }
    return Math.max(this.#lastWindow, this.#finishedInWindow);
  }

  #holdsSuspect(): boolean {
    for (const run of this.#running.values()) if (this.#isSuspect(run.claimed)) return true;
    for (let i = this.#bufferAt; i < this.#buffer.length; i++)
      if (this.#isSuspect(this.#buffer[i]!)) return true;
    return false;
  }

  #isSuspect(job: ClaimedJob): boolean {
    return isSuspect(job.crashes, this.#o.rules.budgets);
  }

  #pollLater(ms: number): void {
    this.#cancelPoll?.();
    if (this.#draining) return;
    this.#cancelPoll = this.#o.clock.after(ms, () => this.wake());
  }

  #buffered(): number {
    return this.#buffer.length - this.#bufferAt;
  }

  #addToBuffer(jobs: readonly ClaimedJob[]): void {
    if (this.#buffered() === 0) {
      this.#buffer = [...jobs];
      this.#bufferAt = 0;
    } else this.#buffer = [...this.#takeBuffer(), ...jobs];
  }

  #takeBuffer(): ClaimedJob[] {
    const rest = this.#buffer.slice(this.#bufferAt);
    this.#buffer = [];
    this.#bufferAt = 0;
    return rest;
  }

  // ------------------------------------------------ running

  #start(): void {
    // A handler that ends within its call ends up here again: a loop, and not a stack as deep as the buffer.
    if (this.#starting) return;
    this.#starting = true;
    const { concurrency } = this.#o.settings;
    while (this.#running.size < concurrency && this.#buffered() > 0) {
      const job = this.#buffer[this.#bufferAt++]!;
      void this.#run(job);
    }
    this.#starting = false;
  }

  async #run(job: ClaimedJob): Promise<void> {
    const now = this.#o.clock.monotonic();
    const run = new JobRun(job, job.timeoutMs === null ? Infinity : now + job.timeoutMs, this.#hooks);
    this.#running.set(job.id, run);
    this.#o.onChange(job.id, "processing");
    if (run.deadline < this.#nextDeadline) this.#watchDeadline(run.deadline);
    const task = this.#o.tasks.get(job.task)!;
    let ending: Ending;
    try {
      const payload = this.#payload(task, job);
      const result = this.#invoke(task, payload instanceof Promise ? await payload : payload, run);
      ending = { ended: "returned", result: isThenable(result) ? await result : result };
    } catch (error) {
      ending = { ended: "threw", error };
    }
    this.#end(run, task, ending);
  }

  #payload(task: Task, job: ClaimedJob): unknown {
    const parsed = JSON.parse(job.payload) as unknown;
    if (!task.schema) return parsed;
    const checked = checkPayload(task, parsed);
    const read = (verdict: Awaited<typeof checked>): unknown => {
      if (verdict.ok) return verdict.value;
      throw new BadPayload(`${verdict.field}: ${verdict.message}`);
    };
    return checked instanceof Promise ? checked.then(read) : read(checked);
  }

  #invoke(task: Task, payload: unknown, run: JobRun): unknown {
    return task.isolation === "thread" ? this.#o.threads.run(task, payload, run) : task.run(payload, run);
  }

  #end(run: JobRun, task: Task, ending: Ending): void {
    if (run.abandoned) return;
    const { claimed } = run;
    this.#running.delete(claimed.id);
    const aborted = { why: run.aborted, message: run.abortMessage };
    const outcome = outcomeOf(claimed, ending, aborted, task.retry, this.#o.rules);
    if (outcome) this.#settle(claimed, outcome);
    else this.#reporting.delete(run);
    this.#finishedInWindow++;
    this.#start();
    if (!outcome) this.wake(); // nothing is flushed, so no claim goes along with it
    if (this.#running.size === 0) this.#tellIdle();
  }

  // ------------------------------------------------ stopping runs

  #cancel(id: JobId, reason: string | null): void {
    const run = this.#running.get(id);
    if (run) return this.#abort(run, "cancel", reason ?? "cancelled");
    const waiting = this.#buffer.findIndex((job, index) => index >= this.#bufferAt && job.id === id);
    if (waiting < 0) return;
    const [job] = this.#buffer.splice(waiting, 1);
    this.#settle(job!, { kind: "cancelled", error: { code: "CANCELLED", message: reason ?? "cancelled" } });
  }

  #abort(run: JobRun, why: AbortReason, message: string | null): void {
    if (!run.abort(why, message)) return;
    run.deadline = this.#o.clock.monotonic() + this.#o.settings.abortGraceMs;
    if (run.deadline < this.#nextDeadline) this.#watchDeadline(run.deadline);
  }

  /** The handler did not end in time: its job is settled without it, and its slot is free again. */
  #abandon(run: JobRun): void {
    const { id, task } = run.claimed;
    this.#o.log.warn(
      { jobId: id, task, why: run.aborted },
      "the handler did not end in time and was given up",
    );
    this.#end(run, this.#o.tasks.get(task)!, { ended: "abandoned" });
    run.abandoned = true;
  }

  #watchDeadline(at: number): void {
    this.#cancelDeadline?.();
    this.#nextDeadline = at;
    if (at === Infinity) return;
    this.#cancelDeadline = this.#o.clock.after(Math.ceil(at - this.#o.clock.monotonic()), () =>
      this.#deadline(),
    );
  }

  #deadline(): void {
    const now = this.#o.clock.monotonic();
    this.#nextDeadline = Infinity;
    let next = Infinity;
    for (const run of this.#running.values()) {
      if (run.deadline <= now) {
        if (run.aborted) this.#abandon(run);
        else this.#abort(run, "timeout", null);
      }
      if (this.#running.has(run.claimed.id) && run.deadline < next) next = run.deadline;
    }
    if (next < this.#nextDeadline) this.#watchDeadline(next);
  }

  // ------------------------------------------------ leases

  #newLease(): LeaseId {
    const { name, incarnation } = this.#o.identity;
    return `${name}/${incarnation}/${this.#leases++}` as LeaseId;
  }

  #renewLater(): void {
    this.#cancelRenew = this.#o.clock.after(this.#o.settings.renewMs, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { store, settings, clock, log } = this.#o;
    // Results that the store has not taken yet need the lease as much as runs do.
    if (this.#running.size + this.#buffered() > 0 || this.#flushing) {
      const sentAt = clock.monotonic();
      try {
        const { held, cancelled } = await store.jobs.renew(this.#lease, settings.leaseMs);
        if (held) this.#leaseTrustedUntil = sentAt + settings.leaseMs;
        else this.#loseLease("it was taken away");
        for (const wish of cancelled) this.#cancel(wish.id, wish.reason);
      } catch (error) {
        log.warn({ err: error }, "could not renew the lease");
      }
      if (clock.monotonic() > this.#leaseTrustedUntil)
        this.#loseLease("it ran out before it could be renewed");
    }
    if (this.running) this.#renewLater();
  }

  /** Others may run our jobs by now. Whatever we would say of them is refused by the store, so say nothing. */
  #loseLease(why: string): void {
    this.#lease = this.#newLease();
    this.#leaseTrustedUntil = Infinity;
    if (this.#running.size + this.#buffered() === 0) return;
    this.#o.log.error({ jobs: this.#running.size }, `the lease on running jobs is lost: ${why}`);
    this.#takeBuffer();
    for (const run of this.#running.values()) this.#abort(run, "lease_lost", `the lease is lost: ${why}`);
    this.wake();
  }

  // ------------------------------------------------ settling

  #settle(job: ClaimedJob, outcome: Outcome): void {
    this.#settlements.push({ run: job, outcome });
    this.#scheduleFlush();
  }

  #scheduleFlush(): void {
    if (this.#flushScheduled || this.#flushing) return;
    this.#flushScheduled = true;
    setImmediate(() => void this.#flush());
  }

  /** Reports go before results, and the next claim goes with them: an embedded store commits all three at once. */
  #flush(): Promise<void> {
    this.#flushScheduled = false;
    if (this.#unflushed()) this.#flushing ??= this.#flushNow();
    return this.#flushing ?? Promise.resolve();
  }

  #unflushed(): boolean {
    return this.#settlements.length > 0 || this.#reporting.size > 0;
  }

  async #flushNow(): Promise<void> {
    while (this.#unflushed()) {
      const settlements = this.#settlements;
      const reports = this.#takeReports();
      this.#settlements = [];
      const writes = this.#write(reports, settlements);
      if (!this.#claiming && this.#wanted() > 0) this.wake();
      await writes;
    }
    this.#flushing = null;
  }

  #takeReports(): Report[] {
    const reports: Report[] = [];
    for (const run of this.#reporting) {
      const report = run.takeReport();
      if (report) reports.push(report);
    }
    this.#reporting.clear();
    return reports;
  }

  async #write(reports: readonly Report[], settlements: readonly Settlement[]): Promise<void> {
    const { clock, log } = this.#o;
    let unreported = reports;
    for (let tries = 1; ; tries++) {
      const [reported, settled] = await this.#send(unreported, settlements);
      if (reported.status === "fulfilled") unreported = [];
      const failed = [reported, settled].find((answer) => answer.status === "rejected");
      this.#storeFailed = failed !== undefined;
      if (settled.status === "fulfilled" && !failed) {
        for (const { run } of reports) this.#o.onChange(run.id, null);
        return this.#announce(settlements, settled.value);
      }
      const fields = { err: failed!.reason as unknown, results: settlements.length };
      if (hasCode(fields.err, "STOPPED")) return;
      if (clock.monotonic() >= this.#giveUpAt)
        return log.error(fields, "could not store results before the end; their jobs will run again");
      // The results are kept: settling again is harmless, the store knows each run by its epoch.
      if (tries === 1) log.error(fields, "could not store results; trying again");
      await clock.sleep(STORE_RETRY_MS);
    }
  }

  #send(reports: readonly Report[], settlements: readonly Settlement[]) {
    // Async, so that also a store that refuses at once is a rejection.
    const report = async () => (reports.length > 0 ? this.#o.store.jobs.report(reports) : []);
    const settle = async () => (settlements.length > 0 ? this.#o.store.jobs.settle(settlements) : []);
    return Promise.allSettled([report(), settle()] as const);
  }

  #announce(settlements: readonly Settlement[], verdicts: readonly string[]): void {
    for (let i = 0; i < settlements.length; i++) {
      const { run, outcome } = settlements[i]!;
      if (verdicts[i] === "stale") {
        this.#o.log.warn(
          { jobId: run.id, jobEpoch: run.jobEpoch },
          "a result was refused: the job has moved on (STALE_EPOCH)",
        );
      } else this.#o.onChange(run.id, statusAfter(outcome));
    }
  }

  async #flushAll(): Promise<void> {
    while (this.#unflushed() || this.#flushing || this.#claiming) {
      await this.#claiming;
      await this.#flush();
    }
  }

  #idle(): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  #tellIdle(): void {
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

class BadPayload extends Error {
  readonly code = "BAD_PAYLOAD";
  readonly retryable = false;
}

function statusAfter(outcome: Outcome): JobStatus {
  switch (outcome.kind) {
    case "completed":
    case "failed":
    case "cancelled":
      return outcome.kind;
    case "retry":
      return "scheduled";
    case "interrupted":
    case "released":
      return "queued";
  }
}
