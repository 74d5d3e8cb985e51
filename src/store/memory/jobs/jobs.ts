/**
 * Jobs in memory. Each call is one turn, which takes the place of a transaction. A batch is copied before the first
 * write, so that a batch that cannot be read changes nothing.
 */

import { BatonError } from "../../../core/errors.ts";
import type { JobId, LeaseId } from "../../../core/ids.ts";
import type { Budgets, Job, JobStatus } from "../../../core/jobs/job.ts";
import { isFinal, isSuspect } from "../../../core/jobs/job.ts";
import { passesFilters } from "../../../core/jobs/job-fields.ts";
import type { Term } from "../../../core/leadership/term.ts";
import { wasInterrupted } from "../../abandoned-leases.ts";
import { authorUnder } from "../../fenced-author.ts";
import type { JobRuns, PastOutcome } from "../../past-runs.ts";
import type {
  Abandoned,
  Author,
  BriefPage,
  CancelAnswer,
  Claimed,
  ClaimedJob,
  ClaimRequest,
  JobPage,
  JobQuery,
  JobTiming,
  JobStore,
  LogLine,
  NewJob,
  Recovered,
  Renewal,
  Report,
  Retention,
  Settlement,
  Submitted,
  Verdict,
} from "../../store.ts";
import { type Entry, keepRun, type StoreCache, shown } from "./store-cache.ts";
import type { Leases } from "./leases.ts";
import { copiedReport, copiedSettlement, type RunWrites } from "./run-writes.ts";
import { afterCrash, afterInterruption, afterOverdue, cancelled, isOverdue } from "./run-endings.ts";
import type { MemoryTerms } from "../terms.ts";
import type { Turn } from "../turn.ts";

export interface MemoryJobsOptions {
  readonly ledger: StoreCache;
  readonly leases: Leases;
  readonly runs: RunWrites;
  readonly terms: MemoryTerms;
  readonly turn: Turn;
}

export class MemoryJobs implements JobStore {
  readonly #ledger: StoreCache;
  readonly #leases: Leases;
  readonly #runs: RunWrites;
  readonly #terms: MemoryTerms;
  readonly #turn: Turn;

  constructor(options: MemoryJobsOptions) {
    this.#ledger = options.ledger;
    this.#leases = options.leases;
    this.#runs = options.runs;
    this.#terms = options.terms;
    this.#turn = options.turn;
  }

