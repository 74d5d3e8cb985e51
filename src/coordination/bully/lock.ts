/**
 * The lock that the peers are together: a term is what a majority of voters has promised, each on its own disk.
 *
 * `acquire` polls first, so that an epoch is used up only by somebody who can win it, then asks for promises. What was
 * promised in vain is given back at once. `renew` is true when a majority acknowledges it, false when so many deny it that
 * none ever can, and rejects in between: the elector's trust window decides then.
 */

import { sameLife, type HeldTerm } from "../../core/ballot.ts";
import {
  compareNames,
  judgePoll,
  judgePromises,
  judgeRenewal,
  type Heard,
  type PollAnswer,
  type PromiseAnswer,
  type RenewalAnswer,
} from "../../core/bully.ts";
import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { termFields, type LeaderRole, type Term } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { LeaseLock, Tenure } from "../coordination.ts";
import type { LeaderView } from "./leader-view.ts";
import type { ElectionAnswer, VoteAnswer } from "./messages.ts";
import { askAround } from "./round.ts";
import type { BullySettings } from "./settings.ts";
import type { Standing } from "./standing.ts";
import type { Ask, Ballots } from "./ballots.ts";

export interface BullyLockOptions {
  readonly role: LeaderRole;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: BullySettings;
  readonly view: LeaderView;
  readonly standing: Standing;
  readonly ballots: Ballots;
  /** Everybody whose vote counts, ourselves among them; empty while this node belongs to no cluster. */
  readonly voters: () => readonly NodeName[];
  /** Heard of lately. */
  readonly alive: (peer: NodeName) => boolean;
  /** Nobody has ever led, and more voters may be about to come: electing now would leave them without a vote for a lease. */
  readonly gathering: () => boolean;
  /** Into the store of this node; false when it knows a later one. */
  readonly admit: (term: Term) => Promise<boolean>;
  /** Throws when the coordination does not run. */
  readonly usable: () => void;
}

/** A question that was not answered is asked again so many times within its deadline. */
const ATTEMPTS = 4;

