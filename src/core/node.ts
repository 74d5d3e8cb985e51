/** A node: its identity, roles, status and load. */

import type { NodeName } from "./ids.ts";

/** A name may be used again after a restart; every process has another incarnation. */
export interface NodeIdentity {
  readonly name: NodeName;
  readonly incarnation: string;
}

/** Unknown values of a newer version are kept and never taken for "dead". */
export type NodeStatus = "joining" | "active" | "draining" | "dead" | (string & {});

export const NODE_ROLES = ["gateway", "function", "worker", "scheduler"] as const;
export type NodeRole = (typeof NODE_ROLES)[number];

export interface NodeLoad {
  readonly jobs: number;
  readonly connections: number;
  /** Shares between 0 and 1. */
  readonly cpu: number;
  readonly memory: number;
  readonly loopLagMs: number;
  /** Unfinished jobs whose events this node writes; left out where each worker writes its own. */
  readonly owned?: number;
  readonly drain?: DrainProgress;
  /** Left out by a version that does not report it. */
  readonly slots?: number;
  readonly serves?: ServedQueues;
  readonly traffic?: NodeTraffic;
  /** The version of the schedules that its code declares (core/schedules/declared-schedules.ts). */
  readonly declares?: string;
  readonly reach?: readonly Reach[];
  /** Report of its node-controller (supervisor/supervisor-report.ts). */
  readonly supervised?: Readonly<Record<string, unknown>>;
}

export interface Reach {
  readonly node: string;
  readonly ok: boolean;
  readonly latencyMs: number | null;
  readonly reason: string | null;
}

export interface ServedQueues {
  readonly queues: readonly string[] | null;
  readonly except: readonly string[];
}

/** Jobs per second. */
export interface NodeTraffic {
  readonly submitted: number;
  readonly finished: number;
  readonly failed: number;
  /** The busiest queues. */
  readonly queues: readonly (readonly [queue: string, submitted: number, finished: number])[];
  readonly others: boolean;
}

export const NO_LOAD: NodeLoad = { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 };

export function servesQueue({ serves }: Pick<NodeLoad, "serves">, queue: string): boolean {
  return serves === undefined || (serves.queues?.includes(queue) !== false && !serves.except.includes(queue));
}

/** Progress in handing over the jobs that it owned when its drain began. */
export interface DrainProgress {
  readonly owned: number;
  readonly handedOver: number;
  /** Ended while they were waiting. */
  readonly finished: number;
  readonly waiting: number;
  /** No node answered; the leader offers them. */
  readonly orphaned: number;
  /** Given up when the time was over: without an owner until the leader finds them. */
  readonly released: number;
}

export interface NodeInfo extends NodeIdentity {
  readonly url: string | null;
  readonly hostname: string;
  /** IP address or host name; null while it does not listen. */
  readonly address: string | null;
  /** Callers and other nodes use the same port. Null while it does not listen. */
  readonly httpPort: number | null;
  readonly roles: readonly NodeRole[];
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly status: NodeStatus;
  readonly startedAt: number;
  /** By the clock of the backend. */
  readonly lastSeenAt: number;
  /** Not dead, and heard of lately. Only a suspicion: the leader decides who is dead (`status`). */
  readonly alive: boolean;
  readonly load: NodeLoad;
}

/** What a node reports of itself; the rest is what others see. */
export type OwnInfo = Omit<NodeInfo, keyof NodeIdentity | "status" | "lastSeenAt" | "alive">;

export function acceptsWork(node: { readonly status: NodeStatus }): boolean {
  return node.status === "active";
}

export type NodeCounts = ReturnType<typeof countNodes>;

export function countNodes(nodes: readonly Pick<NodeInfo, "status">[]) {
  const count = (status: NodeStatus): number => nodes.filter((node) => node.status === status).length;
  return {
    joining: count("joining"),
    active: count("active"),
    draining: count("draining"),
    dead: count("dead"),
    /** With those in a status of a newer version. */
    total: nodes.length,
  };
}
