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
 * - A mark is no claim: it raises no epoch and uses no attempt. Accepting is a compare-and-set on the mark, so that a
 *   dispatch that
 *   was published twice, late or to two workers starts one run.
 * - `own` compares the owner epoch and raises it. `record` compares owner and epoch in the transaction of the write.
 * - A job that leaves its run (ends, is recovered, returns to the queue) leaves its assignment.
 */

import type { JobId, LeaseId, NodeName } from "../core/ids.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { Term } from "../core/leadership/term.ts";
import type { Author, ClaimedJob, Recorded, RunBatch } from "./store.ts";

/** Unique for ever, and never given twice. */
export type AssignmentId = number;

export interface OwnershipStore {
  /**
   * A leader's mark on due jobs, in the order in which a claim would take them, in assignments of at most `size`. Skips what is
   * marked, runs, is paused, or that no task and queue of the request fits.
   */
  dispatch(request: DispatchRequest, fence: Term): Promise<Dispatched>;

  /** A worker's claim on jobs that were dispatched. Those whose mark is gone, or that somebody else has accepted, are left out. */
  accept(request: AcceptRequest): Promise<Accepted>;

  /** Takes marks off that nobody has accepted for so long, and counts those that are left. */
  undispatch(olderThanMs: number, fence: Term): Promise<Undispatched>;

  /** Takes assignments over: only those whose epoch is still this one. Answers with the new epoch, or null. */
  own(
    claims: readonly { readonly assignment: AssignmentId; readonly ownerEpoch: number }[],
    owner: NodeIdentity,
  ): Promise<readonly (number | null)[]>;

  /**
   * As `record` of jobs, by the owner of assignments instead of the holder of leases; all batches in one transaction. Null for an
   * assignment that is not ours under this epoch.
   */
  record(batches: readonly OwnedBatch[], owner: NodeIdentity): Promise<readonly (Recorded | null)[]>;

  /**
   * Gives assignments up: they have no owner, and the leader offers them. Those that are `finished` (all of their jobs have
   * ended) are removed. Those that are not ours are left alone.
   */
  release(held: readonly Held[], owner: NodeIdentity, state: Released): Promise<void>;

  /**
   * The owner of each, as it is now; null for one that is gone. `counted` adds how many of their jobs still run or wait for a
   * worker, which reads each of the jobs: not for every event.
   */
  read(assignments: readonly AssignmentId[]): Promise<readonly (Ownership | null)[]>;
  read(assignments: readonly AssignmentId[], counted: true): Promise<readonly (CountedOwnership | null)[]>;

  /** The lives that own anything. */
  owners(): Promise<readonly NodeIdentity[]>;

  /** Everything that these lives owned belongs to nobody now, and is orphan_pending. Answers how many assignments. */
  disown(incarnations: readonly string[], fence: Term): Promise<number>;

  /**
   * A leader's look for assignments without an owner: those that are orphan_pending, and those that have been unowned for
   * `unownedForMs`, unless this call has found them in the last `offeredBeforeMs`. Removes those without jobs.
   */
  orphans(query: OrphanQuery, fence: Term): Promise<readonly Orphan[]>;
}

export interface DispatchRequest {
  readonly tasks: ReadonlySet<string>;
  /** Null for all. */
  readonly queues: ReadonlySet<string> | null;
  readonly exceptQueues: ReadonlySet<string>;
  readonly limit: number;
  /** Most jobs in one assignment. */
  readonly size: number;
  /** Whether one suspect (core/jobs/job.ts) may be among them; it has an assignment of its own. */
  readonly suspect: boolean;
}

export interface Dispatched {
  readonly assignments: readonly DispatchedAssignment[];
  /** When the next scheduled job is due, from now; null if none is known. */
  readonly nextDueInMs: number | null;
}

export interface DispatchedAssignment {
  readonly id: AssignmentId;
  readonly jobs: readonly DispatchedJob[];
}

/** As it will be claimed: epoch and attempts are those of the run that an accept begins. */
export type DispatchedJob = Omit<ClaimedJob, "lease" | "leaderEpoch">;

/** Jobs by queue. */
export interface Undispatched {
  readonly freed: ReadonlyMap<string, number>;
  /** Marked and not accepted. */
  readonly outstanding: ReadonlyMap<string, number>;
}

export interface AcceptRequest {
  readonly author: Author;
  readonly worker: string;
  readonly lease: LeaseId;
  readonly leaseMs: number;
  /** As in ClaimRequest. */
  readonly opens: boolean;
  readonly runs: readonly {
    readonly id: JobId;
    readonly jobEpoch: number;
    readonly ref?: unknown;
    readonly assignment: AssignmentId;
  }[];
}

export interface Accepted {
  /** False: the lease is not ours any more, and nothing was accepted. */
  readonly held: boolean;
  /** For each run of the request. */
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

/** An assignment without an owner. */
export interface Orphan extends Held {
  /** Who owned it last; null if nobody has yet. */
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
