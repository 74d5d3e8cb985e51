/** A leader's marks on due jobs: which are put on, which time out, and how many there are. */

import type { Term } from "../../core/term.ts";
import { read, type Statement, write } from "../../platform/drivers/postgres.ts";
import { int8s, texts } from "../../platform/drivers/postgres-arrays.ts";
import type { Dispatched, DispatchedAssignment, DispatchedJob, DispatchRequest } from "../ownership.ts";
import { type Ledger, NOW } from "./ledger.ts";
import { heads, IN_ORDER, kinds, PROMOTE } from "./line.ts";
import { type Row, TakenRows, takenRows } from "./taken-rows.ts";
import { fenceFrom, type PostgresTerms, termValues } from "./terms.ts";
import { walk } from "./walk.ts";

/**
 * One statement is the whole transaction, and holds the term. Suspects are numbered apart, so that each has an assignment of
 * its own.
 */
const DISPATCH: Statement = {
  name: "dispatch",
  readOnly: false,
  arrays: true,
  text: `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${fenceFrom(2)},
  ${kinds("$6", "$7", "$8", "EXISTS (SELECT FROM fence)")},
  line AS MATERIALIZED (
    SELECT at, suspect, row_number() OVER (PARTITION BY suspect ${IN_ORDER}) - 1 AS n FROM (
      (${heads(false, "$9::int", "l.assignment IS NULL")})
      UNION ALL (${heads(true, "CASE WHEN $10::boolean THEN 1 ELSE 0 END", "l.assignment IS NULL")} ${IN_ORDER} LIMIT 1)
      ${IN_ORDER} LIMIT $9::int
    ) AS merged
  ),
  picked AS MATERIALIZED (
    SELECT at, max(made) OVER (PARTITION BY suspect, n / $11::int) AS assignment FROM (
      SELECT at, suspect, n, CASE WHEN n % $11::int = 0 THEN nextval('baton.assignment_seq') END AS made FROM line
    ) AS numbered
  ),
  taken AS (
    UPDATE baton.live l SET assignment = picked.assignment FROM picked WHERE l.ctid = picked.at
    RETURNING l.seq, l.id, l.run_at, l.job_epoch + 1 AS job_epoch, l.attempts + 1 AS attempts, l.failures, l.interruptions,
      l.crashes, l.assignment
  ),
  parts AS MATERIALIZED (SELECT assignment, string_agg(seq::text, ' ') AS seqs FROM taken GROUP BY assignment),
  made AS (
    INSERT INTO baton.assignment (id, leader_epoch, created_at, unowned_since, state)
    SELECT assignment, $5::bigint, clock.now, clock.now, 'unowned' FROM clock, parts
  )
  ${takenRows(12, "NULL::bigint, NULL::boolean")}
  UNION ALL
  SELECT NULL, NULL, seqs, NULL, NULL, NULL, NULL, assignment, NULL FROM parts
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true WHERE NOT EXISTS (SELECT FROM fence)`,
};

type DispatchRow = [
  ...row: Row,
  /** In a row that stands for no job: its payload is the numbers of the jobs. */
  assignment: number | null,
  fenced: boolean | null,
];

/** Without an index: what is marked is looked for every few seconds, and marked many times in each of them. */
const MARKED = "l.assignment IS NOT NULL AND NOT l.running";
const OLD = read(
  "undispatch-old",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now)
   SELECT l.seq, l.assignment FROM baton.live l LEFT JOIN baton.assignment s ON s.id = l.assignment
   WHERE ${MARKED} AND (s.id IS NULL OR s.created_at <= (SELECT now FROM clock) - $2::bigint)`,
);
/** Looked at again: since it was found, one may have been accepted, or marked anew. */
const UNDISPATCH = write(
  "undispatch",
  `UPDATE baton.live l SET assignment = NULL FROM unnest($1::bigint[], $2::bigint[]) AS a (seq, assignment)
   WHERE l.seq = a.seq AND l.assignment = a.assignment AND NOT l.running RETURNING l.kind`,
);
const OUTSTANDING = read(
  "outstanding",
  `SELECT l.kind, count(*) AS jobs FROM baton.live l WHERE ${MARKED} GROUP BY l.kind`,
);

export class Dispatch {
  readonly #ledger: Ledger;
  readonly #terms: PostgresTerms;
  readonly #rows: TakenRows;

  constructor(ledger: Ledger, terms: PostgresTerms) {
    this.#ledger = ledger;
    this.#terms = terms;
    this.#rows = new TakenRows(ledger);
  }

  async run(request: DispatchRequest, fence: Term): Promise<Dispatched> {
    const { expected } = this.#rows;
    const now = this.#ledger.now();
    const [due, rows] = await this.#ledger.db.pair<{ next_due_in_ms: number | null }, DispatchRow>(
      [PROMOTE, [now]],
      [
        DISPATCH,
        [
          now,
          ...termValues(fence),
          texts([...request.tasks]),
          request.queues && texts([...request.queues]),
          texts([...request.exceptQueues]),
          Math.max(request.limit, 0),
          request.suspect,
          Math.max(request.size, 1),
          ...expected,
        ],
      ],
    );
    if (rows[0]?.[8]) throw await this.#terms.refusal(fence);
    const jobs = await this.#rows.jobs(rows, expected, {});
    return { assignments: inParts(rows, jobs), nextDueInMs: due?.[0]?.next_due_in_ms ?? null };
  }

  /** The walk comes first and holds nothing: in the transaction, it would keep the next leader from its grant. */
  async undispatch(olderThanMs: number, fence: Term): Promise<ReadonlyMap<string, number>> {
    const { db } = this.#ledger;
    const old = await db.transaction((tx) =>
      walk<{ seq: number; assignment: number }>(tx, OLD, [this.#ledger.now(), olderThanMs]),
    );
    old.sort((a, b) => a.seq - b.seq);
    const rows = await db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      if (old.length === 0) return [];
      return tx.query<{ kind: number }>(UNDISPATCH, [
        int8s(old.map(({ seq }) => seq)),
        int8s(old.map(({ assignment }) => assignment)),
      ]);
    });
    return this.#byQueue(rows.map(({ kind }) => ({ kind, jobs: 1 })));
  }

  async outstanding(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#ledger.db.transaction((tx) =>
      walk<{ kind: number; jobs: number }>(tx, OUTSTANDING),
    );
    return this.#byQueue(rows);
  }

  async #byQueue(
    counts: readonly { readonly kind: number; readonly jobs: number }[],
  ): Promise<ReadonlyMap<string, number>> {
    await this.#ledger.learnKinds(new Set(counts.map(({ kind }) => kind)));
    const queues = new Map<string, number>();
    for (const { kind, jobs } of counts) {
      const { queue } = this.#ledger.kind(kind);
      queues.set(queue, (queues.get(queue) ?? 0) + jobs);
    }
    return queues;
  }
}

/** Each assignment with its jobs, in the order of the first of them. */
function inParts(rows: readonly DispatchRow[], jobs: readonly DispatchedJob[]): DispatchedAssignment[] {
  const assignmentOf = new Map<number, number>();
  for (const [, , seqs, , , , , assignment] of rows) {
    if (assignment !== null) for (const seq of seqs.split(" ")) assignmentOf.set(Number(seq), assignment);
  }
  const parts = new Map<number, DispatchedJob[]>();
  for (const job of jobs) {
    const assignment = assignmentOf.get(job.ref as number)!;
    const part = parts.get(assignment);
    if (part) part.push(job);
    else parts.set(assignment, [job]);
  }
  return [...parts].map(([id, part]) => ({ id, jobs: part }));
}
