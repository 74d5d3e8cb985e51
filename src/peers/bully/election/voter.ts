/**
 * This node's vote, and the set of peers that it has stored. It decides by core/leadership/vote-rules.ts and answers only
 * when its promise is on disk. A decision is binding at once, in memory: if its write fails, the answer is an error and
 * the promise remains.
 */

import { join } from "node:path";
import {
  BLANK,
  decidePromise,
  decideRelease,
  decideRenewal,
  holderOf,
  recollect,
  sameIncarnation,
  voteAfterRestart,
  type Ballot,
  type Decision,
  type HeldTerm,
  type PromiseAsked,
  type RenewalAsked,
  type Vote,
} from "../../../core/leadership/vote-rules.ts";
import type { NodeIdentity } from "../../../core/node.ts";
import { compareSets, type PeerSet, type SetNumber } from "../../../core/leadership/peer-set.ts";
import { termFields, type Term } from "../../../core/leadership/term.ts";
import { Mutex } from "../../../platform/loop.ts";
import type { Platform } from "../../../platform/platform.ts";
import type { TermStore } from "../../../store/store.ts";
import { voteRecord } from "../../rpc/bully-messages.ts";
import { readMessage } from "../../rpc/peer-rpc.ts";
import type { BullySettings } from "../peer-state.ts";
import { ROLE } from "../leader-view.ts";
import type { PeerEvents, Presences } from "../presences.ts";

export const VOTE_FILE = "votes.json";

export type VoteReply = "granted" | "acknowledged" | "denied" | "behind" | "abstains";

interface VoterOptions extends Pick<Platform, "identity" | "clock" | "log" | "files"> {
  readonly dir: string;
  readonly terms: TermStore;
  readonly settings: Pick<BullySettings, "quorum" | "leaseMs">;
  readonly presences: Presences;
  readonly events: PeerEvents;
}

export class Voter {
  readonly #o: VoterOptions;
  readonly #path: string;
  #vote: Vote = { ...BLANK, until: -Infinity };
  #set: PeerSet | null = null;
  #votes = false;
  #caughtUp = "";
  /** The highest epoch that the store knows: it is never promised again, even if the file was lost. */
  #floor = 0;
  #startedAt = 0;
  /** When it began to vote without a file; -Infinity if it found one. */
  #enteredAt = -Infinity;
  #heard: { readonly term: HeldTerm; readonly since: number; last: number } | null = null;
  readonly #saving = new Mutex();

  constructor(options: VoterOptions) {
    this.#o = options;
    this.#path = join(options.dir, VOTE_FILE);
  }

  /** False for a voter that has lost the record of its promises. */
  get votes(): boolean {
    return this.#votes;
  }

  get ballot(): Ballot {
    const { epoch, to, ttlMs, released } = this.#vote;
    return { epoch, to, ttlMs, released };
  }

  get peers(): PeerSet | null {
    return this.#set;
  }

  /** The membership (`entryOf`) in which a leader has brought the notes of this node up to date. */
  get caughtUp(): string {
    return this.#caughtUp;
  }

