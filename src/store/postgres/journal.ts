/**
 * The journal in PostgreSQL: append, list by kind or subject, and purge. Every node appends; only a leader purges,
 * under its term.
 */

import type { Term } from "../../core/leadership/term.ts";
import { read, write } from "../../platform/drivers/postgres/postgres.ts";
import { int8s, texts } from "../../platform/drivers/postgres/arrays.ts";
import type { JournalEntry, JournalQuery, JournalStore, NewEntry } from "../journal.ts";
import { type StoreCache, NOW, withoutNul } from "./jobs/store-cache.ts";
import type { PostgresTerms } from "./terms.ts";

const APPEND = write(
  "journal-append",
  `INSERT INTO baton.journal (at, kind, node, actor, subject, detail)
   SELECT ${NOW} - e.ago, e.kind, e.node, e.actor, e.subject, e.detail
   FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
     WITH ORDINALITY AS e (ago, kind, node, actor, subject, detail, place)
   ORDER BY e.place`,
);
const COLUMNS = "n, at, kind, node, actor, subject, detail";
const LIST = read(
  "journal-list",
  `SELECT ${COLUMNS} FROM baton.journal WHERE n < $1::bigint ORDER BY n DESC LIMIT $2`,
);
/** Each kind by its index: the few entries of one are not looked for among all the others. */
const OF_KINDS = read(
  "journal-of-kinds",
  `SELECT j.* FROM unnest($3::text[]) AS k (kind) CROSS JOIN LATERAL (
     SELECT ${COLUMNS} FROM baton.journal WHERE kind = k.kind AND n < $1::bigint ORDER BY n DESC LIMIT $2
   ) AS j ORDER BY j.n DESC LIMIT $2`,
);
const ABOUT = read(
  "journal-about",
  `SELECT ${COLUMNS} FROM baton.journal WHERE subject = $3 AND n < $1::bigint AND ($4::text[] IS NULL OR kind = ANY ($4::text[]))
   ORDER BY n DESC LIMIT $2`,
);
const PURGE = write(
  "journal-purge",
  `DELETE FROM baton.journal WHERE n IN (
     SELECT n FROM (SELECT n, at FROM baton.journal ORDER BY n LIMIT $3) AS oldest WHERE at <= ${NOW} - $2::bigint
   ) RETURNING n`,
);

type Row = Omit<JournalEntry, "id" | "detail"> & { readonly n: number; readonly detail: string };

export class PostgresJournal implements JournalStore {
  readonly #ledger: StoreCache;
  readonly #terms: PostgresTerms;

  constructor({ ledger, terms }: { readonly ledger: StoreCache; readonly terms: PostgresTerms }) {
    this.#ledger = ledger;
    this.#terms = terms;
  }

  async append(entries: readonly NewEntry[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#ledger.db.query(APPEND, [
      this.#ledger.now(),
      int8s(entries.map(({ agoMs }) => Math.round(agoMs))),
      texts(entries.map(({ kind }) => kind)),
      texts(entries.map(({ node }) => node)),
      texts(entries.map(({ actor }) => actor && withoutNul(actor))),
      texts(entries.map(({ subject }) => subject && withoutNul(subject))),
      texts(entries.map(({ detail }) => JSON.stringify(detail))),
    ]);
  }

  async list({ kinds, subject, before, limit }: JournalQuery): Promise<readonly JournalEntry[]> {
    const { db } = this.#ledger;
    const end = before === undefined ? Number.MAX_SAFE_INTEGER : Number(before);
    const wanted = kinds ? texts([...new Set(kinds)]) : null;
    const rows =
      subject !== undefined
        ? await db.query<Row>(ABOUT, [end, limit, subject, wanted])
        : wanted
          ? await db.query<Row>(OF_KINDS, [end, limit, wanted])
          : await db.query<Row>(LIST, [end, limit]);
    return rows.map(({ n, detail, ...rest }) => ({
      ...rest,
      id: String(n),
      detail: JSON.parse(detail) as JournalEntry["detail"],
    }));
  }

  purge(ageMs: number, limit: number, fence: Term): Promise<number> {
    return this.#ledger.db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      return (await tx.query(PURGE, [this.#ledger.now(), ageMs, limit])).length;
    });
  }
}
