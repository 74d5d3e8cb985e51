/** Decides which nodes may join and removes members. The change itself is made by member-changes.ts. */

import { sameIncarnation, type HeldTerm } from "../../../core/leadership/vote-rules.ts";
import { BatonError, hasCode } from "../../../core/errors.ts";
import type { NodeName } from "../../../core/ids.ts";
import type { NodeIdentity } from "../../../core/node.ts";
import { isMember, type PeerSet } from "../../../core/leadership/peer-set.ts";
import type { LeaderWatch } from "../election/leader-watch.ts";
import type { MemberChanges } from "./member-changes.ts";
import { heartbeatAnswer, joinAnswer, PATHS } from "../messages.ts";
import type { PeerCalls } from "../peer-calls.ts";
import type { PeerState } from "../peer-state.ts";

export type AdmissionResult =
  /** `fresh`: never a member before, so it can have promised nothing. */
  | { readonly fresh: boolean; readonly leader: HeldTerm | null; readonly peers: PeerSet }
  | { readonly removed: true; readonly peers: PeerSet };

export class MemberAdmission {
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  readonly #changes: MemberChanges;
  readonly #watch: LeaderWatch;

  constructor(state: PeerState, calls: PeerCalls, changes: MemberChanges, watch: LeaderWatch) {
    this.#state = state;
    this.#calls = calls;
    this.#changes = changes;
    this.#watch = watch;
  }

  /** The same join twice does nothing. Without an incarnation, any incarnation of that name at the address is meant. */
  async join(from: NodeIdentity, address: string): Promise<AdmissionResult> {
    const { peers, identity } = this.#state;
    const set = this.#set();
    if (sameIncarnation(from, identity))
      throw new BatonError("BAD_REQUEST", "a node cannot join through itself");
    if (!set) throw this.#changes.notLeader();
    if (
      set.removed.some(
        ({ name, incarnation, why }) =>
          why === "removed" && name === from.name && incarnation === from.incarnation && incarnation !== "",
      )
    )
      return { removed: true, peers: set };
    const known = isMember(set, from.name);
    if (known) {
      this.#refuseNamesake(from);
      const proved = from.incarnation !== "";
      // A live node reports its address itself, and a wrong one would cut it off.
      if (!proved && this.#state.alive(from.name)) return { fresh: false, leader: null, peers: set };
      if (proved) peers.moved(from.name, address);
      // Any node can confirm a member, also while there is no leader.
      if (set.members[from.name] === address || (proved && !this.#changes.term()))
        return { fresh: false, leader: null, peers: set };
    }
    const leader = this.#changes.require();
    await this.#meet(from, address);
    const fresh = !known && !set.removed.some((node) => node.name === from.name);
    await this.#changes.add(from.name, address);
    return { fresh, leader, peers: this.#set() ?? set };
  }

  /** For a node that asked this one and does not know the leader. */
  async passJoin(from: NodeIdentity, address: string): Promise<void> {
    try {
      const admitted = await this.join(from, address);
      if ("removed" in admitted)
        throw new BatonError("FORBIDDEN", `${from.name} was removed from this cluster`);
    } catch (error) {
      const leader = hasCode(error, "NOT_LEADER") ? (error.details["leader"] as NodeName | null) : null;
      if (leader === null) throw error;
      const body = { op: "join", from, address };
      const deadlineMs = 4 * this.#state.settings.heartbeatTimeoutMs;
      const asked = await this.#calls.ask(leader, PATHS.join, body, joinAnswer, { deadlineMs });
      if (!("answer" in asked)) throw this.#changes.notLeader();
    }
  }

  /** False when it was not a member. */
  async remove(name: NodeName): Promise<boolean> {
    const { presences, identity } = this.#state;
    this.#set();
    this.#changes.require();
    const known = name === identity.name ? identity : presences.get(name)?.node;
    return this.#changes.remove({ name, incarnation: known?.incarnation ?? "", why: "removed" });
  }

  #set(): PeerSet | null {
    const { peers } = this.#state;
    if (peers.agreed) return peers.set;
    throw new BatonError(
      "FORBIDDEN",
      "the members of this cluster are a list in the configuration; change it there, on every node",
    );
  }

  /** A member that cannot be reached would only be missing from every majority. */
  async #meet(from: NodeIdentity, address: string): Promise<void> {
    const { identity, settings } = this.#state;
    const body = { from: identity, set: null, ...this.#state.presence() };
    const options = { deadlineMs: settings.heartbeatTimeoutMs };
    const met = await this.#calls.askAt(from.name, address, PATHS.heartbeat, body, heartbeatAnswer, options);
    const node = "answer" in met ? met.answer.node : null;
    if (node?.name === from.name && (from.incarnation === "" || node.incarnation === from.incarnation))
      return;
    throw new BatonError(
      "BAD_REQUEST",
      `${from.name} cannot be reached at ${address}; give the address at which others reach it`,
      { field: "body.address" },
    );
  }

  #refuseNamesake(from: NodeIdentity): void {
    const { presences } = this.#state;
    const node = presences.get(from.name)?.node;
    if (from.incarnation === "" || !node || sameIncarnation(node, from) || !presences.alive(from.name))
      return;
    // A restart between two heartbeats looks the same. It asks again, and by then the old incarnation is known to be gone.
    void this.#watch.check(node);
    throw new BatonError(
      "NAME_IN_USE",
      `another living node is called ${from.name}; give this one another name, or stop the other`,
      { field: "body.from.name" },
    );
  }
}
