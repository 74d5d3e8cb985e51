/** The changes to a job when its run ends or its claimant dies. */

import type { Budgets, Job, JobError } from "../../../core/jobs/job.ts";
import { crashError, interruptionError, mayRetry, overdueError } from "../../../core/jobs/job.ts";
import type { DispatchedJob } from "../../ownership.ts";
import type { Author, LogLine, NewLogLine, Outcome, Run, Verdict } from "../../store.ts";
import { LOG_LINES_MAX } from "../../store.ts";
import type { Entry } from "./store-cache.ts";

/** Whether the run may still write. A run that is over and was not taken away is the one that was settled. */
export function verdictOn(entry: Entry | undefined, run: Pick<Run, "jobEpoch" | "lease">): Verdict {
  if (!entry) return "missing";
  if (entry.job.jobEpoch !== run.jobEpoch || entry.lease !== run.lease) return "stale";
  return entry.job.status === "processing" ? "accepted" : "replayed";
}

export function afterStart(
  job: Job,
  { author, worker }: { readonly author: Author; readonly worker: string },
  now: number,
): Partial<Job> {
  return {
    status: "processing",
    jobEpoch: job.jobEpoch + 1,
    attempts: job.attempts + 1,
    startedAt: now,
    progress: null,
    progressMessage: null,
    worker,
    owner: author.node,
    ownerEpoch: author.ownerEpoch,
    leaderEpoch: author.leaderEpoch,
  };
}

/** What its claimant is told of a job. */
export function asClaimed(job: Job): DispatchedJob {
  return {
    id: job.id,
    jobEpoch: job.jobEpoch,
    task: job.task,
    queue: job.queue,
    priority: job.priority,
    payload: job.payload,
    attempts: job.attempts,
    failures: job.failures,
    interruptions: job.interruptions,
    crashes: job.crashes,
    maxAttempts: job.maxAttempts,
    timeoutMs: job.timeoutMs,
    createdAt: job.createdAt,
    runAt: job.runAt,
    trace: job.trace,
  };
}

export function afterRun({ job, cancelReason }: Entry, outcome: Outcome, now: number): Partial<Job> {
  const finished = { finishedAt: now };
  const back = { status: "queued", worker: null, startedAt: null } as const;
  switch (outcome.kind) {
    case "completed":
      return { ...finished, status: "completed", error: null };
    case "failed":
      return { ...finished, status: "failed", error: outcome.error, ...charged(job, outcome.spends) };
    case "cancelled":
      return { ...finished, status: "cancelled", error: outcome.error };
    case "retry": {
      const spent = charged(job, "failure");
      if (job.cancelRequested) return { ...cancelled(cancelReason, now), ...spent };
      const runAt = now + outcome.delayMs;
      return { ...back, ...spent, runAt, status: runAt > now ? "scheduled" : "queued", error: outcome.error };
    }
    case "interrupted": {
      const spent = charged(job, "interruption");
      return job.cancelRequested ? { ...cancelled(cancelReason, now), ...spent } : { ...back, ...spent };
    }
    case "released": {
      const unspent = { attempts: job.attempts - 1, startedAt: null };
      return job.cancelRequested ? { ...cancelled(cancelReason, now), ...unspent } : { ...back, ...unspent };
    }
  }
}

/** A higher epoch at once, not only with the next claim: the dead may still speak while the job waits. */
export function afterCrash({ job, cancelReason }: Entry, budgets: Budgets, now: number): Partial<Job> {
  const killed = [...job.killed, job.worker!];
  const spent = { crashes: job.crashes + 1, jobEpoch: job.jobEpoch + 1, killed };
  if (job.cancelRequested) return { ...cancelled(cancelReason, now), ...spent };
  const error = crashError(job, budgets, killed);
  if (error) return { ...spent, status: "failed", error, finishedAt: now };
  return { ...spent, status: "queued", worker: null, startedAt: null };
}

/** Of a run whose claimant was ended in order, or never heard of it. */
export function afterInterruption({ job, cancelReason }: Entry, budgets: Budgets, now: number): Partial<Job> {
  const spent = { ...charged(job, "interruption"), jobEpoch: job.jobEpoch + 1 };
  if (job.cancelRequested) return { ...cancelled(cancelReason, now), ...spent };
  const error = interruptionError(job, budgets);
  if (error) return { ...spent, status: "failed", error, finishedAt: now };
  return { ...spent, status: "queued", worker: null, startedAt: null };
}

export function isOverdue({ job }: Entry, graceMs: number, now: number): boolean {
  return job.timeoutMs !== null && job.startedAt! + job.timeoutMs + graceMs <= now;
}

/** As a failure, and not as a crash: its worker lives. A higher epoch at once, for the run goes on. */
export function afterOverdue({ job, cancelReason }: Entry, now: number): Partial<Job> {
  const spent = { ...charged(job, "failure"), jobEpoch: job.jobEpoch + 1 };
  if (job.cancelRequested) return { ...cancelled(cancelReason, now), ...spent };
  const error = overdueError(job.timeoutMs!, job.worker!);
  if (!mayRetry(job)) return { ...spent, status: "failed", error, finishedAt: now };
  return { ...spent, status: "queued", error, runAt: now, worker: null, startedAt: null };
}

export function cancelled(reason: string | null, now: number): Partial<Job> {
  const error: JobError = {
    code: "CANCELLED",
    message: reason ?? "cancelled on request",
  };
  return { status: "cancelled", cancelRequested: true, finishedAt: now, error };
}

function charged(job: Job, budget: "failure" | "interruption"): Partial<Job> {
  return budget === "failure" ? { failures: job.failures + 1 } : { interruptions: job.interruptions + 1 };
}

export function appendLogs(
  logs: LogLine[],
  lines: readonly NewLogLine[],
  jobEpoch: number,
  now: number,
): void {
  for (const { at, level, message } of lines) {
    const seq = logs.length + 1;
    if (seq > LOG_LINES_MAX) return;
    if (seq < LOG_LINES_MAX) logs.push({ seq, jobEpoch, at, level, message });
    else logs.push({ seq, jobEpoch, at: now, level: "warn", message: LIMIT_REACHED });
  }
}

const LIMIT_REACHED = `the limit of ${LOG_LINES_MAX} log lines is reached; this job's further lines are dropped`;
