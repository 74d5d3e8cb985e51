/**
 * The interfaces by which a worker gets its jobs and delivers its results: the store itself, or its substitute under
 * push dispatch.
 */

import type { Claimed, ClaimRequest, JobStore } from "../../store/store.ts";
import { reportRuns, settleRuns, type RunWriting } from "./run-writes.ts";

/** A claim of a worker, with its load: a store needs only the request. */
export interface WorkerClaim extends ClaimRequest {
  /** Jobs that run now. */
  readonly running: number;
  /** Jobs that ended in about a tenth of a second. */
  readonly pace: number;
}

export interface ClaimPort {
  claim(request: WorkerClaim): Promise<Claimed>;
  /** No more claims will be made: whatever is held for them goes to others. */
  close?(): Promise<void>;
  /** There will be claims again. */
  open?(): void;
}

export interface ResultPort extends Pick<JobStore, "report" | "settle"> {
  /** How long one write holds up the next; left out when until its end, as for a store that is one thing and not many. */
  readonly patienceMs?: number;
  /** The worker is about to stop, and waits for answers. */
  hurry?(): void;
}

/** Straight into the store, which need not be open yet. */
export function storeResults(writing: RunWriting<"settle" | "report">): ResultPort {
  return {
    report: (reports) => reportRuns(writing, reports),
    settle: (settlements) => settleRuns(writing, settlements),
  };
}
