/**
 * The journal in the store: terms and the reasons of their end, refused writes, nodes that joined and left, changes of
 * owners, and actions of people. It is for people to read; no decision depends on it.
 *
 * An entry is written once and never changed. Every node may append; only the leader that compacts the journal removes
 * entries, under its term.
 */

import { each, type Script, type Scripts, sql } from "./script.ts";

export const JOURNAL_KINDS = [
  /** `detail`: role, epoch, leader; with the end also the reason. `subject`: the role. */
  "term.started",
  "term.ended",
  /** `detail`: what, carried_epoch, current_epoch, count. `subject`: the job, if there is one. */
  "write.refused",
  /** `subject`: the node. */
  "node.joined",
  "node.left",
  "node.dead",
  "node.draining",
  "node.drained",
  "node.resumed",
  /** `detail`: from, to, jobs, owner_epoch, reason. `subject`: the assignment. */
  "handoff",
  /** `actor`: the user. `subject`: what was changed. `detail`: operation, params, status. */
  "audit",
] as const;
export type JournalKind = (typeof JOURNAL_KINDS)[number];

export interface JournalStore {
  append(entries: readonly NewEntry[]): Promise<void>;
  list(query: JournalQuery): Promise<readonly JournalEntry[]>;
}

export interface JournalQuery {
  readonly kinds?: readonly JournalKind[];
  readonly subject?: string;
  /** The id of an entry. */
  readonly before?: string;
  readonly limit: number;
}

export interface JournalEntry {
  /** Digits. Later entries have greater ids. */
  readonly id: string;
  readonly at: number;
  readonly kind: JournalKind;
  readonly node: string;
  readonly actor: string | null;
  readonly subject: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface NewEntry extends Omit<JournalEntry, "id" | "at"> {
  /** Entries wait while the store is unavailable. */
  readonly agoMs: number;
}

/** The subject of entries about an assignment, which several jobs share. */
export function assignmentSubject(assignment: number): string {
  return `assignment/${assignment}`;
}

const APPEND = sql(
  "journal-append",
  "INSERT INTO baton.journal (at, kind, node, actor, subject, detail) VALUES ({now} - $2::bigint, $3, $4, $5, $6, $7)",
);
const newest = (name: string, condition = "") =>
  sql(
    name,
    `SELECT n, at, kind, node, actor, subject, detail FROM baton.journal WHERE n < $1::bigint ${condition} ORDER BY n DESC LIMIT $2`,
  );
const LIST = newest("journal-list");
/** One query for each kind, so that a rare kind is found by its index. */
const OF_KIND = newest("journal-of-kind", "AND kind = $3");
const ABOUT = newest("journal-about", "AND subject = $3");
const ABOUT_OF_KIND = newest("journal-about-of-kind", "AND subject = $3 AND kind = $4");
export const PURGE_JOURNAL = sql(
  "journal-purge",
  `DELETE FROM baton.journal WHERE n IN (
     SELECT n FROM (SELECT n, at FROM baton.journal ORDER BY n LIMIT $3) AS oldest WHERE at <= {now} - $2::bigint
   ) RETURNING n`,
);

type Row = Omit<JournalEntry, "id" | "detail"> & { readonly n: number; readonly detail: string };

export function journalStore(scripts: Scripts): JournalStore {
  return {
    append: (entries) => {
      const rows = entries.map(({ agoMs, kind, node, actor, subject, detail }) => {
        return [Math.round(agoMs), kind, node, actor, subject, JSON.stringify(detail)];
      });
      return scripts.write(() => each(APPEND, rows));
    },
    list: (wanted) => scripts.read(() => list(wanted)),
  };
}

function* list({ kinds, subject, before, limit }: JournalQuery): Script<readonly JournalEntry[]> {
  const end = before === undefined ? Number.MAX_SAFE_INTEGER : Number(before);
  const about = subject === undefined ? [] : [subject];
  const steps =
    kinds && kinds.length < JOURNAL_KINDS.length
      ? [...new Set(kinds)].map((kind) => ({
          sql: subject === undefined ? OF_KIND : ABOUT_OF_KIND,
          values: [end, limit, ...about, kind],
        }))
      : [{ sql: subject === undefined ? LIST : ABOUT, values: [end, limit, ...about] }];
  const rows = ((yield steps) as readonly (readonly Row[])[]).flat();
  const page = rows.sort((a, b) => b.n - a.n).slice(0, limit);
  return page.map(({ n, detail, ...rest }) => ({
    ...rest,
    id: String(n),
    detail: JSON.parse(detail) as JournalEntry["detail"],
  }));
}
