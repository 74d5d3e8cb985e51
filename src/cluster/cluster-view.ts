import type { Cluster, ClusterFabric, ClusterInfo, ClusterSample, LeaderInfo } from "../api/services.ts";
import type { Channels } from "../channels/channels.ts";
import type { Coordination, Leadership, NodeWish } from "../coordination/coordination.ts";
import { BatonError } from "../core/errors.ts";
import type { NodeName } from "../core/ids.ts";
import { countNodes, type NodeInfo } from "../core/node.ts";
import { LEADER_ROLES } from "../core/term.ts";
import type { Store } from "../store/store.ts";
import { readSamples } from "./metrics-duty.ts";

export interface ClusterViewOptions {
  readonly name: string;
  readonly minimumNodes: number;
  readonly forming: () => string | null;
  readonly coordination: Coordination;
  readonly channels: Pick<Channels, "kind" | "limits">;
  readonly dispatch: ClusterFabric["dispatch"];
  readonly leadership: Pick<Leadership, "current">;
  readonly store: Pick<Store, "samples">;
  /** Of the configuration, to be said with the notes. */
  readonly warnings?: readonly string[];
}

/** What people ask about the cluster as a whole; the same whichever node they ask. */
export class ClusterView implements Cluster {
  readonly #o: ClusterViewOptions;

  constructor(options: ClusterViewOptions) {
    this.#o = options;
  }

  info(): ClusterInfo {
    const {
      name,
      minimumNodes,
      coordination,
      channels,
      dispatch,
      leadership,
      forming,
      warnings = [],
    } = this.#o;
    const counts = countNodes(this.nodes());
    return {
      name,
      totalNodes: counts.total,
      activeNodes: counts.active,
      drainingNodes: counts.draining,
      deadNodes: counts.dead,
      joiningNodes: counts.joining,
      schedulerLeader: leadership.current()?.leader ?? null,
      minimumNodes,
      formed: forming() === null,
      fabric: { coordination: coordination.kind, channels: channels.kind, dispatch },
      notes: [...warnings, ...coordination.notes()],
      limits: channels.limits,
    };
  }

  nodes(): readonly NodeInfo[] {
    return this.#o.coordination.membership.nodes();
  }

  async leaders(): Promise<readonly LeaderInfo[]> {
    const tenures = await Promise.all(LEADER_ROLES.map((role) => this.#o.coordination.lock(role).tenure()));
    return tenures.flatMap((tenure) => {
      if (!tenure) return [];
      const { role, leader, incarnation, epoch, acquiredAt, leaseUntil } = tenure;
      return [{ role, node: leader, incarnation, epoch, acquiredAt, leaseUntil }];
    });
  }

  ask(node: NodeName, wish: NodeWish): Promise<boolean> {
    return this.#o.coordination.membership.ask(node, wish);
  }

  async remove(node: NodeName): Promise<boolean> {
    const { membership } = this.#o.coordination;
    if (membership.remove) return membership.remove(node);
    throw new BatonError(
      "BAD_REQUEST",
      "only nodes that have joined are removed; here a node leaves when it is stopped, and a dead one is forgotten by itself",
    );
  }

  metrics(limit: number): Promise<readonly ClusterSample[]> {
    return readSamples(this.#o.store, limit);
  }
}
