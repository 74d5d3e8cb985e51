/**
 * What this node knows about its cluster: its own vote, the peer set, the last report of each peer, evidence that a
 * peer has ended, and the leader. Actors (heartbeats, leader watch, lock, joining, request handler) read it, change it
 * through its methods and subscribe to `events`. It makes no calls to peers; the only IO is the voter's.
 */

import { EventEmitter } from "node:events";
import type { NameOrder, Quorum } from "../../core/leadership/bully.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeStatus, OwnInfo } from "../../core/node.ts";
import {
  compareSets,
  isMember,
  type PeerSet,
  type RemovedIncarnation,
  type SetNumber,
} from "../../core/leadership/peer-set.ts";
import type { Platform } from "../../platform/platform.ts";
import type { TermStore } from "../../store/store.ts";
import type { Presence } from "../rpc/bully-messages.ts";
import { LeaderView, termOf, type Sighting } from "./leader-view.ts";
import { PeerList, type PeerSource } from "./peer-list.ts";
import { Presences, type PeerEventMap, type PeerEvents } from "./presences.ts";
import { Voter } from "./election/voter.ts";

export interface BullySettings {
  readonly quorum: Quorum;
  /** Which node tries first when there is no leader: the highest name, in this order. */
  readonly order: NameOrder;
  readonly heartbeatMs: number;
  /** Also for answers to a renewal. Shorter than a slow round trip, and no node can lead. */
  readonly heartbeatTimeoutMs: number;
  readonly deadAfterMs: number;
  /** Of each of the two rounds of an election. Both fit into the elector's one attempt, or a slow network has no leader. */
  readonly electionTimeoutMs: number;
  /** A member of a joined cluster that was silent for so long is removed from it. */
  readonly forgetAfterMs: number;
  /** The first pause after a join that failed; it doubles, up to the longest. */
  readonly joinRetryMs: number;
  readonly joinRetryMsMax: number;
  /** The lease of leaders: how long a voter that has forgotten its promises keeps still. */
  readonly leaseMs: number;
}

export type PeerPlatform = Pick<Platform, "identity" | "clock" | "random" | "log" | "files">;

export interface PeerStateOptions {
  readonly info: () => OwnInfo;
  /** Where peers reach this node, if not at `info().url`. */
  readonly address?: () => string | null;
  readonly manager?: () => string | null;
  readonly dir: string;
  readonly terms: TermStore;
  readonly source: PeerSource;
  readonly settings: BullySettings;
}

const STRANGERS_MAX = 100;

export class PeerState {
  readonly identity: Platform["identity"];
  readonly clock: Platform["clock"];
  readonly log: Platform["log"];
  readonly settings: BullySettings;
  readonly events: PeerEvents = new EventEmitter<PeerEventMap>();
  readonly presences: Presences;
  readonly leader: LeaderView;
  readonly voter: Voter;
  readonly peers: PeerList;
  readonly strangers = new Set<NodeName>();
  /** Whether the coordination runs; it sets this itself. */
  running = false;
  readonly #o: PeerStateOptions;
  #status: NodeStatus = "joining";
  #removed: RemovedIncarnation["why"] | null = null;
  #beat = 0;

