/**
 * Changes of the agreed peer set, see core/leadership/peer-set.ts. The leader makes them, one after the other. A change
 * counts when a majority of the set before and of the set after it have stored it on their disks.
 */

import { sameIncarnation, type HeldTerm } from "../../../core/leadership/vote-rules.ts";
import { majorityOf } from "../../../core/leadership/bully.ts";
import { BatonError } from "../../../core/errors.ts";
import type { NodeName } from "../../../core/ids.ts";
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
import { askPeers } from "../election/ask-peers.ts";
import { noteAnswer, PATHS } from "../messages.ts";
import type { PeerCalls } from "../peer-calls.ts";
import type { PeerState } from "../peer-state.ts";

type Noted = "noted" | "denied";

export class MemberChanges {
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  /** The set that a majority is known to have noted under our own term. */
  #settled: PeerSet | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(state: PeerState, calls: PeerCalls) {
    this.#state = state;
    this.#calls = calls;
  }

  /** Our own term, if this node leads. */
  term(): HeldTerm | null {
    const term = this.#state.leader.sighting()?.term ?? null;
    return term && sameIncarnation(term, this.#state.identity) ? term : null;
  }

  /** Our own term, or NOT_LEADER with the name of the leader. */
  require(): HeldTerm {
    const term = this.term();
    if (term) return term;
    throw this.notLeader();
  }

  notLeader(): BatonError {
    const { identity, peers } = this.#state;
    const leader = this.#state.leader.sighting()?.term.name ?? null;
    const url = leader && peers.address(leader);
    return new BatonError(
      "NOT_LEADER",
      leader
        ? `${identity.name} does not lead; ${leader} does`
        : `${identity.name} does not lead, nor is a leader known`,
      { leader, leader_url: url },
    );
  }

  /** False when it was a member at this address already. */
  async add(name: NodeName, address: string): Promise<boolean> {
    let added = false;
    await this.#change((set) => {
      const next = withMember(set, name, address);
      added = next !== null;
      return next;
    });
    if (added) this.#state.log.info({ peer: name, address }, "a node has joined");
    return added;
  }

  /** False when it was not a member. */
  async remove(node: RemovedIncarnation): Promise<boolean> {
    const { peers, log, identity } = this.#state;
    const address = peers.address(node.name as NodeName);
    let removed = false;
    const set = await this.#change((set) => {
      const next = withoutMember(set, node);
      if (next && namesOf(next).length === 0) {
        throw new BatonError(
          "BAD_REQUEST",
          `${node.name} is the last member of its cluster; stop it instead`,
        );
      }
      removed = next !== null;
      return next;
    });
    if (!removed) return false;
    log.warn({ peer: node.name, why: node.why }, "a node was removed from the cluster");
    if (address !== null && node.name !== identity.name) void this.#notify(node, address, set);
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

  #change(step: (set: PeerSet) => PeerSet | null): Promise<PeerSet> {
    const changed = this.#turn.then(async () => {
      const term = this.require();
      let set = this.#set();
      if (step(set) === null) return set;
      if (this.#settled !== set || set.epoch !== term.epoch)
        set = await this.#settle(term, set, renumbered(set, term.epoch));
      const next = step(set);
      return next ? this.#settle(term, set, next) : set;
    });
    this.#turn = changed.catch(() => {});
    return changed;
  }

  /** The change is in force here at once, even before it is settled: a majority before and one after share a node. */
  async #settle(term: HeldTerm, before: PeerSet, next: PeerSet): Promise<PeerSet> {
    const { clock, identity, settings, voter, peers } = this.#state;
    const names = new Set([...namesOf(before), ...namesOf(next)]);
    names.delete(identity.name);
    const addresses = new Map([...names].map((name) => [name, peers.address(name) ?? next.members[name]!]));
    const { verdict } = await askPeers<Noted, "settled" | "stale">({
      clock,
      self: identity.name,
      others: [...names],
      own: async () => {
        await voter.note(next);
        return "noted";
      },
      ask: (peer, deadlineMs) => this.#ask(peer, addresses.get(peer)!, term, next, deadlineMs),
      judge: ({ answers }) => {
        const noted = (set: PeerSet): boolean =>
          [...answers].filter(([name, answer]) => answer === "noted" && isMember(set, name)).length >=
          majorityOf(namesOf(set).length);
        if (noted(before) && noted(next)) return "settled";
        return [...answers.values()].includes("denied") ? "stale" : null;
      },
      deadlineMs: 2 * settings.heartbeatTimeoutMs,
      againMs: settings.heartbeatTimeoutMs / 2,
    });
    if (verdict === "stale") throw this.notLeader();
    if (verdict !== "settled") {
      throw new BatonError(
        "DEADLINE",
        "no majority has noted the change of members; it may still come about",
      );
    }
    this.#settled = next;
    return next;
  }

  async #ask(
    peer: NodeName,
    address: string,
    term: HeldTerm,
    peers: PeerSet,
    deadlineMs: number,
  ): Promise<Noted | null> {
    const { identity, settings } = this.#state;
    const set = this.#state.peers.number;
    const body = { op: "note", from: identity, set, term, ttlMs: settings.leaseMs, peers };
    const asked = await this.#calls.askAt(peer, address, PATHS.join, body, noteAnswer, { deadlineMs });
    if (!("answer" in asked)) return null;
    return asked.answer.noted ? "noted" : "denied";
  }

  /** The removed node would also learn it from the answers of its peers, but later. */
  async #notify(node: RemovedIncarnation, address: string, peers: PeerSet): Promise<void> {
    const { identity, settings } = this.#state;
    const options = { deadlineMs: settings.heartbeatTimeoutMs, to: node.name as NodeName };
    await this.#calls.call(address, PATHS.remove, { op: "removed", from: identity, peers }, options);
  }

  #set(): PeerSet {
    const { set } = this.#state.peers;
    if (set) return set;
    throw new BatonError(
      "BAD_REQUEST",
      "the members of this cluster are a list in the configuration; change it there, on every node",
    );
  }
}
