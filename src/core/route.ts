/**
 * Where a request is answered. Standby refusal, owner proxying and round-robin placement are three outcomes of one
 * decision over one view of the cluster.
 */

import type { JobId, NodeName } from "./ids.ts";
import { parseJobId } from "./ids.ts";
import type { NodeInfo } from "./node.ts";
import { acceptsWork } from "./node.ts";

export type Target =
  | { readonly at: "here" }
  | { readonly at: "any" }
  | { readonly at: "leader" }
  | { readonly at: "owner"; readonly job: JobId };

export type Refusal = "NOT_LEADER" | "OWNER_UNREACHABLE" | "LOOP" | "DRAINING";

export type Decision =
  | { readonly do: "serve" }
  | { readonly do: "forward"; readonly to: readonly NodeInfo[] }
  | { readonly do: "refuse"; readonly code: Refusal };

export interface View {
  readonly self: NodeName;
  /** True when every node reads and writes the same store, so that any of them can answer for any job. */
  readonly sharedStore: boolean;
  readonly draining: boolean;
  /** True when we lead, inside the trust window. */
  readonly leading: boolean;
  readonly leader: NodeName | null;
  /** All known nodes in the order in which new work is placed, ourselves among them. */
  readonly nodes: readonly NodeInfo[];
  /** The request came from another node (by signature), so it must end here. */
  readonly forwarded: boolean;
}

export function decide(target: Target, mutates: boolean, view: View): Decision {
  switch (target.at) {
    case "here":
      return { do: "serve" };
    case "any":
      return place(mutates, view);
    case "leader":
      return view.leading ? { do: "serve" } : toLeader(view);
    case "owner":
      return toOwner(target.job, view);
  }
}

function place(mutates: boolean, view: View): Decision {
  if (!mutates || view.forwarded || view.sharedStore) {
    return view.draining && mutates ? { do: "refuse", code: "DRAINING" } : { do: "serve" };
  }
  const willing = view.nodes.filter(acceptsWork);
  if (willing[0]?.name === view.self) return { do: "serve" };
  if (willing.length > 0) return { do: "forward", to: willing };
  return view.draining ? { do: "refuse", code: "DRAINING" } : { do: "serve" };
}

function toLeader(view: View): Decision {
  const leader = view.nodes.find((node) => node.name === view.leader && node.name !== view.self);
  if (!leader) return { do: "refuse", code: "NOT_LEADER" };
  return view.forwarded ? { do: "refuse", code: "LOOP" } : { do: "forward", to: [leader] };
}

function toOwner(job: JobId, view: View): Decision {
  const owner = parseJobId(job)?.birthplace;
  // A node that was renamed keeps its old jobs: an unknown birthplace is looked up here and ends in 404 if it is not ours.
  if (view.sharedStore || owner === view.self || view.nodes.length <= 1) return { do: "serve" };
  const node = view.nodes.find((candidate) => candidate.name === owner);
  if (!node) return { do: "refuse", code: "OWNER_UNREACHABLE" };
  return view.forwarded ? { do: "refuse", code: "LOOP" } : { do: "forward", to: [node] };
}
