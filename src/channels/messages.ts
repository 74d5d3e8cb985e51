/**
 * The bodies of messages. Readers ignore fields that they do not know.
 *
 * Statuses and reasons travel as words: numbers of two versions get mixed up. Times are ISO 8601. Whoever writes to the store because
 * of a message needs the epoch under which it may, so each carries the ones that are compared there.
 */

import type { JobId, NodeName } from "../core/ids.ts";
import type { JobStatus } from "../core/job.ts";
import type { NodeStatus } from "../core/node.ts";

export interface JobChange {
  readonly id: JobId;
  /** Null when only logs or progress changed. */
  readonly status: JobStatus | null;
}

export interface CancelWish {
  readonly id: JobId;
  readonly reason: string | null;
}

/** One attempt of a job. Another attempt of the same job is another execution. */
export interface Execution {
  readonly jobId: JobId;
  readonly jobEpoch: number;
}

/** To a worker: run this. */
export interface Dispatch extends Execution {
  readonly task: string;
  readonly payload: unknown;
  readonly leaderEpoch: number;
  /** Failed attempts so far, and how many there may be. */
  readonly retries: number;
  readonly retriesMax: number;
  readonly timeoutMs: number | null;
  readonly correlationId?: string;
}

/** To the nodes: one of you owns the events of this execution. */
export interface Assignment extends Execution {
  readonly queue: string;
  readonly task: string;
  readonly leaderEpoch: number;
  readonly at: string;
}

/** From the worker to the owner. */
export interface StatusReport extends Execution {
  readonly status: JobStatus;
  readonly worker: string;
  readonly at: string;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly code?: string };
  /** Between 0 and 1. */
  readonly progress?: number;
}

export interface LogLine extends Execution {
  readonly at: string;
  readonly level: "debug" | "info" | "warn" | "error" | (string & {});
  readonly message: string;
}

export const HANDOFF_REASONS = ["shutdown", "node_crash", "rebalance"] as const;
export type HandoffReason = (typeof HANDOFF_REASONS)[number] | (string & {});

/** To the nodes: one of you takes this job over. */
export interface Handoff {
  readonly jobId: JobId;
  readonly from: NodeName;
  /** The ownership that ends: a claim of it makes the next one. */
  readonly ownerEpoch: number;
  readonly reason: HandoffReason;
  readonly at: string;
}

/** To the node that handed over. A hint: the store says who owns the job. */
export interface HandoffAck {
  readonly jobId: JobId;
  readonly newOwner: NodeName;
  readonly ownerEpoch: number;
}

export interface CoordinatorHeartbeat {
  readonly node: NodeName;
  readonly incarnation: string;
  readonly leads: boolean;
  readonly status: NodeStatus;
  /** Jobs that it owns, and that wait for it. */
  readonly jobs: number;
  readonly waiting: number;
  readonly at: string;
}

export interface WorkerHeartbeat {
  readonly worker: string;
  readonly node: NodeName;
  readonly status: NodeStatus;
  readonly queues: readonly string[];
  readonly running: number;
  readonly runningMax: number;
  readonly at: string;
}
