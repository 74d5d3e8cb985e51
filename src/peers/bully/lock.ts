/**
 * The leader lock of the peers: a term is the promise of a majority of voters, each on its own disk.
 *
 * `acquire` polls first, so that only a candidate that can win uses up an epoch, then asks for promises. Promises that
 * did not suffice are released at once. `renew` is true when a majority acknowledges it, false when so many deny it
 * that no majority is possible, and rejects in between: then the elector's trust window decides. Whoever follows
 * `released` makes this node a candidate.
 */

import { sameIncarnation, type HeldTerm } from "../../core/leadership/vote-rules.ts";
import {
  compareNames,
  judgePoll,
  judgePromises,
  judgeRenewal,
  type Heard,
  type PollAnswer,
  type PollVerdict,
  type PromiseAnswer,
  type RenewalAnswer,
  type Round,
} from "../../core/leadership/bully.ts";
import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { termFields, type Term } from "../../core/leadership/term.ts";
import { BaseLock } from "../../leadership/base-lock.ts";
import type { Tenure } from "../../leadership/coordination.ts";
import type { ElectionAnswer, VoteAnswer, VoteAsked } from "../rpc/bully-messages.ts";
import { mapAnswer, type PeerAnswer } from "../rpc/peer-rpc.ts";
import { quorumRound } from "../rpc/quorum-round.ts";
import { sameHeld, termOf } from "./leader-view.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { PeerState } from "./peer-state.ts";

type WithoutSender<Message> = Message extends unknown ? Omit<Message, "from" | "set"> : never;
export type VoteRequest = WithoutSender<VoteAsked>;

/** A request that was not answered is sent so many times within its deadline. */
const ATTEMPTS = 4;
/** How many election timeouts the first election of a cluster waits for all voters. Fewer, and nodes that start a moment later miss it. */
const GATHER_ROUNDS = 2;

export class BullyLock extends BaseLock {
  readonly #state: PeerState;
  readonly #calls: PeerCalls;
  /** It has just released its term, to let others go first. */
  #resting = false;
  /** Since when, in this vacancy, this node has stood back for a peer. */
  readonly #backSince = new Map<NodeName, number>();
  /** The newest term that a majority has granted through this lock; no other can be valid. */
  #granted: { readonly term: HeldTerm; readonly acquiredAt: number } | null = null;

  constructor(state: PeerState, calls: PeerCalls) {
    super(state);
    this.#state = state;
    this.#calls = calls;
    const { events, leader, voter } = state;
    const hint = (): void => this.hint();
    events.on("peers", hint);
    events.on("vacant", hint);
    events.on("ready", hint);
    events.on("evidence", () => leader.epoch > 0 && !leader.current() && this.hint());
    // Before the first election every new voter may complete the majority.
    events.on("voter", () => voter.epoch === 0 && this.hint());
    // The next vacancy begins with patience for every peer.
    events.on("leader", () => leader.current() && this.#backSince.clear());
  }

  /** Whether this node is a candidate: an elector follows the hints. */
  get stands(): boolean {
    return this.followers > 0 && !this.#resting;
  }

  /** The answer of this node's voter. `set`: the number of the peer set that the one who asks knows. */
  async vote(request: VoteRequest, set = this.#state.peers.number): Promise<VoteAnswer> {
    const { voter, leader } = this.#state;
    const reply = (answer: VoteAnswer["answer"]): VoteAnswer => ({ answer, floor: voter.floor });
    switch (request.op) {
      case "promise":
        return reply(await voter.promise(request, set));
      case "renew":
        return reply(await this.#hearRenewal(request));
      case "release":
        voter.release(request.term);
        leader.end(request.term);
        this.hint();
        return reply("released");
    }
  }

  protected async extend(term: Term, ttlMs: number): Promise<boolean> {
    const { clock, settings, leader, identity, peers } = this.#state;
    const held = heldTerm(term);
    const voters = peers.names();
    if (!voters.includes(identity.name)) {
      // This node was removed, perhaps by itself. The others wait only for the release, which comes after this answer.
      void clock.turn().then(() => this.release(term).catch(() => {}));
      return false;
    }
    const granted = this.#granted !== null && sameHeld(this.#granted.term, held);
    const acquiredAt = granted ? this.#granted!.acquiredAt : clock.now();
    const request = { op: "renew", term: held, ttlMs, granted, acquiredAt } as const;
    const sentAt = clock.monotonic();
    let floor = 0;
    const answerOf = (answer: VoteAnswer): RenewalAnswer => {
      floor = Math.max(floor, answer.floor);
      return renewalAnswer(answer.answer);
    };
    const verdict = await this.#round<RenewalAnswer, boolean>(voters, settings.heartbeatTimeoutMs, {
      ask: (peer, leftMs) => this.#askVote(peer, request, leftMs, answerOf),
      judge: judgeRenewal,
    });
    if (verdict === null) {
      throw new BatonError("DEADLINE", `no majority of ${voters.length} peers confirmed term ${term.epoch}`);
    }
    // A member's store knows a later term, perhaps of an earlier cluster, and would refuse the writes of this one.
    const outgrown = floor > term.epoch;
    if (verdict && !outgrown) leader.note({ term: held, acquiredAt, until: sentAt + ttlMs });
    else leader.end(held);
    return verdict && !outgrown;
  }

