/**
 * The journal in the store: terms and the reasons of their end, refused writes, nodes that joined and left, changes of
 * owners, and actions of people. It is for people to read; no decision depends on it.
 *
 * An entry is written once and never changed. Every node may append; only the leader that compacts the journal removes
 * entries, under its term.
 */

import type { Term } from "../core/leadership/term.ts";

export const JOURNAL_KINDS = [
  /** `detail`: role, epoch, leader; with the end also the reason. `subject`: the role. */
  "term.started",
  "term.ended",
  /** A write under a number that is not the newest. `detail`: what, carried_epoch, current_epoch, count. `subject`: the job, if it is about one. */
  "write.refused",
  /** `subject`: the node. */
  "node.joined",
  "node.left",
  "node.dead",
  "node.draining",
  "node.drained",
  "node.resumed",
  /** The events of some jobs are another node's business now. `detail`: from, to, jobs, owner_epoch, reason. `subject`: the assignment. */
  "handoff",
  /** `actor`: who. `subject`: what was changed. `detail`: operation, params, status. */
  "audit",
] as const;
export type JournalKind = (typeof JOURNAL_KINDS)[number];

export interface JournalStore {
  /** In the order given. */
  append(entries: readonly NewEntry[]): Promise<void>;
  /** Newest first. */
  list(query: JournalQuery): Promise<readonly JournalEntry[]>;
  /** Removes those older than this, of the `limit` oldest; answers how many. */
  purge(ageMs: number, limit: number, fence: Term): Promise<number>;
}

export interface JournalQuery {
  /** Left out for all. */
  readonly kinds?: readonly JournalKind[];
  readonly subject?: string;
  /** The id of an entry: only those before it. */
  readonly before?: string;
  readonly limit: number;
}

export interface JournalEntry {
  /** Digits; the greater, the later it was written. */
  readonly id: string;
  readonly at: number;
  readonly kind: JournalKind;
  /** Who has written it down. */
  readonly node: string;
  readonly actor: string | null;
  readonly subject: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface NewEntry extends Omit<JournalEntry, "id" | "at"> {
  /** How long ago it happened: a store that was away hears of it later. */
  readonly agoMs: number;
}

/** Of an assignment, which several jobs share. */
export function assignmentSubject(assignment: number): string {
  return `assignment/${assignment}`;
}
