/**
 * This node's vote. It decides by core/ballot.ts and answers only when what it promised is on disk.
 *
 * A decision is taken at once, in memory, and binds from then on; writes come one behind the other. If one fails the answer is
 * an error and the promise stays: a voter that cannot write promises nothing to anybody else either.
 */

import {
  BLANK,
  decidePromise,
  decideRelease,
  decideRenewal,
  holderOf,
  recollect,
  sameLife,
  voteAfterRestart,
  type Ballot,
  type Decision,
  type HeldTerm,
  type PromiseAsked,
  type RenewalAsked,
  type Vote,
} from "../../core/ballot.ts";
import type { Quorum } from "../../core/bully.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { compareSets, type PeerSet, type SetNumber } from "../../core/peer-set.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import { readMessage, voteRecord } from "./messages.ts";
import type { VoteFile } from "./vote-file.ts";

export interface VoterOptions {
  readonly identity: NodeIdentity;
  readonly file: VoteFile;
  readonly clock: Clock;
  readonly log: Log;
  readonly quorum: Quorum;
  readonly leaseMs: number;
  readonly gone: (life: NodeIdentity) => boolean;
  /** Another set of peers is in force. */
  readonly onSet: (before: PeerSet | null) => void;
}

export type Voice = "granted" | "acknowledged" | "denied" | "behind" | "abstains";

export class Voter {
  readonly #o: VoterOptions;
  #vote: Vote = { ...BLANK, until: -Infinity };
  #set: PeerSet | null = null;
  #votes = false;
  /** The highest epoch that the store knows: one that was a term is never promised again, whatever became of the file. */
  #floor = 0;
  #startedAt = 0;
  /** When it began to vote without a file; long ago where there was one. */
  #enteredAt = -Infinity;
  #heard: { readonly term: HeldTerm; readonly since: number; last: number } | null = null;
  #saving: Promise<void> = Promise.resolve();

  constructor(options: VoterOptions) {
    this.#o = options;
  }

  /** False for a voter that has forgotten what it promised, if it ever did. */
  get votes(): boolean {
    return this.#votes;
  }

  get ballot(): Ballot {
    const { epoch, to, ttlMs, released } = this.#vote;
    return { epoch, to, ttlMs, released };
  }

  /** The set of peers that this node has noted; null where none was ever agreed on. */
  get peers(): PeerSet | null {
    return this.#set;
  }

  get floor(): number {
    return this.#floor;
  }

  /** The store has admitted a term. */
  raiseFloor(epoch: number): void {
    this.#floor = Math.max(this.#floor, epoch);
  }

