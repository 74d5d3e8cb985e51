/**
 * Changes of the set that the members have agreed on, see core/peer-set.ts. The leader makes them, one behind the other, and
 * one counts when a majority of the set before and of the set after it have noted it on their disks.
 */

import type { HeldTerm } from "../../core/ballot.ts";
import { majorityOf } from "../../core/bully.ts";
import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import {
  compareSets,
  isMember,
  namesOf,
  renumbered,
  withMember,
  withoutMember,
  type PeerSet,
  type RemovedLife,
} from "../../core/peer-set.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { LeaderView } from "./leader-view.ts";
import { noteAnswer, PATHS } from "./messages.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Roster } from "./roster.ts";
import { askAround } from "./round.ts";
import type { BullySettings } from "./settings.ts";
import type { Voter } from "./voter.ts";

export interface MembersOptions {
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: BullySettings;
  readonly roster: Roster;
  readonly voter: Voter;
  readonly view: LeaderView;
  readonly calls: PeerCalls;
}

type Noted = "noted" | "denied";

export class Members {
  readonly #o: MembersOptions;
  /** The set that a majority is known to have noted under our own term. */
  #settled: PeerSet | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: MembersOptions) {
    this.#o = options;
  }

  /** Our own term, or NOT_LEADER with whoever leads. */
  require(): HeldTerm {
    const { view, identity } = this.#o;
    const term = view.sighting()?.term ?? null;
    if (term && term.name === identity.name && term.incarnation === identity.incarnation) return term;
    throw this.notLeader();
  }

  notLeader(): BatonError {
    const { view, identity, roster } = this.#o;
    const leader = view.sighting()?.term.name ?? null;
    const url = leader && roster.address(leader);
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
    if (added) this.#o.log.info({ peer: name, address }, "a node has joined");
    return added;
  }

  /** False when it was no member. */
  async remove(life: RemovedLife): Promise<boolean> {
    const address = this.#o.roster.address(life.name as NodeName);
    let removed = false;
    const set = await this.#change((set) => {
      const next = withoutMember(set, life);
      if (next && namesOf(next).length === 0) {
        throw new BatonError(
          "BAD_REQUEST",
          `${life.name} is the last member of its cluster; stop it instead`,
        );
      }
      removed = next !== null;
      return next;
    });
    if (!removed) return false;
    this.#o.log.warn({ peer: life.name, why: life.why }, "a node was removed from the cluster");
    if (address !== null && life.name !== this.#o.identity.name) void this.#tell(life, address, set);
    return true;
  }

  /** A leader's word of a change; false when it is not the leader any more. */
  async noted(term: HeldTerm, ttlMs: number, set: PeerSet): Promise<boolean> {
    const { voter } = this.#o;
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

  /** It is in force here from the first moment, whether or not it is settled: a majority before and after share a node. */
  async #settle(term: HeldTerm, before: PeerSet, next: PeerSet): Promise<PeerSet> {
    const { clock, identity, settings, voter, roster } = this.#o;
    const names = new Set([...namesOf(before), ...namesOf(next)]);
    names.delete(identity.name);
    const addresses = new Map([...names].map((name) => [name, roster.address(name) ?? next.members[name]!]));
    const { verdict } = await askAround<Noted, "settled" | "stale">({
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
    const { identity, roster, calls, settings } = this.#o;
    const body = {
      op: "note",
      from: identity,
      set: roster.number,
      term,
      ttlMs: settings.leaseMs,
      peers,
    };
    const asked = await calls.askAt(peer, address, PATHS.join, body, noteAnswer, { deadlineMs });
    if (!("answer" in asked)) return null;
    return asked.answer.noted ? "noted" : "denied";
  }

  /** It finds out sooner or later, by what others answer; this makes it sooner. */
  async #tell(life: RemovedLife, address: string, peers: PeerSet): Promise<void> {
    const { calls, identity, settings } = this.#o;
    const options = { deadlineMs: settings.heartbeatTimeoutMs, to: life.name as NodeName };
    await calls.call(address, PATHS.remove, { op: "told", from: identity, peers }, options);
  }

  #set(): PeerSet {
    const set = this.#o.roster.set;
    if (set) return set;
    throw new BatonError(
      "BAD_REQUEST",
      "the members of this cluster are a list in the configuration; change it there, on every node",
    );
  }
}
