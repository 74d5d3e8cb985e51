/** Answers questions about the cluster as a whole, on every node. */

import { type ClusterSample, readSamples } from "./metrics/metrics-duty.ts";
import type { Channels } from "../channels/channels.ts";
import type { Coordination, Leadership, NodeRequest, Tenure } from "../leadership/coordination.ts";
import { BatonError } from "../core/errors.ts";
import type { NodeName } from "../core/ids.ts";
import { countNodes, type NodeInfo } from "../core/node.ts";
import { LEADER_ROLES } from "../core/leadership/term.ts";
import type { Platform } from "../platform/platform.ts";
import type { Store } from "../store/store.ts";

export type Cluster = ReturnType<typeof clusterView>;

export interface ClusterViewOptions {
  readonly name: string;
  readonly minimumNodes: number;
  readonly coordination: Coordination;
  readonly channels: Pick<Channels, "kind" | "limits">;
  readonly dispatch: "pull" | "push";
  readonly leadership: Pick<Leadership, "current">;
  readonly store: Pick<Store, "samples">;
  readonly warnings?: readonly string[];
}

export function clusterView(
  { state, events }: Pick<Platform, "state" | "events">,
  options: ClusterViewOptions,
) {
  const { coordination, channels, leadership, store, warnings = [] } = options;
  const { membership } = coordination;
  return {
    info() {
      const counts = countNodes(membership.nodes());
      return {
        name: options.name,
        totalNodes: counts.total,
        activeNodes: counts.active,
        drainingNodes: counts.draining,
        deadNodes: counts.dead,
        joiningNodes: counts.joining,
        schedulerLeader: leadership.current()?.leader ?? null,
        minimumNodes: options.minimumNodes,
        formed: state.forming === null,
        fabric: { coordination: coordination.kind, channels: channels.kind, dispatch: options.dispatch },
        notes: [...warnings, ...coordination.notes()] as readonly string[],
        limits: channels.limits,
      };
    },

    nodes: (): readonly NodeInfo[] => membership.nodes(),

    async leaders(): Promise<readonly Tenure[]> {
      const tenures = await Promise.all(LEADER_ROLES.map((role) => coordination.lock(role).tenure()));
      return tenures.filter((tenure) => tenure !== null);
    },

    /** False when there is no such node. */
    ask: (node: NodeName, request: NodeRequest): Promise<boolean> => membership.ask(node, request),

    /** False when there is no such node. Rejects with BAD_REQUEST where nodes are not removed by hand. */
    async remove(node: NodeName): Promise<boolean> {
      if (membership.remove) {
        const removed = await membership.remove(node);
        if (removed) events.emit("node.removed", node);
        return removed;
      }
      const message =
        "only nodes that have joined are removed; here a node leaves when it is stopped, and a dead one is forgotten by itself";
      throw new BatonError("BAD_REQUEST", message);
    },

    /** Newest first; samples that the metrics aggregator wrote. */
    metrics: (limit: number): Promise<readonly ClusterSample[]> => readSamples(store, limit),
  };
}
