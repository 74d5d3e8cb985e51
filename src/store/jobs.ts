/**
 * Jobs in the store: submit, claim, settle, recover, control, read. Rules for all calls of the store are in store.ts.
 *
 * Not guaranteed: that a job runs only once (a worker may die after the effect and before the result), and an order
 * among jobs of equal priority that several workers run.
 */

import type { Budgets, Job, JobStatus, Spent } from "../core/jobs/job.ts";
import type { TimelineRun } from "../core/jobs/job-timeline.ts";
import type { KeyReuse } from "../core/jobs/idempotency.ts";
import type { Abandoned, Outcome, PastOutcome, Recovered } from "../core/jobs/run-end.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import type { FieldFilters, RareFields } from "../core/jobs/job-fields.ts";
import type { Term } from "../core/leadership/term.ts";
import type { WorkScope } from "../core/push/dispatch.ts";
import type { Author } from "./store.ts";

export type { Retention } from "../core/jobs/job.ts";
export type { Abandoned, Outcome, Recovered } from "../core/jobs/run-end.ts";

export interface JobStore {
  /**
   * A job whose idempotency key belongs to another job of its task is not stored: that job is returned with `existed`. If it
   * has another payload, the call rejects with IDEMPOTENCY_CONFLICT and stores nothing (core/jobs/idempotency.ts). `apart`:
   * the jobs are of different callers, and one that is refused is answered with `conflict` instead. With `wakes`, a shared
   * store also sends the hint `jobs.ready` with its commit, which saves a round trip.
   */
  submit(
    jobs: readonly NewJob[],
    author: Author,
    wakes?: boolean,
    fence?: Term,
    apart?: boolean,
  ): Promise<readonly Submitted[]>;

  /**
   * The same inside a transaction of the caller: its commit stores the jobs and wakes the workers. Left out by a store
   * to which callers cannot connect. Errors of the database are passed on unchanged, so that the caller can roll back
   * or try again.
   */
  submitWithin?(
    client: TransactionClient,
    jobs: readonly NewJob[],
    author: Author,
  ): Promise<readonly Submitted[]>;

  /** Takes due jobs in the order of priority (higher first), due time, arrival; each under a new job epoch. */
  claim(request: ClaimRequest): Promise<Claimed>;

  /**
   * Writes logs and progress of runs, and then ends runs, in one transaction, with a verdict for each. A stale run does
   * not affect the others. A settlement is written after reports that were sent before it, even if the caller did not
   * wait for them.
   */
  record(batch: RunBatch, fence?: Term): Promise<Recorded>;

  /** Left out by a store whose workers get their jobs as fast without. */
  readonly slots?: SlotStore;

  /** Extends a lease. A lease that was taken over or has expired is not held and cannot be revived. */
  renew(lease: LeaseId, ttlMs: number, fence?: Term): Promise<Renewal>;

  /**
   * Returns the jobs of claimants that are gone to their place in the queue, under the next epoch, and ends their leases;
   * jobs whose budget is spent fail. Of an overdue run only the job is taken: it runs again at once if it has attempts left.
   */
  recover(which: Abandoned, budgets: Budgets, fence: Term): Promise<readonly Recovered[]>;

  /** A waiting job is cancelled at once. For a running job the request is stored, and `renew` returns it. */
  cancel(id: JobId, reason: string | null): Promise<CancelAnswer>;

  /**
   * A failed or cancelled job returns to the queue with fresh budgets. `superseded`: its idempotency key has made another
   * job since, and to run both would be to do the work twice.
   */
  retry(id: JobId): Promise<RetryAnswer>;

  /** Removes a job that does not run, with its logs. */
  remove(id: JobId): Promise<"removed" | "running" | "missing">;

  get(id: JobId): Promise<Job | null>;

  /** The result as JSON text; null while there is none. */
  result(id: JobId): Promise<string | null>;

  /** Newest first. With `brief`, only the fields that long lists show. */
  list(query: JobQuery): Promise<JobPage>;
  list(query: JobQuery, brief: true): Promise<JobPage<BriefJob>>;

