/**
 * The bully election under a majority: which node becomes a candidate, which one yields, and when a round of votes is
 * decided.
 *
 *     poll ------> promises ------> leading <----- renewals
 *      |  would you promise?  |  on disk   |         |  acknowledged by a majority
 *      '- a higher candidate: yield        '- not won: given back
 *
 * The order of names decides only which node tries first. A term consists of the promises of a majority, each given
 * once per epoch, so a wrong order costs time and never safety. The poll comes first because each promise uses up an
 * epoch: a node that returns and cannot win does not disturb the current leader.
 */

import type { NodeName } from "../ids.ts";

/** `text`: by code units, so that node10 is below node9. `natural`: runs of digits by their value. */
export type NameOrder = "text" | "natural";

/** `none`: whoever is left leads alone, so that two halves of a split cluster have a leader each. */
export type Quorum = "majority" | "none";

export function majorityOf(voters: number): number {
  return Math.floor(voters / 2) + 1;
}

export function compareNames(a: string, b: string, order: NameOrder): number {
  return (order === "natural" ? compareNatural(a, b) : 0) || compareText(a, b);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function compareNatural(a: string, b: string): number {
  const [left, right] = [runs(a), runs(b)];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [x, y] = [left[i]!, right[i]!];
    const numbers = isDigits(x) && isDigits(y);
    const difference = numbers ? compareDigits(x, y) : compareText(x, y);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

function runs(name: string): readonly string[] {
  return name.match(/\d+|\D+/g) ?? [];
}

function isDigits(run: string): boolean {
  return run >= "0" && run < ":";
}

/** By value: a number would lose the last of many digits. */
function compareDigits(a: string, b: string): number {
  const [x, y] = [a.replace(/^0+/, ""), b.replace(/^0+/, "")];
  return x.length - y.length || compareText(x, y);
}

// ---------------------------------------------------------------- rounds

/** `refused`: the question certainly did not arrive, and nobody will answer it. */
export type Heard<Answer> = Answer | "refused";

export interface Round<Answer> {
  readonly quorum: Quorum;
  /** Dead ones included. */
  readonly voters: number;
  /** So far, with that of our own voter. */
  readonly answers: ReadonlyMap<NodeName, Heard<Answer>>;
  /** Nodes that are believed to be able to answer, and whose answers matter beyond their number. */
  readonly awaited: Iterable<NodeName>;
  readonly over: boolean;
}

export interface PollAnswer {
  /** It would promise now. */
  readonly willing: boolean;
  /** It is above us, may lead, and is about to try. */
  readonly stands: boolean;
}

export type PollVerdict = "stand" | "stand back" | "hopeless";

export function judgePoll(round: Round<PollAnswer>): PollVerdict | null {
  const answers = [...round.answers.values()];
  if (answers.some((answer) => answer !== "refused" && answer.stands)) return "stand back";
  const willing = answers.filter((answer) => answer !== "refused" && answer.willing).length;
  if (round.quorum === "none") {
    // One that knows a leader is enough: the leader is there, and we were only cut off from it.
    if (answers.some((answer) => answer !== "refused" && !answer.willing)) return "hopeless";
    return willing > 0 && (round.over || allHeard(round)) ? "stand" : whenOver(round, "hopeless");
  }
  const needed = majorityOf(round.voters);
  if (round.voters - (answers.length - willing) < needed) return "hopeless";
  if (willing < needed) return whenOver(round, "hopeless");
  return round.over || allHeard(round) ? "stand" : null;
}

export type PromiseAnswer = "granted" | "denied";

export function judgePromises(round: Round<PromiseAnswer>): "won" | "lost" | null {
  const answers = [...round.answers.values()];
  const granted = answers.filter((answer) => answer === "granted").length;
  if (round.quorum === "none") {
    if (answers.includes("denied")) return "lost";
    return granted > 0 && (round.over || allHeard(round)) ? "won" : whenOver(round, "lost");
  }
  const needed = majorityOf(round.voters);
  if (granted >= needed) return "won";
  if (round.voters - (answers.length - granted) < needed) return "lost";
  return whenOver(round, "lost");
}

/**
 * - `denied`: it has promised a later epoch, or this term was released; it will never acknowledge it again.
 * - `behind`: it does not know this epoch. If so many say so that no majority can have promised it, it never was a
 * term.
 * - `abstains`: it does not vote now.
 */
export type RenewalAnswer = "acknowledged" | "denied" | "behind" | "abstains";

/** Null at the end of the round: unknown. */
export function judgeRenewal(round: Round<RenewalAnswer>): boolean | null {
  const answers = [...round.answers.values()];
  const count = (kind: RenewalAnswer): number => answers.filter((answer) => answer === kind).length;
  const against = count("denied") + count("behind");
  if (round.quorum === "none") {
    if (against > 0) return false;
    return count("acknowledged") > 0 && (round.over || allHeard(round)) ? true : null;
  }
  const needed = majorityOf(round.voters);
  if (count("acknowledged") >= needed) return true;
  return round.voters - against < needed ? false : null;
}

function allHeard(round: Round<unknown>): boolean {
  for (const name of round.awaited) if (!round.answers.has(name)) return false;
  return true;
}

function whenOver<Verdict>(round: Round<unknown>, verdict: Verdict): Verdict | null {
  return round.over ? verdict : null;
}
