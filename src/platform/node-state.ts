/**
 * The state of a node that several layers share. A reading is computed when it is read, because most of these values are never stored: a
 * term, for example, is trusted until a given time. It is published once, by the layer that owns the value, and neutral before. Events
 * belong in NodeEvents, wake-ups in WorkSignal.
 */

import type { NodeLoad, NodeStatus, Reach } from "../core/node.ts";
import type { Term } from "../core/leadership/term.ts";

export interface NodeReadings {
  /** The own term as scheduler, only inside its trust window. */
  readonly term: () => Term | null;
  /** The term of the leader, as last seen. */
  readonly leader: () => Term | null;
  readonly running: () => number;
  /** Whether the worker here has slots for all of these at once. */
  readonly fits: (jobs: readonly { readonly task: string; readonly queue: string }[]) => boolean;
  readonly connections: () => number;
  /** Where the listener is reached from this machine; null while it does not listen. */
  readonly url: () => string | null;
  /** Jobs whose events this node writes, where jobs are pushed. */
  readonly owned: () => Pick<NodeLoad, "owned" | "drain">;
  readonly reach: () => readonly Reach[];
}

const UNPUBLISHED: NodeReadings = {
  term: () => null,
  leader: () => null,
  running: () => 0,
  fits: () => false,
  connections: () => 0,
  url: () => null,
  owned: () => ({}),
  reach: () => [],
};

export class NodeState {
  draining = false;
  /** Why the node takes no work yet, as "2 of 3 nodes have gathered"; null once the cluster has formed. */
  forming: string | null = "it is being started";
  /** Since when agents can renew their leases here, monotonic; null while they cannot. */
  agentsHeardSince: number | null = null;
  /** Agents that were ended for a term of this node; the duty of that term takes their jobs back and removes them. */
  readonly switchedOff = new Set<string>();
  #readings = UNPUBLISHED;

  get status(): NodeStatus {
    if (this.draining) return "draining";
    return this.forming === null ? "active" : "joining";
  }

  get readings(): NodeReadings {
    return this.#readings;
  }

  publish(readings: Partial<NodeReadings>): void {
    this.#readings = { ...this.#readings, ...readings };
  }
}