  /** Runs that did not end the job, and its assignments. Empty if there is no such job. */
  runs(id: JobId): Promise<JobRuns>;

  /** How long recent jobs waited and ran: those of the newest `limit` finished jobs that ended in the last `withinMs`. */
  timings(limit: number, withinMs: number): Promise<readonly JobTiming[]>;

  /** Log lines with a sequence number above `after`, oldest first. Empty if there is no such job. */
  logs(id: JobId, after: number, limit: number): Promise<readonly LogLine[]>;
}

/** A client of node-postgres with an open transaction, or an object with the same `query`. */
export interface TransactionClient {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

export interface NewJob
  extends
    Partial<RareFields>,
    Pick<
      Job,
      "id" | "task" | "queue" | "priority" | "payload" | "maxAttempts" | "timeoutMs" | "idempotencyKey"
    > {
  /** From now, by the store's clock; 0 is at once. Ignored when `runAt` is given. */
  readonly delayMs: number;
  readonly runAt: number | null;
  /** `after_failure` unless given. Not stored: the job that would use the key again decides. */
  readonly keyReuse?: KeyReuse;
  /** Passed on to its worker (core/trace.ts). */
  readonly trace?: string | null;
}

export interface Submitted {
  readonly id: JobId;
  readonly status: JobStatus;
  readonly existed: boolean;
  /** This job, which existed, has another payload. */
  readonly conflict?: true;
  /** Left out unless the job runs under a slot. The run, if the slot was opened through this store; null if another one was. */
  readonly given?: ClaimedJob | null;
}

/**
 * Slots: a claimant that has room and finds nothing to claim opens one. From then on the store may put a job that is submitted
 * alone under its lease at once, as if it had been claimed by then: its first run, under epoch 1. Only a job that nothing else
 * waits in front of is given out in this way.
 *
 * The claimant hears of it by a hint (`GivenJob`), or from `submit` if it opened the slot through the same store. Hints may be
 * lost, so it asks again every now and then. `known` are the runs that it holds or has not settled, and no claim of its may be
 * under way: both methods return the jobs under the lease that are not among them.
 */
export interface SlotStore {
  /** Opens the slot, or leaves it open. Not `opened`: there cannot be one at the moment. */
  open(request: SlotRequest, known: readonly Run[]): Promise<Slot>;
  /** Those of these jobs, by their `ref`, that run under the lease and have not been claimed. */
  read(lease: LeaseId, refs: readonly unknown[]): Promise<readonly ClaimedJob[]>;
  /** When it resolves, no more jobs are put there. */
  close(lease: LeaseId, known: readonly Run[]): Promise<readonly ClaimedJob[]>;
}

export interface SlotRequest
  extends WorkScope, Pick<ClaimRequest, "author" | "worker" | "lease" | "leaseMs" | "opens"> {
  /** Where the claimant hears of its jobs; nobody else knows of it. */
  readonly channel: string;
}

export interface Slot {
  readonly opened: boolean;
  /** False: the claimant no longer holds the lease. */
  readonly held: boolean;
  readonly jobs: readonly ClaimedJob[];
}

/** Jobs of other tasks and queues stay where they are. Paused queues are always skipped. */
export interface ClaimRequest extends WorkScope {
  readonly author: Author;
  /** Shown with the job, and recorded if it dies during the run. */
  readonly worker: string;
  readonly lease: LeaseId;
  readonly leaseMs: number;
  readonly limit: number;
  /**
   * Whether the claim may open the lease: only for a claimant without runs. Otherwise the lease must exist: an ended
   * one is not revived, and the claimant learns that it has lost its runs.
   */
  readonly opens: boolean;
  /** Whether one suspect (core/jobs/job.ts) may be among them. A claimant runs no other suspect at the same time. */
  readonly suspect: boolean;
  /** The claimant has a slot, and learns there that its lease has ended: a claim that finds nothing need not ask. */
  readonly hasSlot?: boolean;
  readonly fence?: Term;
}

export interface Claimed {
  readonly jobs: readonly ClaimedJob[];
  /** False: the claimant no longer holds the lease, and nothing was claimed. */
  readonly held: boolean;
  /** From now; null if no scheduled job is known. */
  readonly nextDueInMs: number | null;
}

/** One run: this job under this epoch. `ref` is a shortcut of the store; others leave it out. */
export interface Run {
  readonly id: JobId;
  readonly jobEpoch: number;
  readonly lease: LeaseId;
  readonly ref?: unknown;
}

/** Its `attempts` are 1 for the first start. */
export interface ClaimedJob
  extends
    Run,
    Spent,
    Pick<Job, "task" | "queue" | "priority" | "payload" | "attempts">,
    Pick<Job, "timeoutMs" | "createdAt" | "runAt" | "leaderEpoch"> {
  /** Left out by a node of an earlier version that dispatched it. */
  readonly trace?: string | null;
  /** Left out for a job that its worker claimed itself. */
  readonly assignment?: number;
}

export interface Settlement {
  readonly run: Run;
  readonly outcome: Outcome;
}

/**
 * `replayed`: this run was settled before; nothing changed, and the first result stands.
 * `stale`: the job has a higher epoch, or another lease holds it.
 */
export type Verdict = "accepted" | "replayed" | "stale" | "missing";

export interface NewLogLine {
  readonly at: number;
  readonly level: LogLevel;
  readonly message: string;
}

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogLine extends NewLogLine {
  /** From 1, without gaps, across all runs of the job. */
  readonly seq: number;
  readonly jobEpoch: number;
}

/** The last line says that the limit is reached; later ones are dropped. */
export const LOG_LINES_MAX = 10_000;
export const LOG_LIMIT_REACHED = `the limit of ${LOG_LINES_MAX} log lines is reached; later lines are dropped`;

export interface Report {
  readonly run: Run;
  readonly logs: readonly NewLogLine[];
  readonly progress: { readonly value: number; readonly message: string | null } | null;
}

export interface RunBatch {
  readonly reports: readonly Report[];
  readonly settlements: readonly Settlement[];
}

export interface Recorded {
  readonly reported: readonly Verdict[];
  readonly settled: readonly Verdict[];
}

export interface Renewal {
  readonly held: boolean;
  /** Runs under this lease that are to be cancelled. */
  readonly cancelled: readonly {
    readonly id: JobId;
    readonly jobEpoch: number;
    readonly reason: string | null;
  }[];
}

export type CancelAnswer =
  | { readonly outcome: "cancelled" | "requested" | "missing" }
  | { readonly outcome: "finished"; readonly status: JobStatus };

export type RetryAnswer = JobStatus | "missing" | "retried" | "superseded";

export interface JobQuery extends FieldFilters {
  readonly status?: JobStatus;
  readonly since?: number;
  readonly until?: number;
  /** Of its final or most recent error. */
  readonly errorCode?: string;
  readonly limit: number;
  readonly cursor?: string;
}

export type BriefJob = Pick<Job, "id" | "task" | "queue" | "status" | "createdAt" | "finishedAt" | "error">;

export interface JobTiming {
  /** Until the start of its last run. */
  readonly waitMs: number;
  readonly runMs: number;
  readonly failed: boolean;
}

export interface JobPage<Listed = Job> {
  readonly jobs: readonly Listed[];
  /** For the next page; null at the end. */
  readonly cursor: string | null;
}

/**
 * Runs that did not end their job. A job that succeeds at once has none. The current or last run is part of the job
 * itself.
 */
export interface PastRun extends TimelineRun {
  readonly endedAt: number;
  readonly outcome: PastOutcome;
}

/** Of one job; older ones are removed. */
export const PAST_RUNS_MAX = 20;
/** An epoch is raised once or twice for each run, so this many epochs contain at least `PAST_RUNS_MAX` runs. */
export const PAST_EPOCHS_KEPT = 3 * PAST_RUNS_MAX;

export interface JobRuns {
  /** Oldest first. */
  readonly past: readonly PastRun[];
  /** Those in which it was dispatched, as far as they are known. */
  readonly assignments: readonly number[];
}

/** With the epoch of the term that the write carries. */
export function authorUnder(author: Author, fence: Term | undefined): Author {
  return fence ? { ...author, leaderEpoch: fence.epoch } : author;
}
