/** Knows the other owners: which are alive, by membership, and how many jobs they own, by their heartbeats. Declares no node dead. */

import type { Subscription } from "../../channels/channels.ts";
import type { CoordinatorHeartbeat } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import type { NodeName } from "../../core/ids.ts";
import { acceptsWork } from "../../core/node.ts";
import type { OwnerContext } from "./owner-context.ts";

export interface Peer {
  readonly name: NodeName;
  readonly incarnation: string;
  readonly jobs: number | null;
  /** When its last heartbeat arrived, on our monotonic clock; null without one. */
  readonly heardAt: number | null;
}

interface Heard {
  readonly heartbeat: CoordinatorHeartbeat;
  readonly at: number;
}

/** Heartbeats that may be missed before the last one is too old to use. */
const MISSED_MAX = 3;

export class CoordinatorHealthMonitor {
  readonly #o: OwnerContext;
  readonly #heard = new Map<string, Heard>();
  #subscription: Subscription | null = null;

  constructor(context: OwnerContext) {
    this.#o = context;
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

  peers(): Peer[] {
    const { membership, identity, clock, settings } = this.#o;
    const oldest = clock.monotonic() - MISSED_MAX * settings.heartbeatMs;
    const nodes = membership.nodes();
    const known = new Set(nodes.map(({ incarnation }) => incarnation));
    for (const [incarnation, { at }] of this.#heard)
      if (!known.has(incarnation) && at < oldest) this.#heard.delete(incarnation);

    const peers: Peer[] = [];
    for (const node of nodes) {
      if (node.incarnation === identity.incarnation) continue;
      if (!node.alive || !acceptsWork(node) || !node.roles.includes("scheduler")) continue;
      const heard = this.#heard.get(node.incarnation);
      // Its heartbeat reports a drain before membership does.
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
