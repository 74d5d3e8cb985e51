/**
 * Changes of the agreed peer set, see core/leadership/peer-set.ts. The leader makes them, one after the other. A change
 * counts when a majority of the set before and of the set after it have stored it on their disks.
 */

import { sameIncarnation, type HeldTerm } from "../../../core/leadership/vote-rules.ts";
import { majorityOf } from "../../../core/leadership/bully.ts";
import { BatonError, hasCode } from "../../../core/errors.ts";
import type { NodeName } from "../../../core/ids.ts";
import type { NodeIdentity } from "../../../core/node.ts";
import {
  compareSets,
  isMember,
  namesOf,
  renumbered,
  withMember,
  withoutMember,
  type PeerSet,
  type RemovedIncarnation,
} from "../../../core/leadership/peer-set.ts";
import { Mutex } from "../../../platform/loop.ts";
import { mapAnswer } from "../../rpc/peer-rpc.ts";
import type { ReplyOf } from "../../rpc/peer-routes.ts";
import { quorumRound } from "../../rpc/quorum-round.ts";
import type { LeaderWatch } from "../election/leader-watch.ts";
import type { PeerCalls } from "../peer-calls.ts";
import type { PeerState } from "../peer-state.ts";

export class MemberChanges {
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  readonly #watch: LeaderWatch;
  /** The set that a majority is known to have noted under our own term. */
  #settled: PeerSet | null = null;
  readonly #turn = new Mutex();
  #beforeChange = async (): Promise<void> => {};

  constructor(state: PeerState, calls: PeerCalls, watch: LeaderWatch) {
    this.#state = state;
    this.#calls = calls;
    this.#watch = watch;
  }

  /** What else a majority stores has to be settled before each change: majorities of sets that are two changes apart need not share a node. */
  settleFirst(settle: () => Promise<void>): void {
    this.#beforeChange = settle;
  }

  /**
   * The same join twice does nothing. Without an incarnation, any incarnation of that name at the address is meant.
   * `fresh` in the answer: never a member before, so it can have promised nothing.
   */
  async join(from: NodeIdentity, address: string): Promise<ReplyOf<"join">> {
    const { peers, identity } = this.#state;
    this.#requireAgreed();
    const { set } = peers;
    if (sameIncarnation(from, identity))
      throw new BatonError("BAD_REQUEST", "a node cannot join through itself");
    if (!set) throw this.#notLeader();
    const proved = from.incarnation !== "";
    const removed = set.removed.find(
      ({ name, incarnation }) => name === from.name && incarnation === from.incarnation,
    );
    if (proved && removed?.why === "removed") throw removedError(from.name, "removed", set);
    const known = isMember(set, from.name);
    const nothingNew = { fresh: false, leader: null, peers: set };
    if (known) {
      this.#refuseNamesake(from);
      // A live node reports its address itself, and a wrong one would cut it off.
      if (!proved && this.#state.alive(from.name)) return nothingNew;
      if (proved) peers.moved(from.name, address);
      // Any node can confirm a member, also while there is no leader.
      if (set.members[from.name] === address || (proved && !this.#term())) return nothingNew;
    }
    const leader = this.#require();
    await this.#meet(from, address);
    const fresh = !known && !set.removed.some((node) => node.name === from.name);
    await this.#add(from.name, address);
    return { fresh, leader, peers: peers.set ?? set };
  }

  /** For a caller that does not know the leader: any incarnation of that name at the address is meant. */
  async passJoin(name: NodeName, address: string): Promise<void> {
    const from = { name, incarnation: "" };
    try {
      await this.join(from, address);
    } catch (error) {
      const leader = hasCode(error, "NOT_LEADER") ? (error.details["leader"] as NodeName | null) : null;
      if (leader === null) throw error;
      const deadlineMs = 4 * this.#state.settings.heartbeatTimeoutMs;
      const asked = await this.#calls.ask(leader, "join", { from, address }, deadlineMs);
      if (asked.got !== "answer") throw this.#notLeader();
    }
  }

  /** Only the leader can. False when it was not a member. */
  async remove(name: NodeName, why: RemovedIncarnation["why"] = "removed"): Promise<boolean> {
    const { peers, presences, log, identity } = this.#state;
    this.#requireAgreed();
    this.#require();
    const { incarnation } = name === identity.name ? identity : (presences.get(name)?.node ?? UNKNOWN);
    const node: RemovedIncarnation = { name, incarnation, why };
    const address = peers.address(name);
    const set = await this.#change((before) => {
      const next = withoutMember(before, node);
      if (next && namesOf(next).length === 0)
        throw new BatonError("BAD_REQUEST", `${name} is the last member of its cluster; stop it instead`);
      return next;
    });
    if (!set) return false;
    log.warn({ peer: name, why }, "a node was removed from the cluster");
    // The removed node would also learn it from the answers of its peers, but later.
    if (address !== null && name !== identity.name) {
      const { heartbeatTimeoutMs } = this.#state.settings;
      void this.#calls.askAt(address, "remove", { from: identity, peers: set }, heartbeatTimeoutMs, name);
    }
    return true;
  }

  /** A leader reports a change; false when it is not the leader any more. */
  async noted(term: HeldTerm, ttlMs: number, set: PeerSet): Promise<boolean> {
    const { voter } = this.#state;
    const ours = voter.peers;
    if (ours && ours.cluster !== set.cluster) return false;
    if ((await voter.renew({ term, ttlMs, granted: true })) === "denied") return false;
    if (ours && compareSets(set, ours) < 0) return false;
    await voter.note(set);
    return true;
  }

  #term(): HeldTerm | null {
    const term = this.#state.leader.sighting()?.term ?? null;
    return term && sameIncarnation(term, this.#state.identity) ? term : null;
  }

  #require(): HeldTerm {
    const term = this.#term();
    if (term) return term;
    throw this.#notLeader();
  }

