/**
 * The last report of every peer, and evidence that one of its incarnations has ended:
 *
 *   another incarnation answers   a call of this node: the previous incarnation has ended for good
 *   nothing listens               its address refuses connections: ended, unless that incarnation is heard again
 *
 * Silence proves nothing. Neither does a request: it may have been delayed, and come from the old incarnation.
 */

import type { EventEmitter } from "node:events";
import type { NodeName } from "../../core/ids.ts";
import { NO_LOAD, type NodeIdentity, type NodeInfo } from "../../core/node.ts";
import type { PeerSet, RemovedIncarnation } from "../../core/leadership/peer-set.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Presence } from "../rpc/bully-messages.ts";

/** Listeners run at once, in the order of subscription. */
export interface PeerEventMap {
  readonly peers: [before: PeerSet | null];
  /** An incarnation of a peer proved to be over. */
  readonly evidence: [];
  /** The known leader changed: a new term began, or the current one ended. */
  readonly leader: [];
  readonly vacant: [];
  /** A peer votes that did not vote before. */
  readonly voter: [];
  /** This node has joined, or votes from now on. */
  readonly ready: [];
  readonly removed: [why: RemovedIncarnation["why"]];
  readonly unreachable: [peer: NodeName];
  /** A node of another cluster called this node. */
  readonly stranger: [presence: Presence];
}

export type PeerEvents = EventEmitter<PeerEventMap>;

interface Entry {
  readonly presence: Presence;
  readonly heardAt: number;
  /** Made once for each presence: every request reads all nodes. */
  readonly shown: NodeInfo;
}

export class Presences {
  readonly #clock: Clock;
  readonly #deadAfterMs: number;
  readonly #events: PeerEvents;
  readonly #entries = new Map<NodeName, Entry>();
  readonly #answered = new Map<NodeName, string>();
  readonly #refusing = new Map<NodeName, string>();
  #openedAt: number;

  constructor(clock: Clock, deadAfterMs: number, events: PeerEvents) {
    this.#clock = clock;
    this.#deadAfterMs = deadAfterMs;
    this.#events = events;
    this.#openedAt = clock.monotonic();
  }

  /** After a start this node has heard no peer yet. Evidence stays valid. */
  clear(): void {
    this.#openedAt = this.#clock.monotonic();
    this.#entries.clear();
  }

  note(presence: Presence): void {
    const { node, info, status } = presence;
    const before = this.#entries.get(node.name)?.presence;
    const same = before?.node.incarnation === node.incarnation;
    if (same ? before.beat > presence.beat : this.gone(node)) return;
    const shown = { ...info, ...node, status, lastSeenAt: this.#clock.now(), alive: status !== "dead" };
    this.#entries.set(node.name, { presence, heardAt: this.#clock.monotonic(), shown });
  }

  get(name: NodeName): Presence | null {
    return this.#entries.get(name)?.presence ?? null;
  }

  alive(name: NodeName): boolean {
    const presence = this.get(name);
    if (!presence || presence.status === "dead" || this.gone(presence.node)) return false;
    return this.silentMs(name) < this.#deadAfterMs;
  }

  /** Since the peer was heard, or since this node began to listen. */
  silentMs(name: NodeName): number {
    return this.#clock.monotonic() - (this.#entries.get(name)?.heardAt ?? this.#openedAt);
  }

  show(name: NodeName, address: string | null): NodeInfo {
    const entry = this.#entries.get(name);
    const silent = this.silentMs(name) >= this.#deadAfterMs;
    if (!entry) {
      const status = silent ? "dead" : "joining";
      return { ...UNKNOWN, name, url: address, status, lastSeenAt: 0, alive: false };
    }
    const { presence, shown } = entry;
    const dead = silent || this.gone(presence.node);
    return dead && shown.alive ? { ...shown, status: "dead", alive: false } : shown;
  }

  gone({ name, incarnation }: NodeIdentity): boolean {
    if (this.#refusing.get(name) === incarnation) return true;
    const answered = this.#answered.get(name);
    return answered !== undefined && answered !== incarnation;
  }

  answered({ name, incarnation }: NodeIdentity): void {
    const before = this.#answered.get(name);
    this.#answered.set(name, incarnation);
    this.#refusing.delete(name);
    if (before !== incarnation) this.#events.emit("evidence");
  }

  /** Something that this incarnation can only have sent lately. */
  heard({ name, incarnation }: NodeIdentity): void {
    if (this.#refusing.get(name) === incarnation) this.#refusing.delete(name);
  }

  /** A promise is made to this incarnation. An answer of an earlier one says nothing against it: only what is found from now on. */
  trust({ name, incarnation }: NodeIdentity): void {
    if (this.#refusing.get(name) === incarnation) this.#refusing.delete(name);
    if (this.#answered.get(name) !== incarnation) this.#answered.delete(name);
  }

  refuses({ name, incarnation }: NodeIdentity): void {
    if (this.#refusing.get(name) === incarnation) return;
    this.#refusing.set(name, incarnation);
    this.#events.emit("evidence");
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
  load: NO_LOAD,
};
