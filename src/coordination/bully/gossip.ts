/** What this node tells of itself, and what it makes of what others tell. */

import type { Ballot } from "../../core/ballot.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity, NodeStatus, OwnInfo } from "../../core/node.ts";
import type { PeerSet } from "../../core/peer-set.ts";
import type { LeaderRole, Term } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { Evidence } from "./evidence.ts";
import type { LeaderView } from "./leader-view.ts";
import type { HeartbeatAnswer, Presence } from "./messages.ts";
import type { PeerBook } from "./peer-book.ts";
import type { Roster } from "./roster.ts";
import type { Voter } from "./voter.ts";

export interface GossipOptions {
  readonly role: LeaderRole;
  readonly identity: NodeIdentity;
  readonly info: () => OwnInfo;
  readonly address: () => string | null;
  /** Of the join server of this node. */
  readonly manager: () => string | null;
  readonly status: () => NodeStatus;
  readonly clock: Clock;
  readonly log: Log;
  readonly roster: Roster;
  readonly voter: Voter;
  readonly view: LeaderView;
  readonly book: PeerBook;
  readonly evidence: Evidence;
  readonly admit: (term: Term) => Promise<boolean>;
  readonly adopt: (set: PeerSet) => Promise<void>;
  /** Asks a peer how it is. */
  readonly greet: (peer: NodeName) => Promise<void>;
  /** This node votes from now on: others may have waited for nothing else. */
  readonly onVoting: () => void;
  /** Another one does. */
  readonly onVoter: () => void;
}

export class Gossip {
  readonly #o: GossipOptions;
  #beat = 0;
  /** What others have answered in this life; what they call out may have been on its way since before. */
  readonly #votes = new Map<NodeName, { readonly votes: boolean; readonly ballot: Ballot }>();

  constructor(options: GossipOptions) {
    this.#o = options;
  }

  presence(): Presence {
    const { identity, roster, voter, view, clock } = this.#o;
    const seen = view.sighting();
    const leftMs = seen ? seen.until - clock.monotonic() : 0;
    const { roles, capabilities, ...info } = this.#o.info();
    return {
      node: identity,
      beat: ++this.#beat,
      address: this.#o.address(),
      manager: this.#o.manager(),
      info: { ...info, roles: [...roles], capabilities: [...capabilities] },
      status: this.#o.status(),
      hash: roster.hash,
      cluster: roster.set?.cluster ?? null,
      votes: voter.votes,
      ballot: voter.ballot,
      leader: seen && leftMs > 0 ? { term: seen.term, leftMs, acquiredAt: seen.acquiredAt } : null,
    };
  }

  /** A new life of this node has heard of nobody. */
  begin(): void {
    this.#votes.clear();
  }

  /** From a member that calls us. One that we have not heard before is asked at once, and not with the next heartbeat. */
  hearCall(told: Presence): void {
    const { book, greet } = this.#o;
    const known = book.alive(told.node.name);
    this.#hear(told);
    if (!known && told.status !== "dead") void greet(told.node.name);
  }

  #hear(told: Presence): void {
    const { book, evidence, roster, onVoter } = this.#o;
    const voted = book.entry(told.node.name)?.presence.votes ?? false;
    book.note(told);
    if (told.votes && !voted) onVoter();
    evidence.heard(told.node);
    if (told.address !== null) roster.moved(told.node.name, told.address);
    if (told.leader) this.#hearOfLeader(told.leader);
  }

  async hearAnswer(answer: HeartbeatAnswer): Promise<void> {
    const { roster, adopt, log } = this.#o;
    if (roster.agreed && answer.cluster !== (roster.set?.cluster ?? null)) return;
    this.#hear(answer);
    this.#votes.set(answer.node.name, { votes: answer.votes, ballot: answer.ballot });
    try {
      if (answer.peers) await adopt(answer.peers);
    } catch (error) {
      log.error({ err: error }, "the members of the cluster cannot be noted");
    }
    await this.tryToVote();
  }

  /** Whether all that count vote, as far as they have told. */
  get complete(): boolean {
    const { roster, book } = this.#o;
    return roster.others().every((name) => book.entry(name)?.presence.votes);
  }

  async tryToVote(): Promise<void> {
    const { roster, voter, identity, log, onVoting } = this.#o;
    const voters = roster.names();
    if (voter.votes || !voters.includes(identity.name)) return;
    const others = roster.others().flatMap((name) => this.#votes.get(name) ?? []);
    try {
      if (await voter.recollect(voters.length, others)) onVoting();
    } catch (error) {
      log.error({ err: error }, "the votes of this node cannot be written; it does not vote");
    }
  }

  #hearOfLeader({ term, leftMs, acquiredAt }: NonNullable<Presence["leader"]>): void {
    const { identity, view, clock, role, admit } = this.#o;
    // Nobody else can tell us that we lead.
    if (term.incarnation === identity.incarnation) return;
    const known = term.epoch <= view.epoch;
    if (!view.note({ term, acquiredAt, until: clock.monotonic() + leftMs }) || known) return;
    void admit({ role, leader: term.name, incarnation: term.incarnation, epoch: term.epoch });
  }
}