  #notLeader(): BatonError {
    const { identity, peers } = this.#state;
    const leader = this.#state.leader.sighting()?.term.name ?? null;
    const known = leader ? `; ${leader} does` : ", nor is a leader known";
    return new BatonError("NOT_LEADER", `${identity.name} does not lead${known}`, {
      leader,
      leader_url: leader && peers.address(leader),
    });
  }

  async #add(name: NodeName, address: string): Promise<void> {
    if (await this.#change((set) => withMember(set, name, address)))
      this.#state.log.info({ peer: name, address }, "a node has joined");
  }

  /** The new set; null when the step changes nothing. */
  #change(step: (set: PeerSet) => PeerSet | null): Promise<PeerSet | null> {
    return this.#turn.run(async () => {
      const term = this.#require();
      let set = this.#state.peers.set!;
      if (step(set) === null) return null;
      await this.#beforeChange();
      if (this.#settled !== set || set.epoch !== term.epoch)
        set = await this.#settle(term, set, renumbered(set, term.epoch));
      const next = step(set);
      return next && this.#settle(term, set, next);
    });
  }

  /** The change is in force here at once, even before it is settled: a majority before and one after share a node. */
  async #settle(term: HeldTerm, before: PeerSet, next: PeerSet): Promise<PeerSet> {
    const { clock, identity, settings, voter, peers } = this.#state;
    const { name: self } = identity;
    const members = [...new Set([self, ...namesOf(before), ...namesOf(next)])];
    const addresses = new Map(members.map((name) => [name, peers.address(name) ?? next.members[name]]));
    const request = { ...this.#state.sender(), term, ttlMs: settings.leaseMs, peers: next };
    const verdict = await quorumRound<boolean, "settled" | "stale">({
      members,
      ask: async (peer, leftMs) => {
        if (peer === self) {
          await voter.note(next);
          return { got: "answer", value: true, node: identity };
        }
        const asked = await this.#calls.ask(peer, "members", request, leftMs, addresses.get(peer));
        return mapAnswer(asked, ({ noted }) => noted);
      },
      judge: ({ answers, over }) => {
        const count = (set: PeerSet, noted: boolean): number =>
          [...answers].filter(([name, has]) => has === noted && isMember(set, name)).length;
        const sets = [before, next].map((set) => ({ set, size: namesOf(set).length }));
        if (sets.every(({ set, size }) => count(set, true) >= majorityOf(size))) return "settled";
        // One voter that preferred another candidate does not end a term; a majority decides.
        const hopeless = sets.some(({ set, size }) => size - count(set, false) < majorityOf(size));
        return hopeless || (over && [...answers.values()].includes(false)) ? "stale" : null;
      },
      limit: {
        clock,
        self,
        deadlineMs: 2 * settings.heartbeatTimeoutMs,
        againMs: settings.heartbeatTimeoutMs / 2,
      },
    });
    if (verdict === "stale") throw this.#notLeader();
    if (verdict !== "settled") {
      throw new BatonError(
        "DEADLINE",
        "no majority has noted the change of members; it may still come about",
      );
    }
    this.#settled = next;
    return next;
  }

  #requireAgreed(): void {
    if (this.#state.peers.agreed) return;
    throw new BatonError(
      "FORBIDDEN",
      "the members of this cluster are a list in the configuration; change it there, on every node",
    );
  }

  /** A member that cannot be reached would only be missing from every majority. */
  async #meet(from: NodeIdentity, address: string): Promise<void> {
    const { identity, settings } = this.#state;
    const request = { from: identity, set: null, ...this.#state.presence() };
    const met = await this.#calls.ask(from.name, "heartbeat", request, settings.heartbeatTimeoutMs, address);
    const node = met.got === "answer" ? met.value.node : null;
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

const UNKNOWN = { incarnation: "" };

/** For a node that is no member any more. */
export function removedError(
  name: string,
  why: RemovedIncarnation["why"],
  peers: PeerSet | null,
): BatonError {
  const message = `${name} was removed from this cluster; start it again to join anew`;
  return new BatonError("FORBIDDEN", message, { removed: why, peers });
}
