/**
 * A term of leadership, with the epoch that the store compares in the transaction of every leader's write. A higher
 * epoch always wins; an epoch is never granted twice.
 */

import type { NodeName } from "../ids.ts";
import type { NodeIdentity } from "../node.ts";

/**
 * Append only: the index of a role is part of the number of its advisory lock, on which nodes of two versions must
 * agree.
 */
export const LEADER_ROLES = ["scheduler", "metrics_aggregator", "log_compactor"] as const;
export type LeaderRole = (typeof LEADER_ROLES)[number];

export interface Term {
  readonly role: LeaderRole;
  readonly leader: NodeName;
  readonly incarnation: string;
  readonly epoch: number;
}

export const TERM_ENDS = {
  lapsed: "not confirmed in time",
  superseded: "the lock says that it is over",
  slept: "not confirmed after the machine slept",
  resigned: "resigned",
  stopped: "stopped",
} as const;

export type TermEnd = keyof typeof TERM_ENDS;

/** `before`: the leader that was known last. */
export type TermChange =
  | { readonly is: "started"; readonly term: Term; readonly before: Term | null }
  | { readonly is: "ended"; readonly term: Term; readonly reason: TermEnd };

/** Runs for the length of a term, until the signal fires. */
export type Duty = (term: Term, signal: AbortSignal) => Promise<void>;

/** In log lines `role` is LEADER, STANDBY or DRAINING. */
export function termFields({
  role,
  ...term
}: Term): Omit<Term, "role"> & { readonly leaderRole: LeaderRole } {
  return { leaderRole: role, ...term };
}

export function sameTerm(a: Term | null, b: Term): boolean {
  return (
    a?.role === b.role && a.epoch === b.epoch && a.leader === b.leader && a.incarnation === b.incarnation
  );
}

export function heldBy(term: Term, node: NodeIdentity): boolean {
  return term.leader === node.name && term.incarnation === node.incarnation;
}
