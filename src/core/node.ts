/** Who a node is, what it does, and how it fares. */

import type { NodeName } from "./ids.ts";

/** A name may be used again after a restart; the incarnation tells the two lives apart. */
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
}

export interface NodeInfo extends NodeIdentity {
  readonly url: string | null;
  readonly hostname: string;
  readonly roles: readonly NodeRole[];
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly status: NodeStatus;
  readonly startedAt: number;
  readonly lastSeenAt: number;
  readonly load: NodeLoad;
}

/** Only an active node may be given new work. */
export function acceptsWork(node: { readonly status: NodeStatus }): boolean {
  return node.status === "active";
}
