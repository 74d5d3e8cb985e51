/** A job as code reads it: the payload as a value, times as Date. */

import type { LogLevel, LogLine } from "../store/store.ts";
import type { JobView } from "./job-service.ts";

type Same =
  | "id"
  | "task"
  | "queue"
  | "status"
  | "priority"
  | "progress"
  | "progressMessage"
  | "attempts"
  | "failures"
  | "interruptions"
  | "crashes"
  | "maxAttempts"
  | "tags"
  | "idempotencyKey"
  | "schedule"
  | "worker"
  | "error"
  | "waitingFor";

export interface JobInfo extends Pick<JobView, Same> {
  readonly payload: unknown;
  readonly createdAt: Date;
  readonly runAt: Date;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
}

export interface JobLogLine {
  /** From 1, without gaps, across all runs of the job. */
  readonly seq: number;
  readonly at: Date;
  readonly level: LogLevel;
  readonly message: string;
}

export function jobInfo(job: JobView): JobInfo {
  return {
    id: job.id,
    task: job.task,
    queue: job.queue,
    status: job.status,
    priority: job.priority,
    payload: JSON.parse(job.payload) as unknown,
    progress: job.progress,
    progressMessage: job.progressMessage,
    attempts: job.attempts,
    failures: job.failures,
    interruptions: job.interruptions,
    crashes: job.crashes,
    maxAttempts: job.maxAttempts,
    tags: job.tags,
    idempotencyKey: job.idempotencyKey,
    schedule: job.schedule,
    createdAt: new Date(job.createdAt),
    runAt: new Date(job.runAt),
    startedAt: dateOf(job.startedAt),
    finishedAt: dateOf(job.finishedAt),
    worker: job.worker,
    error: job.error,
    waitingFor: job.waitingFor,
  };
}

export function jobLogLine({ seq, at, level, message }: LogLine): JobLogLine {
  return { seq, at: new Date(at), level, message };
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
