/**
 * A job, its states and its three budgets.
 *
 *   scheduled --due--> queued --claim--> processing --> completed
 *                        ^                  |---------> cancelled   (also from scheduled and queued)
 *                        |                  |---------> failed      (dead letter; retried by hand -> queued)
 *                        '--retry, interruption, lost lease--'
 *
 * Each claim raises `jobEpoch`. Results, logs and progress carry the epoch of their claim, and are refused when the job
 * has another epoch by then.
 */

import type { JobId, NodeName } from "../ids.ts";
import type { RareFields } from "./job-fields.ts";

export const JOB_STATUSES = [
  "scheduled",
  "queued",
  "processing",
  "completed",
  "failed",
  "cancelled",
] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

export const FINAL_STATUSES = ["completed", "failed", "cancelled"] as const satisfies readonly JobStatus[];
export type FinalStatus = (typeof FINAL_STATUSES)[number];

export function isFinal(status: JobStatus): status is FinalStatus {
  return status === "completed" || status === "failed" || status === "cancelled";
}

export const ACTION_STATUSES: Readonly<Record<"retry" | "cancel" | "delete", readonly JobStatus[]>> = {
  retry: ["failed", "cancelled"],
  cancel: ["scheduled", "queued", "processing"],
  delete: JOB_STATUSES.filter((status) => status !== "processing"),
};

export type AbortReason = "cancel" | "timeout" | "drain" | "lease_lost";

export interface JobError {
  /** `ERROR` for what a handler threw; ours are TIMEOUT, BAD_PAYLOAD, INTERRUPTED_TOO_OFTEN and QUARANTINED. */
  readonly code: string;
  readonly message: string;
  readonly stack?: string;
  readonly [key: string]: unknown;
}

export interface Job extends RareFields {
  readonly id: JobId;
  readonly task: string;
  readonly queue: string;
  readonly status: JobStatus;
  readonly priority: number;
  /** JSON text, parsed only where needed. */
  readonly payload: string;
  readonly progress: number | null;
  readonly progressMessage: string | null;
  readonly attempts: number;
  readonly failures: number;
  readonly interruptions: number;
  readonly crashes: number;
  readonly maxAttempts: number;
  readonly timeoutMs: number | null;
  readonly idempotencyKey: string | null;
  /** Trace context of its submit (core/trace.ts). */
  readonly trace: string | null;
  readonly schedule: string | null;
  readonly cancelRequested: boolean;
  /** Wall clock of the store, in ms. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly owner: NodeName;
  readonly worker: string | null;
  readonly jobEpoch: number;
  readonly ownerEpoch: number;
  readonly leaderEpoch: number;
  readonly error: JobError | null;
  /** Nodes that died while they ran this job, oldest first. */
  readonly killed: readonly string[];
}

/** Jobs whose callers wait for them; nodes with the role `function` run them. */
export const FUNCTIONS_QUEUE = "functions";

export interface Budgets {
  readonly interruptionsMax: number;
  readonly crashesMax: number;
}

/**
 * A deploy must not use up an attempt, but a job that never finishes must not loop for ever: no run meets 50 deploys by
 * chance. A job whose node died three times is taken for the cause.
 */
export const DEFAULT_BUDGETS: Budgets = { interruptionsMax: 50, crashesMax: 3 };

export type Spent = Pick<Job, "failures" | "interruptions" | "crashes" | "maxAttempts">;

export function mayRetry(spent: Spent): boolean {
  return spent.failures + 1 < spent.maxAttempts;
}

export function interruptionError(spent: Spent, budgets: Budgets): JobError | null {
  const interruptions = spent.interruptions + 1;
  if (interruptions <= budgets.interruptionsMax) return null;
  return {
    code: "INTERRUPTED_TOO_OFTEN",
    message: `interrupted ${interruptions} times by drains and never finished; make its runs shorter, then retry it by hand`,
  };
}

/**
 * One more crash would put the job into quarantine. That last run happens without another suspect at the same time, so
 * that the cause is found. Earlier crashes delay nothing: the hundred jobs of a killed node run again at once.
 */
export function isSuspect(crashes: number, budgets: Budgets): boolean {
  return crashes > 0 && crashes + 1 >= budgets.crashesMax;
}

export function crashError(spent: Spent, budgets: Budgets, killed: readonly string[]): JobError | null {
  const crashes = spent.crashes + 1;
  if (crashes < budgets.crashesMax) return null;
  return {
    code: "QUARANTINED",
    message: `${crashes} nodes died while they ran this job (${killed.join(", ")}); it is kept away from the others until it is retried by hand`,
    killed,
  };
}

/** Of an overdue run, whose job was taken from its worker. */
export function overdueError(timeoutMs: number, worker: string): JobError {
  return {
    code: "TIMEOUT",
    message: `ran longer than its timeout of ${timeoutMs} ms, and its worker ${worker} did not end it in time`,
  };
}

export interface Retention {
  readonly completedMs: number;
  readonly failedMs: number;
  readonly cancelledMs: number;
}

/** From its end. A job of this age is removed. */
export function keptMs(status: FinalStatus, retention: Retention): number {
  return retention[`${status}Ms`];
}

/** As long as the jobs that they made, however those ended. */
export function occurrencesKeptMs({ completedMs, failedMs }: Retention): number {
  return Math.max(completedMs, failedMs);
}

export function isOver(ageMs: number, keptForMs: number): boolean {
  return ageMs >= keptForMs;
}
