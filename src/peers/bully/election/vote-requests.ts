/** Requests to voters, our own included: polls, promises, renewals, releases, and the announcement of a new leader. */

import type { z } from "zod";
import type { HeldTerm } from "../../../core/leadership/vote-rules.ts";
import type { Heard } from "../../../core/leadership/bully.ts";
import type { NodeName } from "../../../core/ids.ts";
import type { NodeIdentity } from "../../../core/node.ts";
import type { SetNumber } from "../../../core/leadership/peer-set.ts";
import type { Candidacy } from "./candidacy.ts";
import { termOf } from "../leader-view.ts";
import {
  electionAnswer,
  PATHS,
  voteAnswer,
  type ElectionAnswer,
  type VoteAnswer,
  type VoteAsked,
} from "../messages.ts";
import type { PeerCalls } from "../peer-calls.ts";
import type { PeerState } from "../peer-state.ts";

type WithoutSender<Message> = Message extends unknown ? Omit<Message, "from" | "set"> : never;
export type VoteRequest = WithoutSender<VoteAsked>;

export interface Announcement {
  readonly term: HeldTerm;
  readonly ttlMs: number;
  readonly acquiredAt: number;
}

export class VoteRequests {
  readonly #state: PeerState;
  readonly #candidacy: Candidacy;
  readonly #calls: PeerCalls;

  constructor(state: PeerState, candidacy: Candidacy, calls: PeerCalls) {
    this.#state = state;
    this.#candidacy = candidacy;
    this.#calls = calls;
  }

  /** Our own voter's answer. */
  own(request: VoteRequest): Promise<VoteAnswer> {
    return this.answer(request, this.#state.peers.number);
  }

  async answer(request: VoteRequest, set: SetNumber | null): Promise<VoteAnswer> {
    const { voter, identity, leader } = this.#state;
    const reply = (answer: VoteAnswer["answer"]): VoteAnswer => ({
      node: identity,
      answer,
      floor: voter.floor,
    });
    switch (request.op) {
      case "promise":
        return reply(await voter.promise(request, set));
      case "renew":
        return reply(await this.#renew(request));
      case "release":
        voter.release(request.term);
        leader.end(request.term);
        this.#candidacy.hint();
        return reply("released");
    }
  }

  async #renew(request: Extract<VoteRequest, { op: "renew" }>) {
    const { voter, leader, presences, clock } = this.#state;
    const { term, ttlMs, granted, acquiredAt } = request;
    const at = clock.monotonic();
    const known = term.epoch <= leader.epoch;
    const answer = await voter.renew(request);
    if (!granted) return answer;
    presences.heard(term);
    // Also when our vote went to a later candidate that did not win: a majority still supports this leader.
    const noted = leader.note({ term, acquiredAt, until: at + ttlMs });
    if (noted && !known) await voter.admit(termOf(term));
    return answer;
  }

  vote<Answer>(
    peer: NodeName,
    request: VoteRequest,
    deadlineMs: number,
    answerOf: (answer: VoteAnswer) => Answer,
  ): Promise<Heard<Answer> | null> {
    return this.#ask(peer, PATHS.vote, request, voteAnswer, deadlineMs, answerOf);
  }

  poll<Answer>(
    peer: NodeName,
    candidate: NodeIdentity,
    deadlineMs: number,
    answerOf: (answer: ElectionAnswer) => Answer,
  ): Promise<Heard<Answer> | null> {
    const heard = (answer: ElectionAnswer): Answer => {
      // A leader elected with an older set than others have noted could bring back a removed node.
      if (answer.peers) this.#state.offer(answer.peers);
      return answerOf(answer);
    };
    return this.#ask(peer, PATHS.election, { candidate }, electionAnswer, deadlineMs, heard);
  }

  async announce(peer: NodeName, announcement: Announcement): Promise<void> {
    const { heartbeatTimeoutMs } = this.#state.settings;
    const body = { ...announcement, granted: true };
    await this.#ask(peer, PATHS.coordinator, body, voteAnswer, heartbeatTimeoutMs, () => null);
  }

  async #ask<Schema extends z.ZodType<{ readonly node: NodeIdentity }>, Answer>(
    peer: NodeName,
    path: string,
    request: object,
    schema: Schema,
    deadlineMs: number,
    answerOf: (answer: z.output<Schema>) => Answer,
  ): Promise<Heard<Answer> | null> {
    const { identity, peers } = this.#state;
    const body = { from: identity, set: peers.number, ...request };
    const outcome = await this.#calls.ask(peer, path, body, schema, { deadlineMs });
    if ("answer" in outcome) return answerOf(outcome.answer);
    return outcome.none === "silent" ? null : "refused";
  }
}
