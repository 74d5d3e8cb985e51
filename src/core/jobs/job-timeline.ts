/** The timeline of one job: what happened to it and when, from the job, its runs and the journal. */

import type { Job } from "./job.ts";

type RunFields = Pick<Job, "worker" | "jobEpoch" | "leaderEpoch" | "error">;
export type TimelineJob = RunFields &
  Pick<Job, "status" | "createdAt" | "runAt" | "startedAt" | "finishedAt">;

export interface TimelineRun extends RunFields {
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly outcome: string;
}

export interface TimelineEvent {
  readonly at: number;
  readonly what: string;
  readonly node: string | null;
  readonly jobEpoch: number | null;
  readonly ownerEpoch: number | null;
  readonly leaderEpoch: number | null;
  readonly message: string | null;
}

export interface TimelineHandoff {
  readonly at: number;
  readonly from: string | null;
  readonly to: string;
  readonly ownerEpoch: number;
  readonly reason: string;
}

/** Past runs, and the current or last one from the job itself. */
export function runsOf(job: TimelineJob, past: readonly TimelineRun[]): TimelineRun[] {
  const { startedAt, worker, leaderEpoch, jobEpoch, finishedAt, status } = job;
  if (startedAt === null) return [...past];
  const last: TimelineRun = {
    jobEpoch,
    worker,
    leaderEpoch,
    startedAt,
    endedAt: finishedAt,
    outcome: finishedAt === null ? "running" : status,
    error: finishedAt === null ? null : job.error,
  };
  return [...past, last];
}

export function timelineOf(
  job: TimelineJob,
  birthplace: string | null,
  runs: readonly TimelineRun[],
  handoffs: readonly TimelineHandoff[],
  others: readonly TimelineEvent[],
): TimelineEvent[] {
  const events: TimelineEvent[] = [event(job.createdAt, "submitted", { node: birthplace })];
  for (const run of runs) {
    const { worker: node, jobEpoch, leaderEpoch } = run;
    const numbers = { node, jobEpoch, leaderEpoch };
    events.push(event(run.startedAt, "started", numbers));
    const message = run.error?.message ?? null;
    if (run.endedAt !== null) events.push(event(run.endedAt, run.outcome, { ...numbers, message }));
  }
  if (job.finishedAt !== null && job.startedAt === null)
    events.push(event(job.finishedAt, job.status, { message: job.error?.message ?? null }));
  if (job.status === "scheduled") events.push(event(job.runAt, "due", {}));
  for (const { at, from, to, ownerEpoch, reason } of handoffs) {
    const message = `${from === null ? "from nobody" : `from ${from}`}: ${reason}`;
    events.push(event(at, "handed_over", { node: to, ownerEpoch, message }));
  }
  events.push(...others);
  return events.sort((a, b) => a.at - b.at || (a.jobEpoch ?? 0) - (b.jobEpoch ?? 0));
}

function event(at: number, what: string, rest: Partial<TimelineEvent>): TimelineEvent {
  return {
    at,
    what,
    node: null,
    jobEpoch: null,
    ownerEpoch: null,
    leaderEpoch: null,
    message: null,
    ...rest,
  };
}
