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

import { majorityOf } from "../../core/leadership/bully.ts";
import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { LeaderRole, Term } from "../../core/leadership/term.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { PeerHandler, PeerReply, ReceivedRequest, Transport } from "../../transport/transport.ts";
import type { Coordination, LeaseLock } from "../../leadership/coordination.ts";
import { errorReply, servePeers } from "../rpc/peer-rpc.ts";
import { bullyHandlers } from "./bully-handlers.ts";
import { Heartbeats } from "./heartbeats.ts";
import { ClusterJoiner } from "./joining/cluster-joiner.ts";
import { ROLE } from "./leader-view.ts";
import { LeaderWatch, tcpProbe, type Probe, type WatchPeer } from "./election/leader-watch.ts";
import type { Voter } from "./election/voter.ts";
import { BullyLock } from "./lock.ts";
import { MemberChanges } from "./joining/member-changes.ts";
import { BullyMembership } from "./membership.ts";
import { PeerCalls } from "./peer-calls.ts";
import type { PeerList } from "./peer-list.ts";
import { PeerState, type PeerPlatform, type PeerStateOptions } from "./peer-state.ts";

export interface BullyOptions extends PeerStateOptions {
  readonly transport: Pick<Transport, "call">;
  readonly watchPeer: WatchPeer;
  readonly probe?: Probe;
}

const SPLIT_BRAIN =
  "split brain possible: quorum is none, so each part of a split cluster has a leader of its own";

/** A node that stops says so; a peer that does not answer within this time finds out by itself. */
const LEAVE_MS = 200;

export class BullyCoordination extends Lifecycle implements Coordination {
  readonly kind = "bully";
  readonly membership: BullyMembership;
  readonly peers: PeerList;
  readonly voter: Voter;
  readonly changes: MemberChanges;
  readonly #local: Coordination;
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  readonly #heartbeats: Heartbeats;
  readonly #watch: LeaderWatch;
  readonly #lock: BullyLock;
  readonly #serve: PeerHandler;
  readonly #joining: ClusterJoiner | null;

  /** `local` has the locks of the other roles. */
  constructor(platform: PeerPlatform, local: Coordination, options: BullyOptions) {
    super();
    const { transport, source, watchPeer, probe = tcpProbe(platform.clock) } = options;
    this.#local = local;
    const state = (this.#state = new PeerState(platform, options));
    this.peers = state.peers;
    this.voter = state.voter;
    const calls = (this.#calls = new PeerCalls(state, transport.call.bind(transport)));
    this.#joining =
      source.kind === "static" ? null : new ClusterJoiner(state, calls, source, platform.random);
    const heartbeats = (this.#heartbeats = new Heartbeats(state, calls));
    const watch = (this.#watch = new LeaderWatch(state, heartbeats, probe, watchPeer));
    const changes = (this.changes = new MemberChanges(state, calls, watch));
    const membership = (this.membership = new BullyMembership(state, calls, heartbeats, changes));
    const lock = (this.#lock = new BullyLock(state, calls));
    this.#serve = servePeers(platform, bullyHandlers(state, lock, heartbeats, watch, changes, membership));
  }

  lock(role: LeaderRole): LeaseLock {
    return role === ROLE ? this.#lock : this.#local.lock(role);
  }

  async handle(request: ReceivedRequest): Promise<PeerReply> {
    if (this.running) return this.#serve(request);
    return errorReply(new BatonError("STOPPED", "this node does not take part now"), this.#state.log);
  }

  /** False while a live node has another list: a node that is missing here may be in it. */
  get agreed(): boolean {
    return this.#state.strangers.size === 0 && this.#state.otherLists().length === 0;
  }

  /** Where the join server of a member is reached, if it has one and was heard since this node started. */
  manager(name: NodeName): string | null {
    const { identity, manager, presences } = this.#state;
    return name === identity.name ? manager : (presences.get(name)?.manager ?? null);
  }

  leader(): Term | null {
    return this.#state.leader.current();
  }

  /** An election may be due: try, unless there is a leader. */
  hint(): void {
    this.#lock.hint();
  }

  notes(): readonly string[] {
    const { peers, voter, settings, identity, removed, strangers } = this.#state;
    const { quorum } = settings;
    const voters = peers.names();
    const votes = voters.includes(identity.name);
    const notes: string[] = [];
    if (quorum === "none") notes.push(SPLIT_BRAIN);
    const here = voters.filter((name) => this.#state.alive(name)).length;
    const needed = majorityOf(voters.length);
    if (quorum === "majority" && here < needed && votes) {
      const advice = "; with two nodes the loss of either leaves no majority, a third node would";
      notes.push(
        `nobody can lead: ${here} of ${voters.length} voters are here, ${needed} are needed${voters.length === 2 ? advice : ""}`,
      );
    }
    if (votes && !voter.votes)
      notes.push(
        "this node does not vote yet: it has no record of its votes, and waits until it cannot vote twice",
      );
    if (this.#joining?.trouble) notes.push(`this node has not joined yet: ${this.#joining.trouble}`);
    if (removed)
      notes.push("this node was removed from the cluster; start it again to join anew, or stop it");
    for (const [peer, reason] of this.#calls.denials)
      if (peers.has(peer)) notes.push(`${peer} does not take the calls of this node: ${reason}`);
    const differing = this.#state.otherLists();
    if (differing.length > 0)
      notes.push(
        `the list of nodes differs from that of ${differing.join(", ")}; make it the same everywhere`,
      );
    if (strangers.size > 0)
      notes.push(`not in the list of nodes, and ignored: ${[...strangers].sort().join(", ")}`);
    return notes;
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
