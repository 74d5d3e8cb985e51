/** A job as code reads it: the payload as a value, times as Date. */

import type { JobId } from "../core/ids.ts";
import type { JobError, JobStatus } from "../core/jobs/job.ts";
import type { LogLevel, LogLine } from "../store/store.ts";
import type { JobView, WaitingReason } from "./job-service.ts";

export interface JobInfo {
  readonly id: JobId;
  readonly task: string;
  readonly queue: string;
  readonly status: JobStatus;
  readonly priority: number;
  readonly payload: unknown;
  readonly progress: number | null;
  readonly progressMessage: string | null;
  /** Starts so far, and how many of them failed, were interrupted by a drain, or died with their node. */
  readonly attempts: number;
  readonly failures: number;
  readonly interruptions: number;
  readonly crashes: number;
  readonly maxAttempts: number;
  readonly tags: readonly string[];
  readonly idempotencyKey: string | null;
  readonly schedule: string | null;
  readonly createdAt: Date;
  readonly runAt: Date;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly worker: string | null;
  /** Of its last failure. */
  readonly error: JobError | null;
  /** Why a waiting job does not run yet; null for others. */
  readonly waitingFor: WaitingReason | null;
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
