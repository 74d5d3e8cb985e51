/** A node: its identity, roles, status and load. */

import type { NodeName } from "./ids.ts";

/** A name may be used again after a restart; every process has another incarnation. */
export interface NodeIdentity {
  readonly name: NodeName;
  readonly incarnation: string;
}

/** Values that a newer version may add are kept as they are and never taken for "dead". */
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
  /** Unfinished jobs whose events are this node's business; left out where each worker keeps its own. */
  readonly owned?: number;
  /** Of a drain that is under way or has ended; left out otherwise. */
  readonly drain?: DrainProgress;
  /** Jobs that it may run at the same time, and of which queues; a version that does not tell leaves them out. */
  readonly slots?: number;
  readonly serves?: ServedQueues;
  readonly traffic?: NodeTraffic;
  /** Whether it can reach the others, as it last tried. */
  readonly reach?: readonly Reach[];
  /** What the node-controller above it tells of itself and its children, as it travels (supervisor/supervisor-report.ts). */
  readonly supervised?: Readonly<Record<string, unknown>>;
}

export interface Reach {
  readonly node: string;
  readonly ok: boolean;
  readonly latencyMs: number | null;
  /** Why not. */
  readonly reason: string | null;
}

export interface ServedQueues {
  /** Null for all. */
  readonly queues: readonly string[] | null;
  readonly except: readonly string[];
}

/** Jobs through a node, each second, as it has counted lately. */
export interface NodeTraffic {
  readonly submitted: number;
  readonly finished: number;
  /** Of those finished. */
  readonly failed: number;
  /** The busiest: name, submitted, finished. */
  readonly queues: readonly (readonly [queue: string, submitted: number, finished: number])[];
  /** Whether there are more of them. */
  readonly others: boolean;
}

export const NO_LOAD: NodeLoad = { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 };

export function servesQueue({ serves }: Pick<NodeLoad, "serves">, queue: string): boolean {
  return serves === undefined || (serves.queues?.includes(queue) !== false && !serves.except.includes(queue));
}

/** How far a node is with handing over the jobs that it owned when its drain began. */
export interface DrainProgress {
  readonly owned: number;
  /** Another node owns them now. */
  readonly handedOver: number;
  /** They ended while they were waiting. */
  readonly finished: number;
  readonly waiting: number;
  /** Nobody answered; the leader offers them. */
  readonly orphaned: number;
  /** Given up at the end of the time: they belong to nobody until the leader finds them. */
  readonly released: number;
}

export interface NodeInfo extends NodeIdentity {
  readonly url: string | null;
  readonly hostname: string;
  /** The IP address, or the name that stands for one, at which the node listens; null while it does not. */
  readonly address: string | null;
  /** The only port of a node: callers and other nodes use the same one. Null while it does not listen. */
  readonly httpPort: number | null;
  readonly roles: readonly NodeRole[];
  /** The tasks that it can run. */
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly status: NodeStatus;
  readonly startedAt: number;
  /** By the clock of whoever keeps the list of nodes. */
  readonly lastSeenAt: number;
  /** Not dead, and heard of lately. A suspicion only: who is dead is the leader's word, in `status`. */
  readonly alive: boolean;
  readonly load: NodeLoad;
}

/** What a node tells of itself; the rest is what others see of it. */
export type OwnInfo = Omit<NodeInfo, keyof NodeIdentity | "status" | "lastSeenAt" | "alive">;

/** Only an active node may be given new work. */
export function acceptsWork(node: { readonly status: NodeStatus }): boolean {
  return node.status === "active";
}

export function hasRole(node: Pick<NodeInfo, "roles">, role: NodeRole): boolean {
  return node.roles.includes(role);
}

export function hasCapability(node: Pick<NodeInfo, "capabilities">, capability: string): boolean {
  return node.capabilities.includes(capability);
}

export type NodeCounts = ReturnType<typeof countNodes>;

export function countNodes(nodes: readonly Pick<NodeInfo, "status">[]) {
  const count = (status: NodeStatus): number => nodes.filter((node) => node.status === status).length;
  return {
    joining: count("joining"),
    active: count("active"),
    draining: count("draining"),
    dead: count("dead"),
    /** Also those in a status that only a newer version knows. */
    total: nodes.length,
  };
}
