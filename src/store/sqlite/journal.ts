/** The journal in SQLite: append, list by kind or subject, and purge. Only a leader purges, under its term. */

import type { Term } from "../../core/leadership/term.ts";
import type { JournalEntry, JournalKind, JournalQuery, JournalStore, NewEntry } from "../journal.ts";
import { JOURNAL_KINDS } from "../journal.ts";
import type { StoreCache } from "./jobs/store-cache.ts";
import type { SqliteTerms } from "./terms.ts";

const COLUMNS = "n, at, kind, node, actor, subject, detail";

export class SqliteJournal implements JournalStore {
  readonly #ledger: StoreCache;
  readonly #terms: SqliteTerms;
  readonly #sql;

  constructor({ ledger, terms }: { readonly ledger: StoreCache; readonly terms: SqliteTerms }) {
    this.#ledger = ledger;
    this.#terms = terms;
    const { file } = ledger;
    this.#sql = {
      append: file.prepare(
        "INSERT INTO journal (at, kind, node, actor, subject, detail) VALUES (?, ?, ?, ?, ?, ?)",
      ),
      all: file.prepare(`SELECT ${COLUMNS} FROM journal WHERE n < ? ORDER BY n DESC LIMIT ?`),
      ofKind: file.prepare(`SELECT ${COLUMNS} FROM journal WHERE kind = ? AND n < ? ORDER BY n DESC LIMIT ?`),
      about: file.prepare(
        `SELECT ${COLUMNS} FROM journal WHERE subject = ? AND n < ? ORDER BY n DESC LIMIT ?`,
      ),
      aboutOfKind: file.prepare(
        `SELECT ${COLUMNS} FROM journal WHERE subject = ? AND kind = ? AND n < ? ORDER BY n DESC LIMIT ?`,
      ),
      purge: file.prepare(
        "DELETE FROM journal WHERE n IN (SELECT n FROM (SELECT n, at FROM journal ORDER BY n LIMIT ?) WHERE at <= ?)",
      ),
    };
  }

  append(entries: readonly NewEntry[]): Promise<void> {
    return this.#ledger.file.write(() => {
      const now = this.#ledger.clock.now();
      for (const { agoMs, kind, node, actor, subject, detail } of entries) {
        this.#sql.append.run(Math.round(now - agoMs), kind, node, actor, subject, JSON.stringify(detail));
      }
    });
  }

  async list(query: JournalQuery): Promise<readonly JournalEntry[]> {
    const { kinds, limit } = query;
    // Each kind by its index: the few entries of one are not looked for among all the others.
    const each = kinds === undefined || kinds.length === JOURNAL_KINDS.length ? [null] : [...new Set(kinds)];
    const rows = this.#ledger.file.read(() => each.flatMap((kind) => this.#find(kind, query)));
    const newest = rows.sort((a, b) => (b["n"] as number) - (a["n"] as number)).slice(0, limit);
    return newest.map((row) => ({
      id: String(row["n"]),
      at: row["at"] as number,
      kind: row["kind"] as JournalKind,
      node: row["node"] as string,
      actor: row["actor"] as string | null,
      subject: row["subject"] as string | null,
      detail: JSON.parse(row["detail"] as string) as JournalEntry["detail"],
    }));
  }

  purge(ageMs: number, limit: number, fence: Term): Promise<number> {
    return this.#ledger.file.write(() => {
      this.#terms.check(fence);
      return Number(this.#sql.purge.run(limit, this.#ledger.clock.now() - ageMs).changes);
    });
  }

  #find(kind: JournalKind | null, { subject, before, limit }: JournalQuery) {
    const end = before === undefined ? Number.MAX_SAFE_INTEGER : Number(before);
    if (subject === undefined)
      return kind === null ? this.#sql.all.all(end, limit) : this.#sql.ofKind.all(kind, end, limit);
    return kind === null
      ? this.#sql.about.all(subject, end, limit)
      : this.#sql.aboutOfKind.all(subject, kind, end, limit);
  }
}