  protected async giveUp(term: Term): Promise<void> {
    const { leader, identity } = this.#state;
    const held = heldTerm(term);
    if (term.leader === identity.name) this.#resting = true;
    leader.end(held);
    await this.vote({ op: "release", term: held });
    await this.#giveBack(held);
  }

  protected async readTenure(): Promise<Tenure | null> {
    return this.#state.leader.tenure();
  }

  /** Two attempts of this node at the same time would only take votes from each other. */
  protected async attempt(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    const { identity, leader, voter, clock, peers } = this.#state;
    const own = sameIncarnation(candidate, identity);
    if (own) this.#resting = false;
    const voters = peers.names();
    if (!voters.includes(identity.name) || !voter.votes || this.#gathering()) return null;
    const leading = leader.sighting();
    if (leading && !sameIncarnation(leading.term, candidate)) return null;
    const poll = await this.#poll(candidate, own, voters);
    if (poll.verdict !== "stand") return null;
    const sentAt = clock.monotonic();
    const term: HeldTerm = { ...candidate, epoch: poll.epoch + 1 };
    if (!(await this.#promises(term, ttlMs, voters))) return this.#lose(term);
    return this.#begin(term, ttlMs, sentAt);
  }

  /** Not for ever: a peer that answers and cannot win, because others do not hear it, must not keep every node from leading. */
  #standsBackFor(peer: NodeName): boolean {
    const { clock, settings } = this.#state;
    const at = clock.monotonic();
    const since = this.#backSince.get(peer) ?? at;
    this.#backSince.set(peer, since);
    return at - since < 2 * settings.electionTimeoutMs;
  }

  /** There was no leader ever, and more voters may be about to come: an election now would leave them without a vote for a lease. */
  #gathering(): boolean {
    const { voter, peers, presences, settings } = this.#state;
    if (voter.epoch > 0 || voter.votingMs >= GATHER_ROUNDS * settings.electionTimeoutMs) return false;
    return !peers.others().every((name) => presences.get(name)?.votes);
  }

  async #poll(candidate: NodeIdentity, own: boolean, voters: readonly NodeName[]) {
    const { settings, identity, voter, peers } = this.#state;
    let epoch = voter.epoch;
    const answerOf =
      (peer: NodeName) =>
      (answer: ElectionAnswer): PollAnswer => {
        epoch = Math.max(epoch, answer.epoch);
        // A leader elected with an older set than others have noted could bring back a removed node.
        if (answer.peers) this.#state.offer(answer.peers);
        const stands = own && answer.stands && this.#standsBackFor(peer);
        return { willing: answer.willing && answer.votes, stands };
      };
    const above = (peer: NodeName): boolean => compareNames(peer, identity.name, settings.order) > 0;
    const awaited = this.#reachable(voters).filter(
      (peer) => settings.quorum === "none" || (own && above(peer)),
    );
    const verdict = await this.#round<PollAnswer, PollVerdict>(voters, settings.electionTimeoutMs, {
      ask: async (peer, leftMs) => {
        const own = { willing: voter.willing(candidate, peers.number), stands: false };
        if (peer === identity.name) return { got: "answer", value: own, node: identity };
        const request = { ...this.#state.sender(), candidate };
        return mapAnswer(await this.#calls.ask(peer, "election", request, leftMs), answerOf(peer));
      },
      judge: judgePoll,
      awaited,
    });
    return { verdict, epoch };
  }

  async #promises(term: HeldTerm, ttlMs: number, voters: readonly NodeName[]): Promise<boolean> {
    const { settings } = this.#state;
    const { name, incarnation, epoch } = term;
    const request = { op: "promise", candidate: { name, incarnation }, epoch, ttlMs } as const;
    const answerOf = ({ answer }: VoteAnswer): PromiseAnswer => (answer === "granted" ? "granted" : "denied");
    const verdict = await this.#round<PromiseAnswer, "won" | "lost">(voters, settings.electionTimeoutMs, {
      ask: (peer, leftMs) => this.#askVote(peer, request, leftMs, answerOf),
      judge: judgePromises,
    });
    return verdict === "won";
  }

  async #begin(held: HeldTerm, ttlMs: number, sentAt: number): Promise<Term | null> {
    const { clock, leader, voter, log, peers, settings } = this.#state;
    const acquiredAt = clock.now();
    const term = termOf(held);
    if (!(await voter.admit(term))) {
      log.warn(termFields(term), "the store of this node knows a later term; trying again above it");
      return this.#lose(held);
    }
    this.#granted = { term: held, acquiredAt };
    leader.note({ term: held, acquiredAt, until: sentAt + ttlMs });
    const announcement = { ...this.#state.sender(), term: held, ttlMs, acquiredAt, granted: true };
    for (const peer of peers.others())
      void this.#calls.ask(peer, "coordinator", announcement, settings.heartbeatTimeoutMs);
    return term;
  }

  async #lose(term: HeldTerm): Promise<null> {
    await this.vote({ op: "release", term });
    void this.#giveBack(term);
    return null;
  }

  /** Waits until all peers that can be reached know, and no longer than one call takes. */
  async #giveBack(term: HeldTerm): Promise<void> {
    const { settings, peers, presences } = this.#state;
    const release = (peer: NodeName) =>
      this.#askVote(peer, { op: "release", term }, settings.electionTimeoutMs, () => "released");
    const sent = peers.others().map((peer) => [presences.alive(peer), release(peer)] as const);
    await Promise.all(sent.filter(([alive]) => alive).map(([, answered]) => answered));
  }

  #reachable(voters: readonly NodeName[]): readonly NodeName[] {
    return voters.filter((peer) => this.#state.alive(peer));
  }

  async #hearRenewal(request: Extract<VoteRequest, { op: "renew" }>) {
    const { voter, presences, clock } = this.#state;
    const { term, ttlMs, granted, acquiredAt } = request;
    const at = clock.monotonic();
    const answer = await voter.renew(request);
    if (!granted) return answer;
    presences.heard(term);
    // Also when our vote went to a later candidate that did not win: a majority still supports this leader.
    await this.#state.noteLeader({ term, acquiredAt, until: at + ttlMs });
    return answer;
  }

  async #askVote<Answer>(
    peer: NodeName,
    request: VoteRequest,
    deadlineMs: number,
    answerOf: (answer: VoteAnswer) => Answer,
  ): Promise<PeerAnswer<Answer>> {
    const { identity } = this.#state;
    if (peer === identity.name)
      return { got: "answer", value: answerOf(await this.vote(request)), node: identity };
    const body = { ...this.#state.sender(), ...request };
    return mapAnswer(await this.#calls.ask(peer, "vote", body, deadlineMs), answerOf);
  }

  #round<Answer, Verdict>(
    voters: readonly NodeName[],
    deadlineMs: number,
    how: {
      ask: (peer: NodeName, leftMs: number) => Promise<PeerAnswer<Answer>>;
      judge: (round: Round<Answer>) => Verdict | null;
      awaited?: readonly NodeName[];
    },
  ): Promise<Verdict | null> {
    const { clock, identity, settings } = this.#state;
    const { ask, judge, awaited = this.#reachable(voters) } = how;
    const { quorum } = settings;
    return quorumRound<Answer, Verdict>({
      members: voters,
      // Only our own vote can fail: a promise that is not on disk.
      ask: (peer, leftMs) => ask(peer, leftMs).catch((error) => ({ got: "refused", reason: String(error) })),
      judge: ({ answers, refused, over }) => {
        const heard = new Map<NodeName, Heard<Answer>>(answers);
        for (const peer of refused.keys()) heard.set(peer, "refused");
        return judge({ answers: heard, over, quorum, voters: voters.length, awaited });
      },
      limit: { clock, self: identity.name, deadlineMs, againMs: deadlineMs / ATTEMPTS },
    });
  }
}

function heldTerm({ leader, incarnation, epoch }: Term): HeldTerm {
  return { name: leader, incarnation, epoch };
}

function renewalAnswer(answer: VoteAnswer["answer"]): RenewalAnswer {
  if (answer === "acknowledged" || answer === "denied" || answer === "behind") return answer;
  return "abstains";
}
