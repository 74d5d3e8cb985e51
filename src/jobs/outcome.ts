/** What becomes of a job when its handler ends, by itself or by force. */

import { interruptionError, mayRetry, type AbortReason, type Budgets, type JobError } from "../core/job.ts";
import { DEFAULT_RETRY, retryDelayMs, type RetryPolicy } from "../core/retry.ts";
import type { ClaimedJob, Outcome } from "../store/store.ts";
import { JobAborted } from "./job-run.ts";

export interface OutcomeRules {
  readonly budgets: Budgets;
  readonly retry: RetryPolicy;
  readonly chance: () => number;
}

export type Ending =
  | { readonly ended: "returned"; readonly result: unknown }
  | { readonly ended: "threw"; readonly error: unknown }
  /** It did not end within its grace after the abort. */
  | { readonly ended: "abandoned" };

/**
 * A handler that returns has done its work, whatever was asked of it meanwhile: its result stands. One that throws
 * after an abort ended because of it. A lost lease means that the job is no longer ours to speak of: null.
 */
export function outcomeOf(
  job: ClaimedJob,
  ending: Ending,
  aborted: { readonly why: AbortReason | null; readonly message: string | null },
  policy: Partial<RetryPolicy> | undefined,
  rules: OutcomeRules,
): Outcome | null {
  if (aborted.why === "lease_lost") return null;
  if (ending.ended === "returned") return completed(ending.result);
  const unrelated =
    ending.ended === "threw" && aborted.why !== null && !isAbort(ending.error) ? ending.error : null;
  switch (aborted.why) {
    case "cancel":
      return { kind: "cancelled", error: { code: "CANCELLED", message: aborted.message ?? "cancelled" } };
    case "drain":
      return interrupted(job, rules);
    case "timeout":
      return failure(job, timeoutError(job, unrelated), true, policy, rules);
    case null:
      return ending.ended === "threw"
        ? failure(job, toJobError(ending.error), mayTryAgain(ending.error), policy, rules)
        : failure(job, { code: "ABANDONED", message: "the handler was given up" }, true, policy, rules);
  }
}

function completed(result: unknown): Outcome {
  let text: string | undefined;
  try {
    text = result === undefined ? "null" : JSON.stringify(result);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return {
      kind: "failed",
      spends: "failure",
      error: { code: "BAD_RESULT", message: `the result is not plain JSON: ${reason}` },
    };
  }
  return { kind: "completed", result: text ?? "null" };
}

function interrupted(job: ClaimedJob, rules: OutcomeRules): Outcome {
  const error = interruptionError(job, rules.budgets);
  return error ? { kind: "failed", error, spends: "interruption" } : { kind: "interrupted" };
}

function failure(
  job: ClaimedJob,
  error: JobError,
  retryable: boolean,
  policy: Partial<RetryPolicy> | undefined,
  rules: OutcomeRules,
): Outcome {
  if (!retryable || !mayRetry(job)) return { kind: "failed", error, spends: "failure" };
  const merged = { ...DEFAULT_RETRY, ...rules.retry, ...policy };
  return { kind: "retry", error, delayMs: retryDelayMs(job.failures + 1, rules.chance(), merged) };
}

function timeoutError(job: ClaimedJob, thrown: unknown): JobError {
  const after = thrown === null ? "" : `; then it threw: ${toJobError(thrown).message}`;
  return { code: "TIMEOUT", message: `ran longer than its timeout of ${job.timeoutMs} ms${after}` };
}

function isAbort(error: unknown): boolean {
  return error instanceof JobAborted || (error instanceof Error && error.name === "AbortError");
}

function mayTryAgain(error: unknown): boolean {
  return !(typeof error === "object" && error !== null && "retryable" in error && error.retryable === false);
}

/** Stacks help whoever wrote the task; ten lines are enough to find the place. */
const STACK_LINES = 10;

export function toJobError(error: unknown): JobError {
  if (!(error instanceof Error)) return { code: "ERROR", message: String(error) };
  const code = "code" in error && typeof error.code === "string" ? error.code : "ERROR";
  const stack = error.stack?.split("\n").slice(0, STACK_LINES).join("\n");
  return { code, message: error.message || error.name, ...(stack ? { stack } : {}) };
}
