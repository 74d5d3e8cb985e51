/**
 * Ends runs that have completed, one statement for a batch. Single jobs are deleted by their numbers; of ranges, the
 * pieces that have ended are cut out of their rows.
 */

import { write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import { covering, LIVE_SHARED } from "./ranges.ts";
import { NOW } from "./store-cache.ts";
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

/** Completed runs, as columns: by their places in a batch of thousands, objects for each would be most of the work. */
export interface CompletedRuns {
  /** Null where there is no such job. */
  readonly seqs: readonly (number | null)[];
  /** The first number of the row that was claimed. */
  readonly rows: readonly (number | null)[];
  readonly epochs: readonly number[];
  readonly results: readonly (string | null)[];
  readonly authors: readonly (number | null)[];
}

export interface Piece {
  readonly seq: number;
  /** The place of its first run in the batch, and of all of them. */
  readonly first: number;
  readonly places: number[];
}

/** In the order of their numbers, so that two calls cannot deadlock. A run that is twice in the batch is in one piece only. */
export function completedPieces(runs: CompletedRuns): readonly Piece[] {
  const { seqs } = runs;
  const inOrder = [...seqs.keys()].filter((at) => seqs[at] !== null);
  inOrder.sort((a, b) => seqs[a]! - seqs[b]! || a - b);
  const pieces: Piece[] = [];
  let last: Piece | null = null;
  for (const at of inOrder) {
    const behind: number = last ? seqs[at]! - last.seq - last.places.length : 0;
    if (behind < 0) continue;
    if (last && behind === 0 && alike(runs, at, last.first)) last.places.push(at);
    else pieces.push((last = { seq: seqs[at]!, first: at, places: [at] }));
  }
  return pieces;
}

function alike({ rows, epochs, results, authors }: CompletedRuns, at: number, first: number): boolean {
  return (
    rows[at] !== null &&
    rows[at] === rows[first] &&
    results[at] === null &&
    results[first] === null &&
    epochs[at] === epochs[first] &&
    authors[at] === authors[first]
  );
}

/** The parameters from $3 on. */
export function pieceValues(
  pieces: readonly Piece[],
  { epochs, results, authors }: CompletedRuns,
): unknown[] {
  return [
    int8s(pieces.map(({ seq }) => seq)),
    pieces.length,
    int4s(pieces.map(({ places }) => places.length)),
    int4s(pieces.map(({ first }) => epochs[first]!)),
    texts(pieces.map(({ first }) => results[first]!)),
    int4s(pieces.map(({ first }) => authors[first] ?? null)),
  ];
}
