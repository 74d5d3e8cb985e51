/**
 * The promises of one voter, and its answers.
 *
 * A ballot is on disk before any answer that depends on it is sent, so one epoch is never promised to two candidates,
 * not even across a crash. The voter counts the lease on its own monotonic clock from the moment of its decision, which
 * is never before the holder sent its request (see trust-window.ts). The lease is not on disk: after a restart a voter counts
 * a whole lease again.
 */

import { majorityOf } from "./bully.ts";
import type { NodeIdentity } from "../node.ts";

export interface Ballot {
  /** The highest epoch promised, or known to be a term. */
  readonly epoch: number;
  /** Null while nothing was ever promised. */
  readonly to: NodeIdentity | null;
  readonly ttlMs: number;
  /** The same epoch is not promised again, not even to the same candidate. */
  readonly released: boolean;
}

export const BLANK: Ballot = { epoch: 0, to: null, ttlMs: 0, released: false };

export interface Vote extends Ballot {
  readonly until: number;
}

export interface HeldTerm extends NodeIdentity {
  readonly epoch: number;
}

export type Decision =
  | { readonly answer: "granted" | "acknowledged"; readonly vote: Vote; readonly durable: boolean }
  | { readonly answer: "behind" }
  | { readonly answer: "denied"; readonly why: "leased" | "promised" | "far" };

/**
 * A larger step is a mistake or a forgery: the largest number would end all elections for ever. One election a second
 * reaches this in twelve days.
 */
export const EPOCH_STEP_MAX = 1_000_000;

/** From the file: nobody knows how long ago its lease was renewed, so it counts from now. */
export function voteAfterRestart(ballot: Ballot, self: string, at: number): Vote {
  // An earlier life of our own is over, whatever it held.
  const leased = ballot.to !== null && ballot.to.name !== self && !ballot.released;
  return { ...ballot, until: leased ? at + ballot.ttlMs : -Infinity };
}

/** `gone`: evidence that this incarnation has ended. */
export function holderOf(
  vote: Vote,
  at: number,
  gone: (life: NodeIdentity) => boolean = () => false,
): HeldTerm | null {
  const { to, epoch, released, until } = vote;
  return to === null || released || at >= until || gone(to) ? null : { ...to, epoch };
}

export function sameIncarnation(a: NodeIdentity, b: NodeIdentity): boolean {
  return a.name === b.name && a.incarnation === b.incarnation;
}

export interface PromiseAsked {
  readonly candidate: NodeIdentity;
  readonly epoch: number;
  readonly ttlMs: number;
}

/** `holder`: by `holderOf`. */
export function decidePromise(
  vote: Vote,
  asked: PromiseAsked,
  at: number,
  holder: HeldTerm | null,
): Decision {
  const { candidate, epoch, ttlMs } = asked;
  if (epoch > vote.epoch + EPOCH_STEP_MAX) return { answer: "denied", why: "far" };
  if (epoch === vote.epoch && vote.to !== null && sameIncarnation(vote.to, candidate) && !vote.released) {
    // The request came twice. The lease is not extended: the second one may be very late.
    return { answer: "granted", vote, durable: true };
  }
  if (epoch <= vote.epoch) return { answer: "denied", why: "promised" };
  if (holder && !sameIncarnation(holder, candidate)) return { answer: "denied", why: "leased" };
  return { answer: "granted", vote: given(candidate, epoch, ttlMs, at), durable: true };
}

function given({ name, incarnation }: NodeIdentity, epoch: number, ttlMs: number, at: number): Vote {
  return { epoch, to: { name, incarnation }, ttlMs, released: false, until: at + ttlMs };
}

export interface RenewalAsked {
  readonly term: HeldTerm;
  readonly ttlMs: number;
  /** The caller was granted this term by a majority, so a voter that missed it accepts it. */
  readonly granted: boolean;
}

export function decideRenewal(vote: Vote, asked: RenewalAsked, at: number): Decision {
  const { term, ttlMs, granted } = asked;
  if (term.epoch > vote.epoch) {
    if (!granted) return { answer: "behind" };
    if (term.epoch > vote.epoch + EPOCH_STEP_MAX) return { answer: "denied", why: "far" };
    return { answer: "acknowledged", vote: given(term, term.epoch, ttlMs, at), durable: true };
  }
  const ours =
    term.epoch === vote.epoch && vote.to !== null && sameIncarnation(vote.to, term) && !vote.released;
  if (!ours) return { answer: "denied", why: "promised" };
  const longer = ttlMs > vote.ttlMs;
  const next: Vote = {
    ...vote,
    ttlMs: Math.max(ttlMs, vote.ttlMs),
    until: Math.max(vote.until, at + ttlMs),
  };
  return { answer: "acknowledged", vote: next, durable: longer };
}

/** Also for a promise that has not arrived yet: overtaken by its release, it must not bind. */
export function decideRelease(vote: Vote, term: HeldTerm, at: number): Vote {
  const { name, incarnation, epoch } = term;
  if (epoch === vote.epoch && vote.to !== null && sameIncarnation(vote.to, term))
    return { ...vote, released: true, until: -Infinity };
  const coming = epoch > vote.epoch && epoch <= vote.epoch + EPOCH_STEP_MAX;
  // A valid lease belongs to another: who did not get its promises does not end it.
  if (!coming || holderOf(vote, at)) return vote;
  return { epoch, to: { name, incarnation }, ttlMs: vote.ttlMs, released: true, until: -Infinity };
}

// ---------------------------------------------------------------- a voter without memory

export interface Memory {
  readonly voters: number;
  /** Those that have answered since our start. */
  readonly others: readonly { readonly votes: boolean; readonly ballot: Ballot }[];
  readonly upMs: number;
  /** The term of the leader that is heard, as a ballot. */
  readonly leader: Ballot;
  /** Without a gap. */
  readonly leaderHeardMs: number;
  readonly leaseMs: number;
}

/**
 * The ballot with which a voter without a file may vote; null while it must not. It may have promised an epoch and
 * forgotten it, so it must learn the highest one by other means:
 *
 * - A cluster that begins: a majority answers, and nobody has ever promised anything.
 * - So many others answer that one of them is in every majority that we may have been part of (of three voters: both),
 * and a lease that we may have given has expired.
 * - A leader was heard for a whole lease: a majority acknowledges its epoch, and any round that we took part in is
 * over.
 */
export function recollect(memory: Memory): Ballot | null {
  const { voters, others, upMs, leader, leaderHeardMs, leaseMs } = memory;
  const majority = majorityOf(voters);
  const highest = others.reduce((best, { ballot }) => (ballot.epoch > best.epoch ? ballot : best), leader);
  // Nobody else can have counted on what a lone voter promised.
  if (voters === 1) return highest;
  if (highest.epoch === 0 && others.length + 1 >= majority) return highest;
  const remembering = others.filter(({ votes }) => votes).length;
  if (remembering >= voters - majority + 1 && upMs >= leaseMs) return highest;
  return leaderHeardMs >= leaseMs ? highest : null;
}
