/** Questions to voters, our own among them: those of candidates, of leaders, and the word of a leader that it leads. */

import type { z } from "zod";
import type { HeldTerm } from "../../core/ballot.ts";
import type { Heard } from "../../core/bully.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { SetNumber } from "../../core/peer-set.ts";
import type { LeaderRole, Term } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Evidence } from "./evidence.ts";
import type { LeaderView } from "./leader-view.ts";
import {
  electionAnswer,
  PATHS,
  voteAnswer,
  type ElectionAnswer,
  type VoteAnswer,
  type VoteAsked,
} from "./messages.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Roster } from "./roster.ts";
import type { Standing } from "./standing.ts";
import type { Voter } from "./voter.ts";

export interface BallotsOptions {
  readonly role: LeaderRole;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly voter: Voter;
  readonly view: LeaderView;
  readonly evidence: Evidence;
  readonly standing: Standing;
  readonly roster: Roster;
  readonly calls: PeerCalls;
  readonly callMs: number;
  readonly admit: (term: Term) => Promise<boolean>;
}

type WithoutSender<Message> = Message extends unknown ? Omit<Message, "from" | "set"> : never;
export type VoteQuestion = WithoutSender<VoteAsked>;
export type Ask<Answer> = (deadlineMs: number) => Promise<Heard<Answer> | null>;

export interface Announcement {
  readonly term: HeldTerm;
  readonly ttlMs: number;
  readonly acquiredAt: number;
}

export class Ballots {
  readonly #o: BallotsOptions;
  /** Words of leaders whose terms were over when they came. */
  late = 0;

  constructor(options: BallotsOptions) {
    this.#o = options;
  }

  get votes(): boolean {
    return this.#o.voter.votes;
  }

  get epoch(): number {
    return this.#o.voter.epoch;
  }

  willing(candidate: NodeIdentity): boolean {
    return this.#o.voter.willing(candidate, this.#o.roster.number);
  }

  /** Our own voter's answer. */
  own(question: VoteQuestion): Promise<VoteAnswer> {
    return this.answer(question, this.#o.roster.number);
  }

  async answer(question: VoteQuestion, set: SetNumber | null): Promise<VoteAnswer> {
    const { voter, identity, standing, view } = this.#o;
    const reply = (answer: VoteAnswer["answer"]): VoteAnswer => ({
      node: identity,
      answer,
      floor: voter.floor,
    });
    switch (question.op) {
      case "promise":
        return reply(await voter.promise(question, set));
      case "renew":
        return reply(await this.#renewed(question));
      case "release":
        voter.release(question.term);
        view.end(question.term);
        standing.hint();
        return reply("released");
    }
  }

  async #renewed(question: Extract<VoteQuestion, { op: "renew" }>) {
    const { voter, view, evidence, clock } = this.#o;
    const { term, ttlMs, granted, acquiredAt } = question;
    const at = clock.monotonic();
    const known = term.epoch <= view.epoch;
    const voice = await voter.renew(question);
    if (!granted) return voice;
    evidence.heard(term);
    // Also when our vote went to a later candidate that did not win: then a majority still stands behind this one.
    if (!view.note({ term, acquiredAt, until: at + ttlMs })) this.late += 1;
    else if (!known) await this.#o.admit(this.#termOf(term));
    return voice;
  }

  vote<Answer>(
    peer: NodeName,
    question: VoteQuestion,
    deadlineMs: number,
    answerOf: (answer: VoteAnswer) => Answer,
  ): Promise<Heard<Answer> | null> {
    return this.#ask(peer, PATHS.vote, question, voteAnswer, deadlineMs, answerOf);
  }

  poll<Answer>(
    peer: NodeName,
    candidate: NodeIdentity,
    deadlineMs: number,
    answerOf: (answer: ElectionAnswer) => Answer,
  ): Promise<Heard<Answer> | null> {
    const heard = (answer: ElectionAnswer): Answer => {
      // Elected with an older set than others have noted we could bring back somebody who was removed.
      if (answer.peers) this.#o.roster.offer(answer.peers);
      return answerOf(answer);
    };
    return this.#ask(peer, PATHS.election, { candidate }, electionAnswer, deadlineMs, heard);
  }

  async announce(peer: NodeName, word: Announcement): Promise<void> {
    const body = { ...word, granted: true };
    await this.#ask(peer, PATHS.coordinator, body, voteAnswer, this.#o.callMs, () => null);
  }

  async #ask<Schema extends z.ZodType<{ readonly node: NodeIdentity }>, Answer>(
    peer: NodeName,
    path: string,
    question: object,
    schema: Schema,
    deadlineMs: number,
    answerOf: (answer: z.output<Schema>) => Answer,
  ): Promise<Heard<Answer> | null> {
    const { calls, identity, roster } = this.#o;
    const body = { from: identity, set: roster.number, ...question };
    const outcome = await calls.ask(peer, path, body, schema, { deadlineMs });
    if ("answer" in outcome) return answerOf(outcome.answer);
    return outcome.none === "silent" ? null : "refused";
  }

  #termOf({ name, incarnation, epoch }: HeldTerm): Term {
    return { role: this.#o.role, leader: name, incarnation, epoch };
  }
}
