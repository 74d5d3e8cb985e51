/**
 * Runs in the store that did not end their job: failed and retried, interrupted, lost with their node, taken from a
 * worker after they ran for too long, or of a job that was retried by hand. A job that succeeds at once has none, and
 * they cost it nothing. The current or last run is part of the job itself.
 */

import type { JobError } from "../core/jobs/job.ts";

export const PAST_OUTCOMES = ["failed", "interrupted", "crashed", "overdue", "cancelled"] as const;
export type PastOutcome = (typeof PAST_OUTCOMES)[number];

/** Of one job; older ones are forgotten. */
export const PAST_RUNS_MAX = 20;

export interface PastRun {
  readonly jobEpoch: number;
  readonly worker: string | null;
  readonly leaderEpoch: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly outcome: PastOutcome;
  readonly error: JobError | null;
}

export interface JobRuns {
  /** Oldest first. */
  readonly past: readonly PastRun[];
  /** Those that it was dispatched in, as far as they are known. */
  readonly assignments: readonly number[];
}
