/** What every peer has told of itself last, and when. */

import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Evidence } from "./evidence.ts";
import type { Presence } from "./messages.ts";

export interface PeerBookOptions {
  readonly clock: Clock;
  readonly evidence: Evidence;
  readonly deadAfterMs: number;
}

export interface Entry {
  readonly presence: Presence;
  /** Monotonic. */
  readonly heardAt: number;
  /** Made once for each word of it: every request looks at all nodes. */
  readonly shown: NodeInfo;
}

export class PeerBook {
  readonly #o: PeerBookOptions;
  readonly #entries = new Map<NodeName, Entry>();
  #openedAt: number;

  constructor(options: PeerBookOptions) {
    this.#o = options;
    this.#openedAt = options.clock.monotonic();
  }

  /** A new life of this node has heard of nobody yet. */
  open(): void {
    this.#openedAt = this.#o.clock.monotonic();
    this.#entries.clear();
  }

  note(presence: Presence): void {
    const { name, incarnation } = presence.node;
    const before = this.#entries.get(name)?.presence;
    if (before?.node.incarnation === incarnation && before.beat > presence.beat) return;
    if (before?.node.incarnation !== incarnation && this.#o.evidence.gone(presence.node)) return;
    const { clock } = this.#o;
    const { node, info, status } = presence;
    const shown = { ...info, ...node, status, lastSeenAt: clock.now(), alive: status !== "dead" };
    this.#entries.set(name, { presence, heardAt: clock.monotonic(), shown });
  }

  /** It answered something; what it says of itself comes with the next heartbeat. */
  entry(name: NodeName): Entry | null {
    return this.#entries.get(name) ?? null;
  }

  alive(name: NodeName): boolean {
    const entry = this.#entries.get(name);
    if (!entry || entry.presence.status === "dead" || this.#o.evidence.gone(entry.presence.node))
      return false;
    return this.silentMs(name) < this.#o.deadAfterMs;
  }

  /** Since it was heard, or since we began to listen. */
  silentMs(name: NodeName): number {
    return this.#o.clock.monotonic() - (this.#entries.get(name)?.heardAt ?? this.#openedAt);
  }

  /** As others are shown: what it said, and what we think of it. */
  show(name: NodeName, address: string | null): NodeInfo {
    const entry = this.#entries.get(name);
    const silent = this.silentMs(name) >= this.#o.deadAfterMs;
    if (!entry) {
      const status = silent ? "dead" : "joining";
      return { ...UNKNOWN, name, url: address, status, lastSeenAt: 0, alive: false };
    }
    const { presence, shown } = entry;
    const dead = silent || this.#o.evidence.gone(presence.node);
    return dead && shown.alive ? { ...shown, status: "dead", alive: false } : shown;
  }
}

const UNKNOWN: Omit<NodeInfo, "name" | "url" | "status" | "lastSeenAt" | "alive"> = {
  incarnation: "",
  hostname: "",
  address: null,
  httpPort: null,
  roles: [],
  capabilities: [],
  version: "",
  startedAt: 0,
  load: { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 },
};