  constructor(platform: PeerPlatform, options: PeerStateOptions) {
    const { identity, clock, log } = platform;
    const { source, terms, dir } = options;
    this.#o = options;
    this.settings = options.settings;
    this.identity = identity;
    this.clock = clock;
    this.log = log;
    const { events, settings } = this;
    this.presences = new Presences(clock, settings.deadAfterMs, events);
    this.leader = new LeaderView(clock, this.presences, events);
    this.voter = new Voter({ ...platform, dir, terms, settings, presences: this.presences, events });
    this.peers = new PeerList(identity.name, source, this.voter);
    events.on("peers", (before) => this.#checkMembership(before));
  }

  /** Begins anew: what peers said to an earlier run counts no more, except what proves that one is gone. */
  async load(): Promise<void> {
    this.#removed = null;
    this.strangers.clear();
    this.#status = "joining";
    this.presences.clear();
    this.leader.clear();
    await this.voter.load();
  }

  get address(): string | null {
    return this.#o.address ? this.#o.address() : this.info.url;
  }

  get manager(): string | null {
    return this.#o.manager?.() ?? null;
  }

  get info(): OwnInfo {
    return this.#o.info();
  }

  /** A node that is ready and in no cluster yet is still joining. A removed node keeps its status: it does not join again. */
  get status(): NodeStatus {
    const { peers, identity } = this;
    const outside = !peers.has(identity.name) && peers.removal(identity) !== "removed";
    return this.#status === "active" && outside ? "joining" : this.#status;
  }

  setStatus(status: NodeStatus): void {
    this.#status = status;
  }

  /** What every request of this node names: itself, and the number of the peer set that it knows. */
  sender(): { from: Platform["identity"]; set: SetNumber | null } {
    return { from: this.identity, set: this.peers.number };
  }

  presence(): Presence {
    const { identity, peers, voter, clock } = this;
    const seen = this.leader.sighting();
    const leftMs = seen ? seen.until - clock.monotonic() : 0;
    const { roles, capabilities, ...info } = this.info;
    return {
      node: identity,
      beat: ++this.#beat,
      address: this.address,
      manager: this.manager,
      info: { ...info, roles: [...roles], capabilities: [...capabilities] },
      status: this.status,
      hash: peers.hash,
      cluster: peers.set?.cluster ?? null,
      votes: voter.votes,
      ballot: voter.ballot,
      leader: seen && leftMs > 0 ? { term: seen.term, leftMs, acquiredAt: seen.acquiredAt } : null,
    };
  }

  /** The store admits a term that was not known before. */
  async noteLeader(sighting: Sighting): Promise<void> {
    const known = sighting.term.epoch <= this.leader.epoch;
    if (this.leader.note(sighting) && !known) await this.voter.admit(termOf(sighting.term));
  }

  alive(name: NodeName): boolean {
    return name === this.identity.name || this.presences.alive(name);
  }

  /** Live peers whose configured list of nodes differs from ours. */
  otherLists(): readonly NodeName[] {
    const { peers, presences } = this;
    return peers.names().filter((name) => presences.alive(name) && presences.get(name)?.hash !== peers.hash);
  }

  newerThan(set: SetNumber | null): boolean {
    const ours = this.peers.set;
    return ours !== null && (set === null || compareSets(set, ours) < 0);
  }

  /** Takes over a newer set of our cluster, or the first that names us. */
  async adopt(set: PeerSet): Promise<void> {
    const { peers, voter } = this;
    const ours = peers.set;
    const older = ours !== null && (ours.cluster !== set.cluster || compareSets(set, ours) <= 0);
    if (peers.agreed && !older) await voter.note(set);
  }

  offer(set: PeerSet): void {
    this.adopt(set).catch((error: unknown) => this.log.error({ err: error }, "the members cannot be noted"));
  }

  /** Whether this node was removed for good; one that was only forgotten joins again. */
  get removed(): boolean {
    return this.#removed === "removed";
  }

  joined(): void {
    this.#removed = null;
    this.events.emit("ready");
  }

  hearRemoval(why: RemovedIncarnation["why"], peers: PeerSet | null): void {
    if (peers) this.offer(peers);
    else this.#leave(why);
  }

  /** A node that is not a member called this one; `presence` is what it says of itself, if it does. */
  meetStranger(name: NodeName, presence: Presence | null): void {
    const { peers, strangers } = this;
    if (!peers.agreed && strangers.size < STRANGERS_MAX) strangers.add(name);
    if (presence?.cluster && presence.address && peers.set && presence.cluster !== peers.set.cluster)
      this.events.emit("stranger", presence);
  }

  #checkMembership(before: PeerSet | null): void {
    const { peers, identity } = this;
    const member = before !== null && isMember(before, identity.name);
    // Without an entry an earlier incarnation was removed while it was away, and this one started since.
    if (member && !peers.has(identity.name)) this.#leave(peers.removal(identity) ?? "forgotten");
  }

  #leave(why: RemovedIncarnation["why"]): void {
    if (this.#removed !== null) return;
    this.#removed = why;
    this.log.warn({ why }, "this node was removed from the cluster");
    this.events.emit("removed", why);
  }
}
