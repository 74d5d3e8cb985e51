/**
 * Coordination by the peers themselves: no database and no broker, only the nodes and a file of votes on each disk.
 *
 * The highest name wins, and a node that returns does not take over from a healthy leader. A term is the promise of a
 * majority of voters, numbered and on disk (lock.ts, election/voter.ts). Without a majority there is no leader; with
 * `quorum: none` the remaining nodes elect one, and two halves of a split cluster have one leader each until they are
 * connected again.
 *
 * The other leader roles are local: every node maintains its own store.
 */

import type { NodeName } from "../../core/ids.ts";
import type { LeaderRole, Term } from "../../core/leadership/term.ts";
import type { Random } from "../../platform/random.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { PeerReply, ReceivedRequest, Transport } from "../../transport/transport.ts";
import type { Coordination, LeaseLock, Membership } from "../../leadership/coordination.ts";
import { MemberAdmission } from "./joining/member-admission.ts";
import { Candidacy } from "./election/candidacy.ts";
import { BullyRequestHandler, json } from "./request-handler.ts";
import { Heartbeats } from "./heartbeats.ts";
import { ClusterJoiner } from "./joining/cluster-joiner.ts";
import { ROLE } from "./leader-view.ts";
import { LeaderWatch, type WatchPeer } from "./election/leader-watch.ts";
import { BullyLock } from "./lock.ts";
import { MemberChanges } from "./joining/member-changes.ts";
import { BullyMembership } from "./membership.ts";
import { PeerCalls } from "./peer-calls.ts";
import { PeerState, type PeerStateOptions } from "./peer-state.ts";
import { SPLIT_BRAIN, statusNotes } from "./status-notes.ts";
import { tcpProbe, type Probe } from "./election/tcp-probe.ts";
import { VoteRequests } from "./election/vote-requests.ts";

export interface BullyOptions extends PeerStateOptions {
  readonly random: Random;
  /** Signs its requests; its owner starts and stops it. */
  readonly transport: Transport;
  readonly watchPeer: WatchPeer;
  readonly probe?: Probe;
  /** The locks of the local roles. Started and stopped with this. */
  readonly local: Coordination;
}

/** A node that stops says so; a peer that does not answer within this time finds out by itself. */
const LEAVE_MS = 200;

export class BullyCoordination extends Lifecycle implements Coordination {
  readonly kind = "bully";
  readonly membership: Membership;
  readonly #local: Coordination;
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  readonly #candidacy: Candidacy;
  readonly #heartbeats: Heartbeats;
  readonly #watch: LeaderWatch;
  readonly #admission: MemberAdmission;
  readonly #lock: BullyLock;
  readonly #handler: BullyRequestHandler;
  /** Null for a configured list of nodes. */
  readonly #joining: ClusterJoiner | null;

  constructor(options: BullyOptions) {
    super();
    const { clock, random, transport, source, watchPeer, probe = tcpProbe(clock) } = options;
    this.#local = options.local;
    const state = (this.#state = new PeerState(options));
    const calls = (this.#calls = new PeerCalls(state, transport));
    const joining = source.kind === "static" ? null : new ClusterJoiner(state, calls, source, random);
    const heartbeats = (this.#heartbeats = new Heartbeats(state, calls));
    const watch = (this.#watch = new LeaderWatch(state, heartbeats, probe, watchPeer));
    const candidacy = (this.#candidacy = new Candidacy(state));
    const requests = new VoteRequests(state, candidacy, calls);
    const changes = new MemberChanges(state, calls);
    const admission = (this.#admission = new MemberAdmission(state, calls, changes, watch));
    const membership = new BullyMembership({ state, calls, heartbeats, changes, admission });
    const shared = { state, requests, candidacy, heartbeats, watch, changes, admission, membership };
    this.#handler = new BullyRequestHandler(shared);
    this.#lock = new BullyLock(state, candidacy, requests);
    this.#joining = joining;
    this.membership = membership;
  }

  lock(role: LeaderRole): LeaseLock {
    return role === ROLE ? this.#lock : this.#local.lock(role);
  }

  /** Answers a peer whose request has been authenticated. */
  async handle(request: ReceivedRequest): Promise<PeerReply> {
    if (this.running) return this.#handler.handle(request);
    return json({ error: "STOPPED", message: "this node does not take part now" }, 503);
  }

  /** Of the configured list of nodes; null where nodes join. */
  get configHash(): string | null {
    return this.#state.peers.hash;
  }

  /** False while a live node has another list: a node that is missing here may be in it. */
  get agreed(): boolean {
    return this.#state.strangers.size === 0 && this.#state.otherLists().length === 0;
  }

  /** All nodes whose votes count, this one and dead ones included. */
  voters(): readonly NodeName[] {
    return this.#state.peers.names();
  }

  /** Where peers reach a member; null for a node that is not one. */
  address(name: NodeName): string | null {
    return this.#state.peers.address(name);
  }

  /** Where the join server of a member is reached, if it has one and was heard since this node started. */
  manager(name: NodeName): string | null {
    const { identity, manager, presences } = this.#state;
    return name === identity.name ? manager : (presences.get(name)?.manager ?? null);
  }

  /** Adds a node that asks through this one; the leader does it. */
  join(name: NodeName, address: string): Promise<void> {
    return this.#admission.passJoin({ name, incarnation: "" }, address);
  }

  /** Removes a member; only the leader can. False when it was not a member. */
  remove(name: NodeName): Promise<boolean> {
    return this.#admission.remove(name);
  }

  /** The leader, as far as this node knows. */
  leader(): Term | null {
    return this.#state.leader.current();
  }

  /** An election may be due: try, unless there is a leader. */
  hint(): void {
    this.#candidacy.hint();
  }

  notes(): readonly string[] {
    return statusNotes(this.#state, this.#calls, this.#joining);
  }

  protected async onStart(): Promise<void> {
    const { settings, log } = this.#state;
    await this.#local.start();
    await this.#state.load();
    if (settings.quorum === "none") log.warn({}, SPLIT_BRAIN);
    await this.#heartbeats.start();
    this.#joining?.start();
    this.#state.running = true;
  }

  protected async onStop(): Promise<void> {
    this.#state.running = false;
    this.#watch.stop();
    await Promise.all([this.#heartbeats.stop(), this.#joining?.stop()]);
    this.#state.setStatus("dead");
    await this.#heartbeats.sendToAll(LEAVE_MS);
    this.#state.leader.clear();
    await this.#state.voter.idle();
    await this.#local.stop();
  }
}
