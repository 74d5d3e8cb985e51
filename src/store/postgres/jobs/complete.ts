/**
 * Ends runs that have completed, one statement for a batch. Single jobs are deleted by their numbers; of ranges, the
 * pieces that have ended are cut out of their rows.
 */

import { write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import type { Outcome, Settlement } from "../../store.ts";
import { covering, LIVE_SHARED, type Ref, rowOf } from "./ranges.ts";
import { NOW } from "./store-cache.ts";
import type { Term } from "../../../core/leadership/term.ts";
import { fenceFrom } from "../terms.ts";

const OWNED = ", owner, owner_epoch, assignment";
const STATE = `run_at, started_at, worker, lease, logs, progress, progress_message, cancel_requested, job_epoch, attempts,
  failures, interruptions, crashes, killed`;
const stateOf = (row: string): string => STATE.replaceAll(/\b[a-z_]+\b/g, `${row}.$&`);

/**
 * `gone` are the completed runs, with a `result`. Returns those that were accepted, unless it is all $4 of them, and what
 * the caller adds. `before`: CTEs that come first.
 */
export const complete = (parts: {
  readonly before?: string;
  readonly gone: string;
  readonly result: string;
  /** The owners of `gone`: columns with these values. */
  readonly owner?: { readonly owner: string; readonly owner_epoch: string };
  readonly answer?: string;
}): string => `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${parts.before ?? ""}
  gone AS (
    ${parts.gone} AND l.n = 1
    RETURNING l.seq, l.id, l.kind, l.author, ${stateOf("l")}, ${parts.result} AS result${parts.owner ? `, ${parts.owner.owner} AS owner, ${parts.owner.owner_epoch} AS owner_epoch, l.assignment` : ""}
  ),
  kept AS (
    INSERT INTO baton.done (seq, id, finished_at, status, result, author, kind, ${STATE}${parts.owner ? OWNED : ""})
    SELECT seq, id, (SELECT now FROM clock), 3, result, author, kind, ${STATE}${parts.owner ? OWNED : ""} FROM gone
  ),
  counted AS (INSERT INTO baton.tally (kind, status, n) SELECT kind, 3, count(*) FROM gone GROUP BY kind)
  SELECT CASE WHEN (SELECT count(*) FROM gone) < $4::int THEN ARRAY(SELECT seq::text FROM gone) END AS accepted${parts.answer ?? ""}`;
const MINE = "l.started_at IS NOT NULL AND l.lease = (SELECT id FROM baton.lease WHERE name = $2)";

export const COMPLETE = write(
  "settle-complete",
  complete({
    gone: `DELETE FROM baton.live l USING unnest($3::bigint[], $5::int[], $6::text[]) AS a (seq, job_epoch, result)
     WHERE l.seq = a.seq AND l.job_epoch = a.job_epoch AND ${MINE}`,
    result: "a.result",
  }),
);
/** The most common batch: first runs without a result. Comparing with an array of keys takes a third less time than a join. */
export const COMPLETE_ALIKE = write(
  "settle-complete-alike",
  complete({
    gone: `DELETE FROM baton.live l WHERE l.seq = ANY ($3::bigint[]) AND l.job_epoch = $5::int AND ${MINE}`,
    result: "NULL::text",
  }),
);

/**
 * Pieces of rows, as `completedPieces` makes them. A row that begins with a piece is deleted and any other one ends where its
 * first piece begins; what is behind a piece becomes a row of its own. The row is the one that the piece is in once it is
 * locked: if another statement has cut it meanwhile, the piece is not accepted, and its runs are settled one by one.
 */
const pieces = (fenced: boolean): string => `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${fenced ? `${fenceFrom(9)},` : ""}
  piece AS MATERIALIZED (
    SELECT a.seq, a.n, a.result, coalesce(a.author, l.author) AS ended_by, baton.id_at(l.id, (a.seq - l.seq)::int) AS id,
      l.seq AS origin, l.id AS origin_id, l.seq + l.n AS origin_end, l.author, l.kind, l.updated_at, l.priority, l.later, ${stateOf("l")}
    FROM unnest($3::bigint[], $5::int[], $6::int[], $7::text[], $8::int[]) AS a (seq, n, job_epoch, result, author)
    CROSS JOIN LATERAL (${covering("live", "a.seq", "FOR UPDATE")}) AS l
    WHERE l.job_epoch = a.job_epoch AND a.seq + a.n <= l.seq + l.n AND ${MINE} ${fenced ? "AND EXISTS (SELECT FROM fence)" : ""}
  ),
  origins AS MATERIALIZED (SELECT origin, min(seq) AS first FROM piece GROUP BY origin),
  gone AS (DELETE FROM baton.live l USING origins o WHERE l.seq = o.origin AND o.first = o.origin),
  shortened AS (
    UPDATE baton.live l SET n = o.first - o.origin FROM origins o WHERE l.seq = o.origin AND o.first > o.origin
  ),
  behind AS (
    INSERT INTO baton.live (seq, id, n, ${LIVE_SHARED})
    SELECT seq + n, baton.id_at(origin_id, (seq + n - origin)::int), until - seq - n, ${LIVE_SHARED} FROM (
      SELECT *, coalesce(lead(seq) OVER (PARTITION BY origin ORDER BY seq), origin_end) AS until FROM piece
    ) AS followed WHERE until > seq + n
  ),
  kept AS (
    INSERT INTO baton.done (seq, id, n, finished_at, status, result, author, kind, ${STATE})
    SELECT seq, id, n, (SELECT now FROM clock), 3, result, ended_by, kind, ${STATE} FROM piece
  ),
  counted AS (INSERT INTO baton.tally (kind, status, n) SELECT kind, 3, sum(n) FROM piece GROUP BY kind)
  SELECT CASE WHEN (SELECT count(*) FROM piece) < $4::int THEN ARRAY(SELECT seq::text FROM piece) END AS accepted
    ${fenced ? ", EXISTS (SELECT FROM fence) AS fenced" : ""}`;
export const COMPLETE_PIECES = write("settle-pieces", pieces(false));
export const COMPLETE_PIECES_FENCED = write("settle-pieces-fenced", pieces(true));

/** A leader's term, and for each run its author under that epoch. */
export interface Fenced {
  readonly fence: Term;
  readonly authors: readonly (number | null)[];
}

/** Settlements, with the numbers of their jobs (null where there is no such job). */
export interface Batch<One extends Settlement = Settlement> {
  readonly settlements: readonly One[];
  readonly seqs: readonly (number | null)[];
  readonly fenced?: Fenced | undefined;
}

/** So many runs of `order` from there on. */
export interface Piece {
  readonly seq: number;
  readonly from: number;
  n: number;
}

export interface Pieces {
  /** Places in the batch, by number. Null if the batch is in this order, as it is if all its jobs ended as they came. */
  readonly order: readonly number[] | null;
  readonly pieces: readonly Piece[];
}

/** In the order of their numbers, so that two calls cannot deadlock. A run that is twice in the batch is in one piece only. */
export function completedPieces(runs: Batch): Pieces {
  const { seqs } = runs;
  const order = isAscending(seqs) ? null : byNumber(seqs);
  const placeOf = (index: number): number => (order ? order[index]! : index);
  const pieces: Piece[] = [];
  let last: Piece | null = null;
  for (let index = 0; index < (order ?? seqs).length; index++) {
    const at = placeOf(index);
    if (last && seqs[at] === last.seq + last.n && alike(runs, at, placeOf(last.from))) last.n++;
    else pieces.push((last = { seq: seqs[at]!, from: index, n: 1 }));
  }
  return { order, pieces };
}

function isAscending(seqs: readonly (number | null)[]): boolean {
  for (let at = 0; at < seqs.length; at++) {
    if (seqs[at] === null || (at > 0 && seqs[at]! <= seqs[at - 1]!)) return false;
  }
  return true;
}

function byNumber(seqs: readonly (number | null)[]): number[] {
  const order = [...seqs.keys()].filter((at) => seqs[at] !== null);
  order.sort((a, b) => seqs[a]! - seqs[b]! || a - b);
  return order.filter((at, index) => index === 0 || seqs[at] !== seqs[order[index - 1]!]);
}

function alike({ settlements, fenced }: Batch, at: number, first: number): boolean {
  const one = settlements[at]!;
  const other = settlements[first]!;
  const row = rowOf(one.run.ref as Ref | null | undefined);
  return (
    row !== null &&
    row === rowOf(other.run.ref as Ref | null | undefined) &&
    resultOf(one.outcome) === null &&
    resultOf(other.outcome) === null &&
    one.run.jobEpoch === other.run.jobEpoch &&
    fenced?.authors[at] === fenced?.authors[first]
  );
}

/** The parameters from $3 on. */
export function pieceValues({ order, pieces }: Pieces, { settlements, fenced }: Batch): unknown[] {
  const firsts = pieces.map(({ from }) => (order ? order[from]! : from));
  return [
    int8s(pieces.map(({ seq }) => seq)),
    pieces.length,
    int4s(pieces.map(({ n }) => n)),
    int4s(firsts.map((at) => settlements[at]!.run.jobEpoch)),
    texts(firsts.map((at) => resultOf(settlements[at]!.outcome))),
    int4s(firsts.map((at) => fenced?.authors[at] ?? null)),
  ];
}

export function resultOf(outcome: Outcome): string | null {
  return outcome.kind === "completed" && outcome.result !== "null" ? outcome.result : null;
}
