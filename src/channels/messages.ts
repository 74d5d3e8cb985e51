/**
 * The bodies of messages. Readers ignore unknown fields. Statuses and reasons are words, because numbers of two versions could be confused;
 * times are ISO 8601. A message that causes a write to the store carries the epochs that the store compares.
 */

import type { JobId, NodeName } from "../core/ids.ts";
import type { JobStatus } from "../core/jobs/job.ts";
import type { NodeStatus } from "../core/node.ts";
import type { AssignmentId, DispatchedJob } from "../store/ownership.ts";
import type { ClaimedJob, Report, Settlement, Verdict } from "../store/store.ts";

export interface JobChange {
  readonly id: JobId;
  /** Null when only logs or progress changed. */
  readonly status: JobStatus | null;
}

export interface CancelRequest {
  readonly id: JobId;
  readonly reason: string | null;
}

/** To a worker: this runs under your slot. Only with `lease` and `ref` if it is too large for a hint: then it is read. */
export type GivenJob = Pick<ClaimedJob, "lease" | "ref"> & Partial<ClaimedJob>;

/** To a worker: run these. One job, or several that are short. */
export interface Dispatch {
  readonly assignment: AssignmentId;
  readonly leaderEpoch: number;
  readonly jobs: readonly DispatchedJob[];
  /** How many workers have sent it back. One that goes round and round is dropped, and its jobs are dispatched anew. */
  readonly passed?: number;
}

/** To the workers: what they may have to listen to. */
export interface Dispatching {
  readonly channels: readonly string[];
  /** From a leader that is new: each worker answers with a heartbeat. */
  readonly asks?: boolean;
}

/** To the nodes: one of you owns the events of these jobs. */
export interface Assignment {
  readonly assignment: AssignmentId;
  readonly ownerEpoch: number;
  readonly jobs: number;
  readonly leaderEpoch: number;
  readonly at: string;
}

/** From a worker to the owner: what its runs logged and how they ended, in order. */
export interface StatusReport {
  readonly assignment: AssignmentId;
  /** Who is to get the receipt: a node, its life, and the number that it gave this report. */
  readonly worker: NodeName;
  readonly incarnation: string;
  readonly number: number;
  readonly reports: readonly Report[];
  readonly settlements: readonly Settlement[];
}

export interface Receipt {
  readonly incarnation: string;
  readonly number: number;
  readonly reported: readonly Verdict[];
  readonly settled: readonly Verdict[];
}

export const HANDOFF_REASONS = ["shutdown", "node_crash", "rebalance"] as const;
export type HandoffReason = (typeof HANDOFF_REASONS)[number] | (string & {});

/** To the nodes: one of you takes this assignment over. */
export interface Handoff {
  readonly assignment: AssignmentId;
  /** Who gives it away, or had it and has died; null when no node has had it yet. */
  readonly from: NodeName | null;
  /** The ownership that ends: a claim of it makes the next one. */
  readonly ownerEpoch: number;
  /** Jobs that have not ended, as far as the giver knows. Left out: the new owner asks the store. */
  readonly jobs?: number;
  readonly reason: HandoffReason;
  readonly at: string;
}

/** To the node that handed over. A hint: the store says who owns it. */
export interface HandoffAck {
  readonly assignment: AssignmentId;
  readonly newOwner: NodeName;
  readonly ownerEpoch: number;
}

export interface CoordinatorHeartbeat {
  readonly node: NodeName;
  readonly incarnation: string;
  /** Under which epoch it leads; null while it does not. */
  readonly leaderEpoch: number | null;
  readonly status: NodeStatus;
  /** Unfinished jobs that it owns. */
  readonly jobs: number;
  /** The dispatch queues that it has used as a leader, so that workers of all queues know what to listen to. */
  readonly dispatches: readonly string[];
  readonly at: string;
}

export interface WorkerHeartbeat {
  readonly node: NodeName;
  readonly incarnation: string;
  readonly status: NodeStatus;
  /** Null for all but `exceptQueues`. */
  readonly queues: readonly string[] | null;
  readonly exceptQueues: readonly string[];
  readonly tasks: readonly string[];
  readonly running: number;
  readonly runningMax: number;
  /** How many more it would take now. */
  readonly wants: number;
  /** How many it has taken out of each dispatch queue in its life, so that a lost message is made up for by the next. */
  readonly taken: Readonly<Record<string, number>>;
  /** Whether it would take a suspect (core/jobs/job.ts) now, and how many it has taken in its life. */
  readonly suspects?: { readonly wanted: boolean; readonly taken: number };
  readonly at: string;
}
