/**
 * Accepts the results, logs and progress of agents. They count only under the epochs of the run and of the term, and
 * the store compares both in the transaction of the write.
 */

import { leaseholder, type RESULT_STATUSES } from "../core/agent.ts";
import { BatonError, hasCode } from "../core/errors.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import { isFinal, type Job, type JobStatus } from "../core/jobs/job.ts";
import type { Term } from "../core/leadership/term.ts";
import { cut } from "../jobs/run/job-run.ts";
import type { JobSpans } from "../jobs/job-spans.ts";
import { outcomeOf, type Ending, type Judged, type OutcomeRules } from "../jobs/run/run-outcome.ts";
import { statusAfter } from "../jobs/run/result-writer.ts";
import { recordRuns } from "../jobs/run/run-writes.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import { Batcher, byTerm, type UnderTerm } from "../platform/batcher.ts";
import type { Platform } from "../platform/platform.ts";
import type { JobStore, NewLogLine, Outcome, Report, Run, Settlement, Verdict } from "../store/store.ts";
import type { LeasedRuns } from "./leased-runs.ts";
import type { TermGuard } from "./term-guard.ts";

/** Which run somebody speaks of. An epoch that is missing is as good as an old one. */
export interface RunNamed {
  readonly job: JobId;
  readonly lease: string;
  readonly jobEpoch: number | null;
  readonly leaderEpoch: number | null;
}

export interface AgentResult extends RunNamed {
  readonly agent?: string;
  readonly status: (typeof RESULT_STATUSES)[number];
  readonly result?: unknown;
  readonly error?: {
    readonly message: string;
    readonly code?: string;
    readonly stack?: string;
    readonly retryable?: boolean;
    readonly retryAfterMs?: number;
  };
}

export type ResultAnswer =
  | {
      readonly accepted: true;
      readonly job: JobId;
      readonly status: JobStatus;
      readonly leaderEpoch: number;
      /** It had been accepted before: the first answer stands. */
      readonly replayed: boolean;
    }
  | { readonly accepted: false; readonly job: JobId; readonly refusal: ResultRefusal };

export interface ResultRefusal {
  readonly code: "STALE_EPOCH" | "NOT_FOUND";
  readonly message: string;
  /** The one that is not right: an agent whose `leader_epoch` is old renews its lease at the leader and posts again. */
  readonly field: "leader_epoch" | "job_epoch" | "lease_id" | "job_id";
  /** Of whoever leads, as last seen. */
  readonly leaderEpoch: number | null;
}

export interface AgentReport extends RunNamed {
  readonly lines: readonly (Omit<NewLogLine, "at"> & { readonly at: number | null })[];
  readonly progress: Report["progress"];
}

export interface ResultServiceOptions {
  readonly store: { readonly jobs: Pick<JobStore, "get" | "record"> };
  readonly guard: TermGuard;
  readonly leasedRuns: LeasedRuns;
  readonly tasks: Pick<TaskRegistry, "get">;
  readonly rules: OutcomeRules;
  readonly spans?: JobSpans;
  readonly onSettled: (result: AgentResult, answer: ResultAnswer, outcome: Outcome | null) => void;
  readonly onReported: (id: JobId) => void;
}

/** Of a run whose outcome does not depend on what it has spent. */
const UNSPENT: Judged = { failures: 0, interruptions: 0, crashes: 0, maxAttempts: 1, timeoutMs: null };

export class ResultService {
  readonly #clock: Platform["clock"];
  readonly #o: ResultServiceOptions;
  readonly #settlements: Batcher<UnderTerm<Settlement, Term>, Verdict>;
  readonly #reports: Batcher<UnderTerm<Report, Term>, Verdict>;

  constructor(platform: Pick<Platform, "clock" | "events">, options: ResultServiceOptions) {
    this.#clock = platform.clock;
    this.#o = options;
    const writing = { store: options.store, events: platform.events };
    const { clock } = platform;
    const settle = byTerm(async (settlements: readonly Settlement[], term: Term) => {
      return (await recordRuns(writing, { reports: [], settlements }, term)).settled;
    });
    const report = byTerm(async (reports: readonly Report[], term: Term) => {
      return (await recordRuns(writing, { reports, settlements: [] }, term)).reported;
    });
    this.#settlements = new Batcher({ clock, flush: settle });
    this.#reports = new Batcher({ clock, flush: report });
  }