  async catchUp(entry: string): Promise<void> {
    if (this.#caughtUp === entry) return;
    this.#caughtUp = entry;
    await this.#save();
  }

  get floor(): number {
    return this.#floor;
  }

  /** Asks the store to admit a term. False when it knows a later one, or does not answer. */
  async admit(term: Term): Promise<boolean> {
    const { log } = this.#o;
    try {
      const admitted = await this.#o.terms.admit(term);
      const epoch = admitted ? term.epoch : ((await this.#o.terms.read(ROLE))?.epoch ?? 0);
      this.#floor = Math.max(this.#floor, epoch);
      return admitted;
    } catch (error) {
      log.warn({ ...termFields(term), err: error }, "the store could not note a leader's term");
      return false;
    }
  }

  /** The highest epoch that this node knows to be used up. */
  get epoch(): number {
    return Math.max(this.#vote.epoch, this.#floor, this.#set?.epoch ?? 0);
  }

  async load(): Promise<void> {
    const { identity, files, clock, log } = this.#o;
    this.#floor = (await this.#o.terms.read(ROLE))?.epoch ?? 0;
    this.#startedAt = clock.monotonic();
    this.#heard = null;
    this.#enteredAt = -Infinity;
    this.#votes = false;
    this.#set = null;
    this.#caughtUp = "";
    this.#vote = { ...BLANK, until: -Infinity };
    const text = await files.read(this.#path);
    if (text !== null) {
      try {
        const { votes, ballot, set, caughtUp } = readMessage(voteRecord, text);
        this.#vote = voteAfterRestart(ballot, identity.name, clock.monotonic());
        this.#set = set;
        this.#votes = votes;
        this.#caughtUp = caughtUp;
      } catch (error) {
        log.error({ err: error }, "the file of votes cannot be read; going on as if it were lost");
      }
    }
    // A node that may lead alone does not wait for the end of a lease that no other node relies on.
    if (this.#o.settings.quorum === "none") {
      this.#votes = true;
      this.#vote = { ...this.#vote, until: -Infinity };
    }
  }

  /** Infinity if it found its file. */
  get votingMs(): number {
    return this.#o.clock.monotonic() - this.#enteredAt;
  }

  /** The holder of the lease, by the promises of this voter and the evidence of this node. */
  holder(): HeldTerm | null {
    const at = this.#o.clock.monotonic();
    return holderOf(this.#vote, at, (node) => this.#o.presences.gone(node));
  }

  willing(candidate: NodeIdentity, set: SetNumber | null): boolean {
    const holder = this.holder();
    return this.#votes && !this.#outdated(set) && (holder === null || sameIncarnation(holder, candidate));
  }

  async promise(asked: PromiseAsked, set: SetNumber | null): Promise<VoteReply> {
    if (!this.#votes) return "abstains";
    if (asked.epoch <= this.#floor || this.#outdated(set)) return "denied";
    return this.#settle(decidePromise(this.#vote, asked, this.#o.clock.monotonic(), this.holder()));
  }

  async renew(asked: RenewalAsked): Promise<VoteReply> {
    if (asked.granted) this.hear(asked.term);
    if (!this.#votes) return "abstains";
    const { term } = asked;
    const rival =
      term.epoch === this.#vote.epoch && this.#vote.to !== null && !sameIncarnation(this.#vote.to, term);
    if (this.#o.settings.quorum === "none" && rival && asked.granted) {
      // Both halves of a split cluster used this epoch. Both terms end, and the next epoch belongs to one.
      this.#vote = { ...this.#vote, released: true, until: -Infinity };
      return "denied";
    }
    return this.#settle(decideRenewal(this.#vote, asked, this.#o.clock.monotonic()));
  }

  release(term: HeldTerm): void {
    this.#vote = decideRelease(this.#vote, term, this.#o.clock.monotonic());
  }

  /** Lets a voter without a record vote if it has learned enough from the others. True when it votes now. */
  async recollect(
    voters: number,
    others: readonly { readonly votes: boolean; readonly ballot: Ballot }[],
  ): Promise<boolean> {
    if (this.#votes) return false;
    const { clock, log } = this.#o;
    const { leaseMs } = this.#o.settings;
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

  /** The lease of a leader that was heard counts too: otherwise several new voters could be a majority that knows nothing of it. */
  async enter(known: Ballot = BLANK): Promise<void> {
    const { clock, identity } = this.#o;
    const heard = this.#heard ? ballotOf(this.#heard.term, this.#o.settings.leaseMs) : BLANK;
    const ballot = heard.epoch > known.epoch ? heard : known;
    if (ballot.epoch >= this.#vote.epoch) {
      this.#cast(voteAfterRestart(ballot, identity.name, clock.monotonic()));
    }
    this.#votes = true;
    this.#enteredAt = clock.monotonic();
    await this.#save();
  }

  async note(set: PeerSet): Promise<boolean> {
    const newer = this.#set === null || this.#set.cluster !== set.cluster || compareSets(set, this.#set) > 0;
    const before = this.#set;
    if (newer) {
      this.#set = set;
      this.#o.events.emit("peers", before);
    }
    // Also when it is ours already: the write may be under way.
    await this.#save();
    return newer;
  }

  /** Leaves a cluster that this node founded by mistake: its promises there count nowhere else. */
  async forget(): Promise<void> {
    this.#set = null;
    this.#caughtUp = "";
    this.#votes = this.#o.settings.quorum === "none";
    this.#startedAt = this.#o.clock.monotonic();
    await this.#save();
  }

  idle(): Promise<void> {
    return this.#saving.idle();
  }

  #outdated(set: SetNumber | null): boolean {
    return this.#set !== null && (set === null || compareSets(set, this.#set) < 0);
  }

  async #settle(decision: Decision): Promise<VoteReply> {
    if (decision.answer === "denied" || decision.answer === "behind") return decision.answer;
    this.#cast(decision.vote);
    if (decision.durable) await this.#save();
    return decision.answer;
  }

  #cast(vote: Vote): void {
    if (vote.to && vote.epoch !== this.#vote.epoch) this.#o.presences.trust(vote.to);
    this.#vote = vote;
  }

  /** A leader was heard; this matters also to a voter that does not vote yet. */
  hear(term: HeldTerm): void {
    const at = this.#o.clock.monotonic();
    const heard = this.#heard;
    const same = heard && heard.term.epoch === term.epoch && sameIncarnation(heard.term, term);
    if (same && at - heard.last < this.#o.settings.leaseMs) heard.last = at;
    else if (!heard || term.epoch >= heard.term.epoch) this.#heard = { term, since: at, last: at };
  }

  #save(): Promise<void> {
    return this.#saving.run(() => {
      const { ballot } = this;
      const record = { format: 1, votes: this.#votes, ballot, set: this.#set, caughtUp: this.#caughtUp };
      return this.#o.files.replace(this.#path, `${JSON.stringify(record)}\n`);
    });
  }
}

function ballotOf({ name, incarnation, epoch }: HeldTerm, ttlMs: number): Ballot {
  return { epoch, to: { name, incarnation }, ttlMs, released: false };
}
