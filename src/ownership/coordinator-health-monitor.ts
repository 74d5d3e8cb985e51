import type { Channels, Subscription } from "../channels/channels.ts";
import type { CoordinatorHeartbeat } from "../channels/messages.ts";
import { topics } from "../channels/names.ts";
import type { Membership } from "../coordination/coordination.ts";
import type { NodeName } from "../core/ids.ts";
import { acceptsWork, hasRole, type NodeIdentity } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";

export interface CoordinatorHealthMonitorOptions {
  readonly channels: Pick<Channels, "subscribe">;
  readonly membership: Pick<Membership, "nodes">;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly heartbeatMs: number;
}

/** Another node that would take assignments now. */
export interface Peer {
  readonly name: NodeName;
  readonly incarnation: string;
  /** Unfinished jobs that it owns; null when it has not said so lately. */
  readonly jobs: number | null;
  /** On our monotonic clock; null when it was not heard. */
  readonly heardAt: number | null;
}

interface Heard {
  readonly heartbeat: CoordinatorHeartbeat;
  readonly at: number;
}

/** Heartbeats that may be missed before what the last one said is old. */
const MISSED_MAX = 3;

/**
 * Knows the other owners: who lives, by membership, and what they own, by their heartbeats. A heartbeat that does not come says
 * nothing about life and death: that is decided in one place, by the leader's look at membership.
 */
export class CoordinatorHealthMonitor {
  readonly #o: CoordinatorHealthMonitorOptions;
  readonly #heard = new Map<string, Heard>();
  #subscription: Subscription | null = null;

  constructor(options: CoordinatorHealthMonitorOptions) {
    this.#o = options;
  }

  start(): void {
    this.#subscription = this.#o.channels.subscribe(topics.coordinatorHeartbeat, ({ body }) => {
      const heartbeat = body as CoordinatorHeartbeat;
      this.#heard.set(heartbeat.incarnation, { heartbeat, at: this.#o.clock.monotonic() });
    });
  }

  async stop(): Promise<void> {
    await this.#subscription?.close();
    this.#subscription = null;
    this.#heard.clear();
  }

  /** Living, active owners but for ourselves. */
  peers(): Peer[] {
    const { membership, identity, clock, heartbeatMs } = this.#o;
    const oldest = clock.monotonic() - MISSED_MAX * heartbeatMs;
    const nodes = membership.nodes();
    const known = new Set(nodes.map(({ incarnation }) => incarnation));
    for (const [incarnation, { at }] of this.#heard)
      if (!known.has(incarnation) && at < oldest) this.#heard.delete(incarnation);

    const peers: Peer[] = [];
    for (const node of nodes) {
      if (node.incarnation === identity.incarnation) continue;
      if (!node.alive || !acceptsWork(node) || !hasRole(node, "scheduler")) continue;
      const heard = this.#heard.get(node.incarnation);
      // A drain is heard of before membership knows it.
      if (heard?.heartbeat.status === "draining") continue;
      peers.push({
        name: node.name,
        incarnation: node.incarnation,
        jobs: heard && heard.at >= oldest ? heard.heartbeat.jobs : null,
        heardAt: heard?.at ?? null,
      });
    }
    return peers;
  }
}