export class BullyLock implements LeaseLock {
  readonly #o: BullyLockOptions;
  /** Terms that a majority has granted through this lock, and when; only the newest can be valid. */
  #granted: { readonly term: HeldTerm; readonly acquiredAt: number } | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: BullyLockOptions) {
    this.#o = options;
  }

  /** One attempt at a time: two of this node would only take votes from each other. */
  acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    const attempt = this.#turn.then(() => this.#attempt(candidate, ttlMs));
    this.#turn = attempt.catch(() => {});
    return attempt;
  }

  async renew(term: Term, ttlMs: number): Promise<boolean> {
    const { usable, clock, settings, ballots, view, identity } = this.#o;
    usable();
    const held = heldTerm(term);
    const voters = this.#o.voters();
    if (!voters.includes(identity.name)) {
      // Removed, perhaps by itself. The others wait for nothing but this word, and hear it when the holder has heard ours.
      setImmediate(() => void this.release(term).catch(() => {}));
      return false;
    }
    const granted = this.#granted !== null && sameHeld(this.#granted.term, held);
    const acquiredAt = granted ? this.#granted!.acquiredAt : clock.now();
    const sentAt = clock.monotonic();
    let floor = 0;
    const answerOf = (answer: VoteAnswer): RenewalAnswer => {
      floor = Math.max(floor, answer.floor);
      return renewalAnswer(answer.answer);
    };
    const { verdict } = await this.#round<RenewalAnswer, boolean>(voters, settings.heartbeatTimeoutMs, {
      own: async () => answerOf(await ballots.own({ op: "renew", term: held, ttlMs, granted, acquiredAt })),
      ask: (peer) => (deadlineMs) =>
        ballots.vote(peer, { op: "renew", term: held, ttlMs, granted, acquiredAt }, deadlineMs, answerOf),
      judge: judgeRenewal,
      awaited: this.#reachable(voters),
    });
    if (verdict === null) {
      throw new BatonError("DEADLINE", `no majority of ${voters.length} peers confirmed term ${term.epoch}`);
    }
    // A member's store knows a later term, of an earlier cluster perhaps: it would refuse what this one writes.
    const outgrown = floor > term.epoch;
    if (verdict && !outgrown) view.note({ term: held, acquiredAt, until: sentAt + ttlMs });
    else view.end(held);
    return verdict && !outgrown;
  }

  async release(term: Term): Promise<void> {
    const { usable, ballots, view, standing, identity } = this.#o;
    usable();
    const held = heldTerm(term);
    if (term.leader === identity.name) standing.rest();
    view.end(held);
    await ballots.own({ op: "release", term: held });
    await this.#giveBack(held);
    standing.hint();
  }

  async read(): Promise<Term | null> {
    this.#o.usable();
    return this.#o.view.current();
  }

  async tenure(): Promise<Tenure | null> {
    this.#o.usable();
    return this.#o.view.tenure();
  }

  released(signal: AbortSignal): AsyncIterable<void> {
    return this.#o.standing.hints(signal);
  }

  async #attempt(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    const { usable, identity, standing, view, ballots, clock } = this.#o;
    usable();
    const own = sameLife(candidate, identity);
    if (own) standing.stand();
    const voters = this.#o.voters();
    if (!voters.includes(identity.name) || !ballots.votes || this.#o.gathering()) return null;
    const leading = view.sighting();
    if (leading && !sameLife(leading.term, candidate)) return null;
    const poll = await this.#poll(candidate, own, voters);
    if (poll.verdict !== "stand") return null;
    const sentAt = clock.monotonic();
    const term: HeldTerm = { ...candidate, epoch: poll.epoch + 1 };
    if (!(await this.#promises(term, ttlMs, voters))) {
      await ballots.own({ op: "release", term });
      void this.#giveBack(term);
      return null;
    }
    return this.#begin(term, ttlMs, sentAt);
  }

  async #poll(candidate: NodeIdentity, own: boolean, voters: readonly NodeName[]) {
    const { ballots, standing, settings, identity, alive } = this.#o;
    let epoch = ballots.epoch;
    const answerOf =
      (peer: NodeName) =>
      (answer: ElectionAnswer): PollAnswer => {
        epoch = Math.max(epoch, answer.epoch);
        const stands = own && answer.stands && standing.standsBackFor(peer);
        return { willing: answer.willing && answer.votes, stands };
      };
    const above = (peer: NodeName): boolean => compareNames(peer, identity.name, settings.order) > 0;
    const heeded = voters.filter(
      (peer) => alive(peer) && (settings.quorum === "none" || (own && above(peer))),
    );
    const { verdict } = await this.#round(voters, settings.electionTimeoutMs, {
      own: async () => ({ willing: ballots.willing(candidate), stands: false }),
      ask: (peer) => (deadlineMs) => ballots.poll(peer, candidate, deadlineMs, answerOf(peer)),
      judge: judgePoll,
      awaited: heeded,
    });
    return { verdict, epoch };
  }

  async #promises(term: HeldTerm, ttlMs: number, voters: readonly NodeName[]): Promise<boolean> {
    const { ballots, settings } = this.#o;
    const { name, incarnation, epoch } = term;
    const question = { op: "promise", candidate: { name, incarnation }, epoch, ttlMs } as const;
    const answerOf = ({ answer }: VoteAnswer): PromiseAnswer => (answer === "granted" ? "granted" : "denied");
    const { verdict } = await this.#round<PromiseAnswer, "won" | "lost">(voters, settings.electionTimeoutMs, {
      own: async () => answerOf(await ballots.own(question)),
      ask: (peer) => (deadlineMs) => ballots.vote(peer, question, deadlineMs, answerOf),
      judge: judgePromises,
      awaited: this.#reachable(voters),
    });
    return verdict === "won";
  }

  async #begin(held: HeldTerm, ttlMs: number, sentAt: number): Promise<Term | null> {
    const { clock, view, admit, log, role, ballots } = this.#o;
    const acquiredAt = clock.now();
    const term: Term = { role, leader: held.name, incarnation: held.incarnation, epoch: held.epoch };
    if (!(await admit(term))) {
      log.warn(termFields(term), "the store of this node knows a later term; trying again above it");
      await ballots.own({ op: "release", term: held });
      void this.#giveBack(held);
      return null;
    }
    this.#granted = { term: held, acquiredAt };
    view.note({ term: held, acquiredAt, until: sentAt + ttlMs });
    for (const peer of this.#others()) void ballots.announce(peer, { term: held, ttlMs, acquiredAt });
    return term;
  }

  /** Waits until everybody who can be reached knows, and no longer than one call takes. */
  async #giveBack(term: HeldTerm): Promise<void> {
    const { ballots, settings, alive } = this.#o;
    const tell = (peer: NodeName) =>
      ballots.vote(peer, { op: "release", term }, settings.electionTimeoutMs, () => "released" as const);
    const told = this.#others().map((peer) => [alive(peer), tell(peer)] as const);
    await Promise.all(told.filter(([alive]) => alive).map(([, answered]) => answered));
  }

  #others(): readonly NodeName[] {
    return this.#o.voters().filter((peer) => peer !== this.#o.identity.name);
  }

  #reachable(voters: readonly NodeName[]): readonly NodeName[] {
    return voters.filter((peer) => this.#o.alive(peer));
  }

  #round<Answer, Verdict>(
    voters: readonly NodeName[],
    deadlineMs: number,
    how: {
      own: () => Promise<Answer>;
      ask: (peer: NodeName) => Ask<Answer>;
      judge: (round: {
        quorum: BullySettings["quorum"];
        voters: number;
        answers: ReadonlyMap<NodeName, Heard<Answer>>;
        awaited: readonly NodeName[];
        over: boolean;
      }) => Verdict | null;
      awaited: readonly NodeName[];
    },
  ) {
    const { clock, identity, settings } = this.#o;
    return askAround<Answer, Verdict>({
      clock,
      self: identity.name,
      others: voters.filter((peer) => peer !== identity.name),
      own: how.own,
      ask: (peer, leftMs) => how.ask(peer)(leftMs),
      judge: (round) =>
        how.judge({ ...round, quorum: settings.quorum, voters: voters.length, awaited: how.awaited }),
      deadlineMs,
      againMs: deadlineMs / ATTEMPTS,
    });
  }
}

function heldTerm({ leader, incarnation, epoch }: Term): HeldTerm {
  return { name: leader, incarnation, epoch };
}

function sameHeld(a: HeldTerm, b: HeldTerm): boolean {
  return a.epoch === b.epoch && sameLife(a, b);
}

function renewalAnswer(answer: VoteAnswer["answer"]): RenewalAnswer {
  if (answer === "acknowledged" || answer === "denied" || answer === "behind") return answer;
  return "abstains";
}
