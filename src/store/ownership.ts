/**
 * Push dispatch and ownership in the store. Implemented by stores that nodes share.
 *
 * An **assignment** is a batch of jobs that were dispatched together: one job under little load, hundreds when jobs are
 * short and many. One node at a time owns it, under an owner epoch; the owner writes the reports of the workers that
 * run its jobs. Running a job is independent of that: a worker holds the job by its lease and job epoch, as if it had
 * claimed the job itself, and is not affected when the assignment changes its owner.
 *
 *   queued --dispatch--> marked --accept--> processing (running, under a lease and in an assignment)
 *             ^             |
 *             '-- undispatch: no worker accepted it in time
 *
 *   assignment: unowned --own--> owned --own by the next--> owned …     (each raises owner_epoch)
 *                  ^                |
 *                  '-- release, disown (orphan_pending: found and offered again by the leader)
 *
 * - A mark is not a claim: it raises no epoch and uses no attempt. Accepting is a compare-and-set on the mark, so that a
 *   dispatch that was published twice, late or to two workers starts one run.
 * - `own` compares the owner epoch and raises it. `record` compares owner and epoch in the transaction of the write.
 * - A job that leaves its run (ends, is recovered, returns to the queue) leaves its assignment.
 */

import type { NodeName } from "../core/ids.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { Term } from "../core/leadership/term.ts";
import type { WorkScope } from "../core/push/dispatch.ts";
import type { ClaimedJob, ClaimRequest, Recorded, Run, RunBatch } from "./store.ts";

export type AssignmentId = number;

export interface OwnershipStore {
  /**
   * Marks due jobs in the order of a claim, in assignments of at most `size`. Skips jobs that are marked, running,
   * paused, or of other tasks and queues.
   */
  dispatch(request: DispatchRequest, fence: Term): Promise<Dispatched>;

  /** A job whose mark is gone, or that another worker has accepted, is not accepted. */
  accept(request: AcceptRequest): Promise<Accepted>;

  /** Removes marks of this age that no worker has accepted, and counts the others. */
  undispatch(olderThanMs: number, fence: Term): Promise<Undispatched>;

  /** Takes over assignments that still have the given epoch. Returns the new epoch of each, or null. */
  own(claims: readonly Held[], owner: NodeIdentity): Promise<readonly (number | null)[]>;

  /**
   * As `record` of jobs, for the owner of assignments instead of the holder of leases; all batches in one transaction.
   * Null for an assignment that the caller does not own under this epoch.
   */
  record(batches: readonly OwnedBatch[], owner: NodeIdentity): Promise<readonly (Recorded | null)[]>;

  /**
   * Leaves assignments without an owner; the leader offers them. `finished` ones (all jobs have ended) are removed.
   * Those of other owners are not changed.
   */
  release(held: readonly Held[], owner: NodeIdentity, state: Released): Promise<void>;

  /**
   * Null for an assignment that does not exist. `counted` adds the number of unfinished jobs, which reads every job:
   * not for frequent calls.
   */
  read(assignments: readonly AssignmentId[]): Promise<readonly (Ownership | null)[]>;
  read(assignments: readonly AssignmentId[], counted: true): Promise<readonly (CountedOwnership | null)[]>;

  owners(): Promise<readonly NodeIdentity[]>;

  /** Makes all assignments of these incarnations orphan_pending. Returns how many. */
  disown(incarnations: readonly string[], fence: Term): Promise<number>;

  /**
   * Assignments that are orphan_pending or have been unowned for `unownedForMs`, unless this call has returned them in
   * the last `offeredBeforeMs`. Removes those without jobs.
   */
  orphans(query: OrphanQuery, fence: Term): Promise<readonly Orphan[]>;
}

/** A suspect (core/jobs/job.ts) has an assignment of its own. */
export interface DispatchRequest extends WorkScope, Pick<ClaimRequest, "limit" | "suspect"> {
  readonly size: number;
}

export interface Dispatched {
  readonly assignments: readonly DispatchedAssignment[];
  readonly nextDueInMs: number | null;
}

export interface DispatchedAssignment {
  readonly id: AssignmentId;
  readonly jobs: readonly DispatchedJob[];
}

/** Epoch and attempts are those of the run that an accept starts. */
export type DispatchedJob = Omit<ClaimedJob, "lease" | "leaderEpoch">;

export interface Undispatched {
  readonly freed: ReadonlyMap<string, number>;
  /** Marked and not accepted. */
  readonly outstanding: ReadonlyMap<string, number>;
}

export interface AcceptRequest extends Pick<
  ClaimRequest,
  "author" | "worker" | "lease" | "leaseMs" | "opens"
> {
  readonly runs: readonly (Omit<Run, "lease"> & Pick<Held, "assignment">)[];
}

export interface Accepted {
  /** False: nothing was accepted. */
  readonly held: boolean;
  readonly accepted: readonly boolean[];
}

export interface Held {
  readonly assignment: AssignmentId;
  readonly ownerEpoch: number;
}

export interface OwnedBatch extends Held, RunBatch {}

export interface OrphanQuery {
  readonly unownedForMs: number;
  readonly offeredBeforeMs: number;
  readonly limit: number;
}

export interface Orphan extends Held {
  /** The last owner; null if it never had one. */
  readonly last: NodeName | null;
}

export interface Ownership extends Held {
  readonly owner: { readonly name: NodeName; readonly incarnation: string } | null;
  readonly state: "owned" | "unowned" | "orphan_pending";
}

export interface CountedOwnership extends Ownership {
  readonly unfinished: number;
}

export type Released = "unowned" | "orphan_pending" | "finished";