  /** The highest epoch that this node knows to be used up. */
  get epoch(): number {
    return Math.max(this.#vote.epoch, this.#floor, this.#set?.epoch ?? 0);
  }

  async load(floor: number): Promise<void> {
    const { identity, file, clock, log, quorum } = this.#o;
    this.#floor = floor;
    this.#startedAt = clock.monotonic();
    this.#heard = null;
    this.#enteredAt = -Infinity;
    this.#votes = false;
    this.#set = null;
    this.#vote = { ...BLANK, until: -Infinity };
    const text = await file.read();
    if (text !== null) {
      try {
        const { votes, ballot, set } = readMessage(voteRecord, text);
        this.#vote = voteAfterRestart(ballot, identity.name, clock.monotonic());
        this.#set = set;
        this.#votes = votes;
      } catch (error) {
        log.error({ err: error }, "the file of votes cannot be read; going on as if it were lost");
      }
    }
    // Whoever may lead alone does not wait for a lease that nobody else counts on.
    if (quorum === "none") {
      this.#votes = true;
      this.#vote = { ...this.#vote, until: -Infinity };
    }
  }

  /** For how long it has voted; for ever where it found its file. */
  get votingMs(): number {
    return this.#o.clock.monotonic() - this.#enteredAt;
  }

  /** Who holds the lease, by what this voter has promised and found out. */
  holder(): HeldTerm | null {
    return holderOf(this.#vote, this.#o.clock.monotonic(), this.#o.gone);
  }

  /** The same without evidence: who would hold it if nothing were known. */
  leaseholder(): HeldTerm | null {
    return holderOf(this.#vote, this.#o.clock.monotonic());
  }

  willing(candidate: NodeIdentity, set: SetNumber | null): boolean {
    const holder = this.holder();
    return this.#votes && !this.#outdated(set) && (holder === null || sameLife(holder, candidate));
  }

  async promise(asked: PromiseAsked, set: SetNumber | null): Promise<Voice> {
    if (!this.#votes) return "abstains";
    if (asked.epoch <= this.#floor || this.#outdated(set)) return "denied";
    return this.#settle(decidePromise(this.#vote, asked, this.#o.clock.monotonic(), this.holder()));
  }

  async renew(asked: RenewalAsked): Promise<Voice> {
    if (asked.granted) this.hear(asked.term);
    if (!this.#votes) return "abstains";
    const { quorum, clock } = this.#o;
    const { term } = asked;
    const rival = term.epoch === this.#vote.epoch && this.#vote.to !== null && !sameLife(this.#vote.to, term);
    if (quorum === "none" && rival && asked.granted) {
      // Two halves counted on by themselves. Neither number can be told from the other: both terms end, and the next is one.
      this.#vote = { ...this.#vote, released: true, until: -Infinity };
      return "denied";
    }
    return this.#settle(decideRenewal(this.#vote, asked, clock.monotonic()));
  }

  release(term: HeldTerm): void {
    this.#vote = decideRelease(this.#vote, term, this.#o.clock.monotonic());
  }

  /** What a voter without memory has learned of the others may be enough to vote. True when it was. */
  async recollect(
    voters: number,
    others: readonly { readonly votes: boolean; readonly ballot: Ballot }[],
  ): Promise<boolean> {
    if (this.#votes) return false;
    const { clock, leaseMs, log } = this.#o;
    const heard = this.#heard;
    const ballot = recollect({
      voters,
      others,
      upMs: clock.monotonic() - this.#startedAt,
      leader: heard ? ballotOf(heard.term, leaseMs) : BLANK,
      leaderHeardMs: heard ? heard.last - heard.since : 0,
      leaseMs,
    });
    if (!ballot) return false;
    await this.enter(ballot);
    log.info({ epoch: ballot.epoch }, "this node votes from now on");
    return true;
  }

  /**
   * Begins to vote, with what is known of earlier promises. A leader that was heard has a lease, though not from this voter:
   * together with others that are new it would be a majority that knows nothing of it.
   */
  async enter(known: Ballot = BLANK): Promise<void> {
    const { clock, identity, leaseMs } = this.#o;
    const heard = this.#heard ? ballotOf(this.#heard.term, leaseMs) : BLANK;
    const ballot = heard.epoch > known.epoch ? heard : known;
    if (ballot.epoch >= this.#vote.epoch) {
      this.#vote = voteAfterRestart(ballot, identity.name, clock.monotonic());
    }
    this.#votes = true;
    this.#enteredAt = clock.monotonic();
    await this.#save();
  }

  /** Takes over a set that is newer than ours. */
  async note(set: PeerSet): Promise<boolean> {
    const newer = this.#set === null || this.#set.cluster !== set.cluster || compareSets(set, this.#set) > 0;
    const before = this.#set;
    if (newer) {
      this.#set = set;
      this.#o.onSet(before);
    }
    // Also when it is ours already: the write may be under way.
    await this.#save();
    return newer;
  }

  /** A cluster of its own is given up for the one that it belongs to: nothing promised in it counts there. */
  async forget(): Promise<void> {
    this.#set = null;
    this.#votes = this.#o.quorum === "none";
    this.#startedAt = this.#o.clock.monotonic();
    await this.#save();
  }

  async idle(): Promise<void> {
    await this.#saving;
  }

  #outdated(set: SetNumber | null): boolean {
    return this.#set !== null && (set === null || compareSets(set, this.#set) < 0);
  }

  async #settle(decision: Decision): Promise<Voice> {
    if (decision.answer === "denied" || decision.answer === "behind") return decision.answer;
    this.#vote = decision.vote;
    if (decision.durable) await this.#save();
    return decision.answer;
  }

  /** A leader's word, also for a voter that does not vote yet. */
  hear(term: HeldTerm): void {
    const at = this.#o.clock.monotonic();
    const heard = this.#heard;
    const same = heard && heard.term.epoch === term.epoch && sameLife(heard.term, term);
    if (same && at - heard.last < this.#o.leaseMs) heard.last = at;
    else if (!heard || term.epoch >= heard.term.epoch) this.#heard = { term, since: at, last: at };
  }

  #save(): Promise<void> {
    const saved = this.#saving.then(() => {
      const record = { format: 1, votes: this.#votes, ballot: this.ballot, set: this.#set };
      return this.#o.file.write(`${JSON.stringify(record)}\n`);
    });
    this.#saving = saved.catch(() => {});
    return saved;
  }
}

function ballotOf({ name, incarnation, epoch }: HeldTerm, ttlMs: number): Ballot {
  return { epoch, to: { name, incarnation }, ttlMs, released: false };
}