  async settle(results: readonly AgentResult[]): Promise<readonly ResultAnswer[]> {
    const term = this.#o.guard.require("finish");
    const judged = await Promise.all(
      results.map(async (result) => this.#refusal(result, term) ?? this.#judge(result)),
    );
    // Those of one request are added in the same turn, so that they are written together.
    return Promise.all(results.map((result, at) => this.#settle(result, judged[at]!, term)));
  }

  async report(report: AgentReport): Promise<number> {
    const term = this.#o.guard.require("finish");
    const refusal = this.#refusal(report, term);
    if (refusal) throw staleEpoch(report.job, refusal);
    const logs = report.lines.map(({ at, level, message }) => {
      return { at: at ?? this.#clock.now(), level, message: cut(message) };
    });
    const write = { run: this.#run(report), logs, progress: report.progress };
    const verdict = await unlessStale(this.#reports.add({ write, term }));
    if (verdict !== "accepted") throw staleEpoch(report.job, this.#afterVerdict(verdict, report));
    this.#o.onReported(report.job);
    return logs.length;
  }

  async #settle(result: AgentResult, judged: Settlement | ResultRefusal, term: Term): Promise<ResultAnswer> {
    const { spans, leasedRuns, onSettled } = this.#o;
    if ("code" in judged) {
      const answer = { accepted: false, job: result.job, refusal: judged } as const;
      onSettled(result, answer, null);
      return answer;
    }
    const { run, outcome } = judged;
    const trace = spans?.on ? leasedRuns.find(run.id, run.jobEpoch, run.lease)?.trace : null;
    const span = trace && spans!.settle(run, outcome, trace);
    const verdict = await unlessStale(this.#settlements.add({ write: judged, term }));
    if (span) spans!.settled(span, verdict ?? "stale");
    const answer = await this.#answer(result, judged, verdict, term);
    onSettled(result, answer, outcome);
    return answer;
  }

  /** A refusal that does not need the store. */
  #refusal(named: RunNamed & { readonly agent?: string }, term: Term): ResultRefusal | null {
    const { leaderEpoch, jobEpoch, lease, agent } = named;
    if (leaderEpoch !== term.epoch) {
      const given =
        leaderEpoch === null
          ? "leader_epoch is missing"
          : `leader_epoch ${leaderEpoch} is not the current one`;
      return stale("leader_epoch", `${given}; renew the lease and use the epoch of the answer`, term.epoch);
    }
    if (jobEpoch === null)
      return stale("job_epoch", "job_epoch is missing; give the one that came with the job", term.epoch);
    const holder = leaseholder(lease);
    if (holder === null || (agent !== undefined && agent !== holder))
      return stale("lease_id", `${lease} is not a lease of ${agent ?? "an agent"}`, term.epoch);
    return null;
  }

  async #judge(result: AgentResult): Promise<Settlement> {
    const { tasks, rules, store, leasedRuns } = this.#o;
    const run = this.#run(result);
    if (result.status === "released") return { run, outcome: { kind: "released" } };
    const leased = leasedRuns.find(run.id, run.jobEpoch, run.lease);
    // Leased from an earlier leader: only what is tried again depends on what was spent before.
    const job = leased ?? (result.status === "failed" ? await store.jobs.get(run.id) : null);
    const policy = job ? tasks.get(job.task)?.retry : undefined;
    const cancelled = { why: "cancel", message: result.error?.message ?? null } as const;
    const aborted = result.status === "cancelled" ? cancelled : null;
    return { run, outcome: outcomeOf(job ?? UNSPENT, endingOf(result), aborted, policy, rules)! };
  }

  async #answer(
    result: AgentResult,
    { outcome }: Settlement,
    verdict: Verdict | null,
    term: Term,
  ): Promise<ResultAnswer> {
    const { leasedRuns, store } = this.#o;
    if (verdict !== "accepted" && verdict !== "replayed")
      return { accepted: false, job: result.job, refusal: this.#afterVerdict(verdict, result) };
    const replayed = verdict === "replayed";
    if (!replayed) leasedRuns.end(result.job);
    const after = statusAfter(outcome);
    const common = { accepted: true, job: result.job, replayed } as const;
    if (!replayed && isFinal(after)) return { ...common, status: after, leaderEpoch: term.epoch };
    // A job that was to be cancelled does not return to the queue, and of a result that was sent before the first answer stands.
    const job = await store.jobs.get(result.job);
    const leaderEpoch = replayed ? (job?.leaderEpoch ?? term.epoch) : term.epoch;
    return { ...common, status: reportedStatus(result, job), leaderEpoch };
  }

  #afterVerdict(verdict: Verdict | null, { job, jobEpoch }: RunNamed): ResultRefusal {
    const { epoch } = this.#o.guard;
    if (verdict === null)
      return stale("leader_epoch", "this node does not lead any more; renew the lease at the leader", epoch);
    if (verdict === "missing") {
      const message = `there is no job ${job}; it was deleted, has expired or never was`;
      return { code: "NOT_FOUND", field: "job_id", message, leaderEpoch: epoch };
    }
    const why = `job ${job} has moved on, or is held under another lease; what was done under job_epoch ${jobEpoch} does not count`;
    return stale("job_epoch", why, epoch);
  }

  #run({ job, jobEpoch, lease }: RunNamed): Run {
    const named = { id: job, jobEpoch: jobEpoch!, lease: lease as LeaseId };
    return this.#o.leasedRuns.find(named.id, named.jobEpoch, named.lease) ?? named;
  }
}

/** Null when the term is over: somebody else leads, and nothing was written. */
async function unlessStale(written: Promise<Verdict>): Promise<Verdict | null> {
  try {
    return await written;
  } catch (error) {
    if (hasCode(error, "STALE_EPOCH")) return null;
    throw error;
  }
}

/** The same at every repetition, whether the job has become due meanwhile or not. */
function reportedStatus({ status }: AgentResult, job: Job | null): JobStatus {
  if (job && isFinal(job.status)) return job.status;
  return status === "failed" ? "scheduled" : "queued";
}

function endingOf({ status, result, error }: AgentResult): Ending {
  if (status === "succeeded") return { ended: "returned", result };
  return { ended: "threw", error: error ?? { message: "the agent gave no reason" } };
}

export function stale(
  field: ResultRefusal["field"],
  message: string,
  leaderEpoch: number | null,
): ResultRefusal {
  return { code: "STALE_EPOCH", message, field, leaderEpoch };
}

export function staleEpoch(
  job: JobId | null,
  { code, message, field, leaderEpoch }: ResultRefusal,
): BatonError {
  const alias = code === "STALE_EPOCH" ? { alias: "STALE_LEASE" } : {};
  return new BatonError(code, message, { ...alias, job_id: job, field, leader_epoch: leaderEpoch });
}