  submit(
    jobs: readonly NewJob[],
    author: Author,
    _wakes = false,
    fence?: Term,
  ): Promise<readonly Submitted[]> {
    return this.#turn((now) => {
      if (fence) this.#terms.require(fence);
      const by = authorUnder(author, fence);
      const wanted = jobs.map((job) => ({ ...job }));
      return wanted.map((job) => this.#ledger.add(job, by, null, now));
    });
  }

  claim(request: ClaimRequest): Promise<Claimed> {
    return this.#turn((now) => {
      const { fence } = request;
      if (fence) this.#terms.require(fence);
      const claimant = { ...request, author: authorUnder(request.author, fence) };
      const jobs: ClaimedJob[] = [];
      const held = this.#leases.hold(request.lease, request.leaseMs, request.opens);
      if (held) {
        for (const entry of this.#ledger.due(request)) {
          // A mark is no claim: whoever comes with it later finds it gone.
          if (entry.assignment) this.#ledger.mark(entry, null);
          jobs.push(this.#runs.start(entry, claimant, now));
        }
      }
      const nextDueAt = this.#ledger.nextDueAt();
      return { jobs, held, nextDueInMs: nextDueAt === null ? null : nextDueAt - now };
    });
  }

  settle(settlements: readonly Settlement[], fence?: Term): Promise<readonly Verdict[]> {
    return this.#turn((now) => {
      if (fence) this.#terms.require(fence);
      const read = settlements.map(copiedSettlement);
      return read.map((settlement) => this.#runs.settle(settlement, now, { fence }));
    });
  }

  report(reports: readonly Report[], fence?: Term): Promise<readonly Verdict[]> {
    return this.#turn((now) => {
      if (fence) this.#terms.require(fence);
      const read = reports.map(copiedReport);
      return read.map((report) => this.#runs.report(report, now, { fence }));
    });
  }

  renew(lease: LeaseId, ttlMs: number, fence?: Term): Promise<Renewal> {
    return this.#turn(() => {
      if (fence) this.#terms.require(fence);
      const runs = this.#leases.renew(lease, ttlMs);
      if (!runs) return { held: false, cancelled: [] };
      const unwanted = [...runs].filter(({ job }) => job.cancelRequested);
      return {
        held: true,
        cancelled: unwanted.map(({ job, cancelReason }) => ({
          id: job.id,
          jobEpoch: job.jobEpoch,
          reason: cancelReason,
        })),
      };
    });
  }

  recover(which: Abandoned, budgets: Budgets, fence: Term): Promise<readonly Recovered[]> {
    return this.#turn((now) => {
      this.#terms.require(fence);
      if (which.by === "overdue") {
        const overdue = this.#leases.takeAway((entry) => isOverdue(entry, which.graceMs, now));
        return overdue.map((entry) => this.#putBack(entry, "overdue", afterOverdue(entry, now), fence, now));
      }
      return this.#leases.end(which).map((entry) => {
        if (wasInterrupted(entry.lease!, which))
          return this.#putBack(entry, "interrupted", afterInterruption(entry, budgets, now), fence, now);
        const suspect = isSuspect(entry.job.crashes + 1, budgets);
        return this.#putBack(entry, "crashed", afterCrash(entry, budgets, now), fence, now, suspect);
      });
    });
  }

  cancel(id: JobId, reason: string | null): Promise<CancelAnswer> {
    return this.#turn((now) => {
      const entry = this.#ledger.find(id);
      if (!entry) return { outcome: "missing" };
      const { status, cancelRequested } = entry.job;
      if (isFinal(status)) return { outcome: "finished", status };
      if (status !== "processing") {
        this.#ledger.change(entry, cancelled(reason, now), now);
        return { outcome: "cancelled" };
      }
      if (!cancelRequested) {
        entry.cancelReason = reason;
        this.#ledger.change(entry, { cancelRequested: true }, now);
      }
      return { outcome: "requested" };
    });
  }

  retry(id: JobId): Promise<JobStatus | "missing" | "retried"> {
    return this.#turn((now) => {
      const entry = this.#ledger.find(id);
      if (!entry) return "missing";
      const { status } = entry.job;
      if (status !== "failed" && status !== "cancelled") return status;
      entry.cancelReason = null;
      entry.lease = null;
      keepRun(entry, status, entry.job.finishedAt ?? now);
      this.#ledger.change(entry, { ...AFRESH, jobEpoch: entry.job.jobEpoch + 1, runAt: now }, now, false);
      return "retried";
    });
  }

  remove(id: JobId): Promise<"removed" | "running" | "missing"> {
    return this.#turn(() => {
      const entry = this.#ledger.find(id);
      if (!entry) return "missing";
      if (entry.job.status === "processing") return "running";
      this.#ledger.remove(entry);
      return "removed";
    });
  }

  get(id: JobId): Promise<Job | null> {
    return this.#turn(() => {
      const entry = this.#ledger.find(id);
      return entry ? shown(entry) : null;
    });
  }

  result(id: JobId): Promise<string | null> {
    return this.#turn(() => this.#ledger.find(id)?.result ?? null);
  }

  list(query: JobQuery): Promise<JobPage> {
    return this.#turn(() => {
      const below = query.cursor === undefined ? Infinity : parseCursor(query.cursor);
      const found: Entry[] = [];
      for (const entry of [...this.#ledger.entries()].reverse()) {
        if (entry.arrival >= below || !matches(entry.job, query)) continue;
        // One more than asked for tells whether there is another page.
        if (found.push(entry) > query.limit) break;
      }
      const page = found.slice(0, query.limit);
      const cursor = found.length > page.length ? `${page.at(-1)?.arrival ?? below}` : null;
      return { jobs: page.map(shown), cursor };
    });
  }

  async brief(query: JobQuery): Promise<BriefPage> {
    const { jobs, cursor } = await this.list(query);
    return {
      jobs: jobs.map(({ id, task, queue, status, createdAt, finishedAt, error }) => {
        return { id, task, queue, status, createdAt, finishedAt, error };
      }),
      cursor,
    };
  }

  runs(id: JobId): Promise<JobRuns> {
    return this.#turn(() => {
      const entry = this.#ledger.find(id);
      const assignments = entry?.assignment ? [entry.assignment.id] : [];
      return { past: [...(entry?.past ?? [])], assignments };
    });
  }

  timings(limit: number, withinMs: number): Promise<readonly JobTiming[]> {
    return this.#turn((now) => {
      const timings: JobTiming[] = [];
      let looked = 0;
      for (const { job } of [...this.#ledger.entries()].reverse()) {
        if (job.finishedAt === null) continue;
        if (++looked > limit) break;
        if (job.startedAt === null || job.finishedAt < now - withinMs) continue;
        timings.push({ waitMs: job.startedAt - job.runAt, runMs: job.finishedAt - job.startedAt });
      }
      return timings;
    });
  }

  logs(id: JobId, after: number, limit: number): Promise<readonly LogLine[]> {
    return this.#turn(() => this.#ledger.find(id)?.logs.slice(after, after + limit) ?? []);
  }

  purge(retention: Retention, limit: number, fence: Term): Promise<number> {
    return this.#turn((now) => {
      this.#terms.require(fence);
      const keptMs = {
        completed: retention.completedMs,
        failed: retention.failedMs,
        cancelled: retention.cancelledMs,
      };
      let removed = 0;
      for (const entry of this.#ledger.entries()) {
        if (removed >= limit) break;
        const { status, finishedAt } = entry.job;
        if (!isFinal(status) || now - finishedAt! <= keptMs[status]) continue;
        this.#ledger.remove(entry);
        removed++;
      }
      return removed;
    });
  }

  #putBack(
    entry: Entry,
    past: PastOutcome,
    change: Partial<Job>,
    fence: Term,
    now: number,
    suspect?: boolean,
  ): Recovered {
    const worker = entry.job.worker!;
    if (change.finishedAt === undefined) keepRun(entry, past, now, change.error ?? null);
    this.#ledger.change(entry, { ...change, leaderEpoch: fence.epoch }, now, suspect);
    entry.lease = null;
    const { id, failures, interruptions, crashes } = entry.job;
    const status = entry.job.status as Recovered["status"];
    return { id, worker, status, failures, interruptions, crashes };
  }
}

/** Retried by hand: as new, but for the starts so far and the logs, and under a new epoch: its last run is history. */
const AFRESH = {
  status: "queued",
  failures: 0,
  interruptions: 0,
  crashes: 0,
  killed: [],
  error: null,
  progress: null,
  progressMessage: null,
  cancelRequested: false,
  startedAt: null,
  finishedAt: null,
  worker: null,
} as const satisfies Partial<Job>;

function matches(job: Job, query: JobQuery): boolean {
  const { status, since, until, errorCode } = query;
  return (
    (status === undefined || job.status === status) &&
    passesFilters(job, query) &&
    (since === undefined || job.createdAt >= since) &&
    (until === undefined || job.createdAt < until) &&
    (errorCode === undefined || job.error?.code === errorCode)
  );
}

function parseCursor(cursor: string): number {
  if (/^[1-9][0-9]{0,14}$/.test(cursor)) return Number(cursor);
  throw new BatonError(
    "BAD_REQUEST",
    `cursor ${JSON.stringify(cursor)} was not given by this store; leave it out to start from the newest job`,
    { field: "cursor" },
  );
}
