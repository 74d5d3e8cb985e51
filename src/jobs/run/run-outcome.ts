/** Decides the outcome of a job when its handler ends, by itself or by force. */

import {
  interruptionError,
  mayRetry,
  type AbortReason,
  type Budgets,
  type JobError,
} from "../../core/jobs/job.ts";
import { DELAY_MS_MAX } from "../../core/jobs/job-fields.ts";
import { DEFAULT_RETRY, retryDelayMs, type RetryPolicy } from "../../core/jobs/retry.ts";
import type { ClaimedJob, Outcome } from "../../store/store.ts";
import { fault } from "../tasks/task.ts";
import { cut, JobAborted } from "./job-run.ts";

export interface OutcomeRules {
  readonly budgets: Budgets;
  readonly retry: RetryPolicy;
  readonly chance: () => number;
}

/** What is asked of a job: its budgets as they were when the run began. */
export type Judged = Pick<ClaimedJob, "failures" | "interruptions" | "crashes" | "maxAttempts" | "timeoutMs">;

export type Ending =
  | { readonly ended: "returned"; readonly result: unknown }
  | { readonly ended: "threw"; readonly error: unknown }
  /** It did not end within its grace after the abort. */
  | { readonly ended: "abandoned" };

interface Aborted {
  readonly why: AbortReason;
  readonly message: string | null;
}

/**
 * A handler that returns has done its work, whatever was asked of it: its result stands. One that throws after an abort ended because
 * of it. After a lost lease the job is not ours to speak of: null.
 */
export function outcomeOf(
  job: Judged,
  ending: Ending,
  aborted: Aborted | null,
  policy: Partial<RetryPolicy> | undefined,
  rules: OutcomeRules,
): Outcome | null {
  if (aborted?.why === "lease_lost") return null;
  if (ending.ended === "returned") return completed(ending.result);
  switch (aborted?.why) {
    case "cancel":
      return { kind: "cancelled", error: { code: "CANCELLED", message: aborted?.message ?? "cancelled" } };
    case "drain":
      return interrupted(job, rules);
    case "timeout":
      return failure(job, timeoutError(job, ending), true, policy, rules);
    case undefined:
      return ending.ended === "threw"
        ? thrown(job, ending.error, policy, rules)
        : failure(job, { code: "ABANDONED", message: "the handler was given up" }, true, policy, rules);
  }
}

/** More is data for a file or a database; a result is kept with its job and sent whole to each caller. */
export const RESULT_LENGTH_MAX = 8 * 1_048_576;

/** Most handlers return nothing. */
const COMPLETED: Outcome = Object.freeze({ kind: "completed", result: "null" });

function completed(result: unknown): Outcome {
  if (result === undefined) return COMPLETED;
  try {
    return { kind: "completed", result: resultText(result) };
  } catch (error) {
    const { code, message } = toJobError(error);
    return { kind: "failed", spends: "failure", error: { code, message } };
  }
}

function badResult(why: string): Error {
  return fault("BAD_RESULT", `the result cannot be stored: ${why}`);
}

export function resultText(result: unknown): string {
  if (result === undefined) return "null";
  let text: string | undefined;
  try {
    text = JSON.stringify(result);
  } catch (error) {
    throw badResult(toJobError(error).message);
  }
  if (text === undefined) throw badResult(`it is a ${typeof result}`);
  if (text.length > RESULT_LENGTH_MAX) {
    throw badResult(
      `it has ${text.length} characters, more than ${RESULT_LENGTH_MAX}; keep it elsewhere and return where`,
    );
  }
  return text;
}

function interrupted(job: Judged, rules: OutcomeRules): Outcome {
  const error = interruptionError(job, rules.budgets);
  return error ? { kind: "failed", error, spends: "interruption" } : { kind: "interrupted" };
}

function thrown(
  job: Judged,
  error: unknown,
  policy: Partial<RetryPolicy> | undefined,
  rules: OutcomeRules,
): Outcome {
  const outcome = failure(job, toJobError(error), mayTryAgain(error), policy, rules);
  const delayMs = retryAfterMs(error);
  return outcome.kind === "retry" && delayMs !== null ? { ...outcome, delayMs, asked: true } : outcome;
}

function failure(
  job: Judged,
  error: JobError,
  retryable: boolean,
  policy: Partial<RetryPolicy> | undefined,
  rules: OutcomeRules,
): Outcome {
  if (!retryable || !mayRetry(job)) return { kind: "failed", error, spends: "failure" };
  const merged = { ...DEFAULT_RETRY, ...rules.retry, ...policy };
  return { kind: "retry", error, delayMs: retryDelayMs(job.failures + 1, rules.chance(), merged) };
}

function timeoutError(job: Judged, ending: Ending): JobError {
  const unrelated = ending.ended === "threw" && ending.error !== null && !isAbort(ending.error);
  const after = unrelated ? `; then it threw: ${toJobError(ending.error).message}` : "";
  return { code: "TIMEOUT", message: `ran longer than its timeout of ${job.timeoutMs} ms${after}` };
}

export function isAbort(error: unknown): boolean {
  return (
    readable(() => error instanceof JobAborted || (error instanceof Error && error.name === "AbortError")) ===
    true
  );
}

export function mayTryAgain(error: unknown): boolean {
  return readable(() => (error as { retryable?: unknown } | null)?.retryable) !== false;
}

/** What a `RetryAfter` asks for. By its field: a handler may have another copy of the class. */
export function retryAfterMs(error: unknown): number | null {
  const ms = readable(() => (error as { retryAfterMs?: unknown } | null)?.retryAfterMs);
  return typeof ms === "number" && ms >= 0 && ms <= DELAY_MS_MAX ? Math.round(ms) : null;
}

/** Stacks help the author of the task; ten lines are enough to find the place. */
const STACK_LINES = 10;

/** Handlers throw what they like. What cannot be read, or cannot be text, must not take the worker down. */
export function toJobError(error: unknown): JobError {
  const like = (typeof error === "object" && error !== null ? error : {}) as Partial<Record<string, unknown>>;
  const code = readable(() => like["code"]);
  const message =
    readable(() => like["message"] && String(like["message"])) ||
    readable(() => String(error)) ||
    "something was thrown that cannot be shown";
  const stack = readable(() => (like["stack"] as string).split("\n").slice(0, STACK_LINES).join("\n"));
  return {
    code: typeof code === "string" && code !== "" ? cut(code) : "ERROR",
    message: cut(message as string),
    ...(stack ? { stack: cut(stack as string) } : {}),
  };
}

function readable(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}
