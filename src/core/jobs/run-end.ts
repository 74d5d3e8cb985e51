/**
 * What the end of a run makes of its job: the rules of every store, without a clock or a table. A store reads the run,
 * asks here for the change, and writes it.
 *
 * A job whose cancellation was requested does not return to its queue: it is cancelled, and its run is charged as if
 * nobody had cancelled it.
 */

import { leaseholder } from "../agent.ts";
import type { JobId, LeaseId } from "../ids.ts";
import {
  crashError,
  interruptionError,
  isSuspect,
  mayRetry,
  overdueError,
  type Budgets,
  type FinalStatus,
  type Job,
  type JobError,
  type Spent,
} from "./job.ts";

export type Outcome =
  | { readonly kind: "completed"; readonly result: string }
  /** Failed, and tried again after the delay. `asked`: the handler chose the delay, so no retry policy changes it. */
  | { readonly kind: "retry"; readonly error: JobError; readonly delayMs: number; readonly asked?: true }
  /** `spends`: the budget to which this run is charged. */
  | { readonly kind: "failed"; readonly error: JobError; readonly spends: "failure" | "interruption" }
  | { readonly kind: "cancelled"; readonly error: JobError }
  /** Stopped by a drain; back into its place in the queue. */
  | { readonly kind: "interrupted" }
  /** Claimed and never started; back as if it had not been claimed. */
  | { readonly kind: "released" };

export type PastOutcome = "failed" | "interrupted" | "crashed" | "overdue" | "cancelled";

export type Spending = Pick<Job, "attempts" | "failures" | "interruptions" | "crashes">;

export const NOTHING: Spending = { attempts: 0, failures: 0, interruptions: 0, crashes: 0 };
const FAILURE: Spending = { ...NOTHING, failures: 1 };
const INTERRUPTION: Spending = { ...NOTHING, interruptions: 1 };

export type CancelRequest = { readonly reason: string | null } | null;

export interface RunChange {
  /** Null if the job returns to its queue. */
  readonly end: { readonly status: FinalStatus; readonly error: JobError | null } | null;
  readonly spent: Spending;
  /** From now; null leaves a returning job its place in the queue. */
  readonly delayMs: number | null;
  /** Null leaves the error of the job as it is. */
  readonly error: JobError | null;
  /** Null for a run that never began. */
  readonly past: PastOutcome | null;
  /** Null leaves it as it is, as with `killed`. */
  readonly suspect: boolean | null;
  readonly killed: readonly string[] | null;
}

const BACK: RunChange = {
  end: null,
  spent: NOTHING,
  delayMs: null,
  error: null,
  past: null,
  suspect: null,
  killed: null,
};

export function cancelledWaiting(reason: string | null): RunChange {
  return changed({ reason }, {}, "cancelled before it started");
}

function changed(cancel: CancelRequest, change: Partial<RunChange>, otherwise = "cancelled"): RunChange {
  const error = cancel && { code: "CANCELLED", message: cancel.reason ?? otherwise };
  const end = error && { status: "cancelled" as const, error };
  return { ...BACK, ...change, end: end ?? change.end ?? null };
}

export function afterOutcome(outcome: Outcome, cancel: CancelRequest): RunChange {
  switch (outcome.kind) {
    case "completed":
      return { ...BACK, end: { status: "completed", error: null } };
    case "failed": {
      const spent = outcome.spends === "failure" ? FAILURE : INTERRUPTION;
      return { ...BACK, end: { status: "failed", error: outcome.error }, spent };
    }
    case "cancelled":
      return { ...BACK, end: { status: "cancelled", error: outcome.error } };
    case "retry": {
      const { delayMs, error } = outcome;
      return changed(cancel, { spent: FAILURE, delayMs, error, past: "failed" });
    }
    case "interrupted":
      return changed(cancel, { spent: INTERRUPTION, past: "interrupted" });
    case "released":
      return changed(cancel, { spent: { ...NOTHING, attempts: -1 } });
  }
}

