/**
 * Decides where a request is answered. Refusal by a standby, forwarding to the owner and round-robin placement are
 * three outcomes of one decision on one view of the cluster.
 */

import { type JobId, type NodeName, parseJobId } from "./ids.ts";
import type { NodeInfo } from "./node.ts";

export type Target =
  | { readonly at: "here" }
  | { readonly at: "any" }
  | { readonly at: "leader" }
  | { readonly at: "owner"; readonly job: JobId };

export type Refusal = "NOT_LEADER" | "OWNER_UNREACHABLE" | "LOOP" | "DRAINING";

export type Decision =
  | { readonly do: "serve" }
  | { readonly do: "forward"; readonly to: NodeInfo }
  /** By round-robin (core/placement-rules.ts). */
  | { readonly do: "place" }
  | { readonly do: "refuse"; readonly code: Refusal };

export interface View {
  readonly self: NodeName;
  /** Every node reads and writes the same store, so any can answer for any job. */
  readonly sharedStore: boolean;
  readonly draining: boolean;
  /** Within the trust window. */
  readonly leading: boolean;
  readonly leader: NodeName | null;
  /** With this node. */
  readonly nodes: readonly NodeInfo[];
  /** The list of nodes is agreed upon: a name that is not in it does not exist. */
  readonly settled: boolean;
  /** Signed by another node, so it must end here. */
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
  if (!mutates) return { do: "serve" };
  if (!view.forwarded && !view.sharedStore && view.nodes.length > 1) return { do: "place" };
  return view.draining ? { do: "refuse", code: "DRAINING" } : { do: "serve" };
}

function toLeader(view: View): Decision {
  const leader = view.nodes.find((node) => node.name === view.leader && node.name !== view.self);
  // Forwarded because we led a moment ago: the caller looks again; a second hop could loop.
  if (!leader || view.forwarded) return { do: "refuse", code: "NOT_LEADER" };
  return { do: "forward", to: leader };
}

function toOwner(job: JobId, view: View): Decision {
  const owner = parseJobId(job)?.birthplace;
  if (view.sharedStore || owner === view.self) return { do: "serve" };
  if (view.forwarded) return { do: "refuse", code: "LOOP" };
  const node = view.nodes.find((candidate) => candidate.name === owner);
  if (node) return { do: "forward", to: node };
  // A renamed node keeps its old jobs: an unknown birthplace is looked up here, and is 404 if it is not ours.
  return view.settled || view.nodes.length <= 1
    ? { do: "serve" }
    : { do: "refuse", code: "OWNER_UNREACHABLE" };
}