/**
 * `expiry`: expired leases. With `unheard`, no leader was there with whom agents could have renewed theirs.
 * `incarnations`: all leases of dead incarnations of nodes.
 * `everybody`: all leases but those of this incarnation and of agents, for a store that only one process can open.
 * `holders`: leases with these names or prefixes, whose runs were ended in order or never began: of an agent that was
 * switched off, or of a request whose answer was lost.
 * `overdue`: runs that exceed the timeout of their job by `graceMs`, even if their lease is renewed.
 *
 * A dead claimant is charged as a crash, `holders` and `unheard` as an interruption, an overdue run as a failure.
 */
export type Abandoned =
  | { readonly by: "expiry"; readonly unheard?: boolean }
  | { readonly by: "incarnations"; readonly incarnations: readonly string[] }
  | { readonly by: "everybody"; readonly except: string }
  | { readonly by: "holders"; readonly names: readonly string[] }
  | { readonly by: "overdue"; readonly graceMs: number };

export type Dead = Exclude<Abandoned, { by: "overdue" }>;

export interface Recovered {
  readonly id: JobId;
  readonly worker: string;
  readonly status: "queued" | "failed" | "cancelled";
  /** With the charge of this recovery. */
  readonly failures: number;
  readonly interruptions: number;
  readonly crashes: number;
}

/**
 * A lease is `<node>/<incarnation>`, with an optional suffix after another slash, or that of an agent (core/agent.ts).
 */
export function isLeftBehind(lease: LeaseId, which: Exclude<Dead, { by: "expiry" }>): boolean {
  const [holder, next] = lease.split("/") as [string, string];
  switch (which.by) {
    case "incarnations":
      return which.incarnations.includes(next);
    case "everybody":
      return next !== which.except && leaseholder(lease) === null;
    case "holders":
      return which.names.includes(holder) || which.names.includes(`${holder}/${next}`);
  }
}

/** The claimant did not die during these runs, or that is unknown. */
export function wasInterrupted(lease: LeaseId, which: Dead): boolean {
  if (which.by === "holders") return true;
  return which.by === "expiry" && which.unheard === true && leaseholder(lease) !== null;
}

/** A run that is taken from its claimant. */
export interface LostRun extends Spent {
  readonly worker: string;
  readonly killed: readonly string[];
  readonly timeoutMs: number | null;
  readonly cancel: CancelRequest;
}

export type Loss = "crashed" | "interrupted" | "overdue";

/** The store also raises the epoch at once: the claimant may still report. */
export function afterLoss(run: LostRun, how: Loss, budgets: Budgets): RunChange {
  const failed = (error: JobError | null) => error && { status: "failed" as const, error };
  switch (how) {
    case "crashed": {
      const killed = [...run.killed, run.worker];
      const suspect = isSuspect(run.crashes + 1, budgets);
      const end = failed(crashError(run, budgets, killed));
      const change = { end, spent: { ...NOTHING, crashes: 1 }, past: how, suspect, killed };
      return changed(run.cancel, change, "cancelled while its node died");
    }
    case "interrupted":
      return changed(run.cancel, {
        end: failed(interruptionError(run, budgets)),
        spent: INTERRUPTION,
        past: how,
      });
    case "overdue": {
      // A failure and not a crash: its worker is alive.
      const error = overdueError(run.timeoutMs!, run.worker);
      const end = mayRetry(run) ? null : failed(error);
      return changed(run.cancel, { end, spent: FAILURE, delayMs: 0, error, past: how });
    }
  }
}

export function recoveredJob(id: JobId, run: LostRun, { end, spent }: RunChange): Recovered {
  return {
    id,
    worker: run.worker,
    status: (end?.status as "failed" | "cancelled" | undefined) ?? "queued",
    failures: run.failures + spent.failures,
    interruptions: run.interruptions + spent.interruptions,
    crashes: run.crashes + spent.crashes,
  };
}
