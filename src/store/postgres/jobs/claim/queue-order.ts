/**
 * The order of waiting jobs. Each kind (queue and task) has its own line, ordered by an index. A claim merges the heads
 * of the lines from which it may take, so that a million jobs of an unknown task or a paused queue cost nothing.
 */

import { type Statement, write } from "../../../../platform/drivers/postgres/postgres.ts";
import { texts } from "../../../../platform/drivers/postgres/arrays.ts";
import type { ClaimRequest } from "../../../store.ts";
import { NOW, type StoreCache } from "../store-cache.ts";

/** Due rows that one claim promotes: limits its duration after a long downtime. */
const PROMOTE_MAX = 5_000;

const PROMOTE = write(
  "claim-promote",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   due AS MATERIALIZED (
     SELECT seq FROM baton.live WHERE later AND run_at <= (SELECT now FROM clock)
     ORDER BY run_at, seq LIMIT ${PROMOTE_MAX} FOR UPDATE
   ),
   promoted AS (UPDATE baton.live l SET later = false FROM due WHERE l.seq = due.seq)
   SELECT CASE WHEN (SELECT count(*) FROM due) = ${PROMOTE_MAX} THEN 0 ELSE
     (SELECT min(run_at) FROM baton.live WHERE later AND run_at > (SELECT now FROM clock)) - (SELECT now FROM clock)
   END AS next_due_in_ms`,
);

/** A statement that takes jobs, in one round trip with the promotion of those that have become due. $1 is the time. */
export async function promoteAnd<Row>(
  cache: StoreCache,
  statement: Statement,
  values: readonly unknown[],
): Promise<[rows: Row[], nextDueInMs: number | null]> {
  const now = cache.now();
  const [due, rows] = await cache.db.pair<{ next_due_in_ms: number | null }, Row>(
    [PROMOTE, [now]],
    [statement, [now, ...values]],
  );
  return [rows, due?.[0]?.next_due_in_ms ?? null];
}

/** Free rows of a line. */
export const WAITING = "l.started_at IS NULL AND NOT l.later AND NOT l.suspect";
export const IN_ORDER = "ORDER BY priority DESC, run_at, seq";

/**
 * Lines that one claim merges: those with the first heads of all. With hundreds of lines it would lock hundreds of rows for
 * each one that it takes; who wants more asks again.
 */
export const LINES_MAX = 8;

export const IN_LINE = "NOT later AND NOT suspect";

/**
 * The lines of these kinds `k`, one for each priority, as `line`: the query jumps from one to the next. A part of WITH
 * RECURSIVE.
 */
export const linesByPriority = (which = "true"): string => `
  line AS (
    SELECT k.id AS kind, (SELECT max(priority) FROM baton.live WHERE kind = k.id AND ${IN_LINE}) AS priority
    FROM baton.kind k WHERE ${which}
    UNION ALL
    SELECT p.kind, (SELECT max(priority) FROM baton.live WHERE kind = p.kind AND priority < p.priority AND ${IN_LINE})
    FROM line p WHERE p.priority IS NOT NULL
  )`;

/** A look at the first row of each line, without locks. */
const first = (which: string): string => `
  SELECT kinds.id, head.n, head.priority, head.run_at, head.seq FROM kinds CROSS JOIN LATERAL (
    SELECT l.n, l.priority, l.run_at, l.seq FROM baton.live l WHERE l.kind = kinds.id AND ${WAITING} AND ${which}
    ORDER BY l.priority DESC, l.run_at, l.seq LIMIT 1
  ) AS head`;

/** The lines of `kinds` in which a job waits, as `lines`. */
export const WAITING_LINES = `
  lines AS MATERIALIZED (SELECT id FROM (${first("true")}) AS heads ${IN_ORDER} LIMIT ${LINES_MAX})`;

/** The same, but all of them if they are few: the look costs as much as the first rows that are then locked. */
export const lines = (which = "true", max: number | string = LINES_MAX): string => `
  few AS MATERIALIZED (SELECT WHERE (SELECT count(*) FROM kinds) <= ${LINES_MAX}),
  lines AS MATERIALIZED (
    SELECT id FROM kinds WHERE EXISTS (SELECT FROM few)
    UNION ALL (
      SELECT id FROM (${first(which)}) AS heads WHERE NOT EXISTS (SELECT FROM few) ${IN_ORDER} LIMIT ${max}
    )
  )`;

const head = (of: string, suspect: string, rows: string, which: string): string => `
  SELECT head.* FROM ${of} CROSS JOIN LATERAL (
    SELECT l.ctid AS at, l.seq, l.n, l.priority, l.run_at, l.suspect FROM baton.live l
    WHERE l.kind = ${of}.id AND l.started_at IS NULL AND NOT l.later AND ${suspect} AND ${which}
    ORDER BY l.priority DESC, l.run_at, l.seq LIMIT ${rows} FOR UPDATE SKIP LOCKED
  ) AS head`;

/** Free rows, in order for each line. Those that another claim has locked are skipped. */
export const heads = (rows: string, which = "true"): string => head("lines", "NOT l.suspect", rows, which);
/** The first suspect, of any kind; 0 rows for none. */
export const suspects = (rows: string, which = "true"): string =>
  `${head("kinds", "l.suspect", rows, which)} ${IN_ORDER} LIMIT 1`;

/**
 * The first of these rows that have so many jobs, as `picked`, with the number of jobs to take: all, but of the last row.
 * `cut` is that row, if it has more.
 */
export const picked = (rows: string, limit: string): string => `
  picked AS MATERIALIZED (
    SELECT at, seq, suspect, priority, run_at, least(had, ${limit} - before)::smallint AS n, had FROM (
      SELECT *, n AS had, sum(n) OVER (${IN_ORDER} ROWS UNBOUNDED PRECEDING) - n AS before FROM (${rows}) AS line
    ) AS counted WHERE before < ${limit}
  ),
  cut AS MATERIALIZED (SELECT at, n FROM picked WHERE n < had)`;

/** A change to the row `l` that is taken, and to what remains of it. A waiting range differs from others in these columns only. */
export const SLICE = "n = CASE WHEN l.ctid = (SELECT at FROM cut) THEN (SELECT n FROM cut) ELSE l.n END";
export const REST = `
  rest AS (
    INSERT INTO baton.live (seq, id, n, run_at, updated_at, kind, author, priority, later)
    SELECT l.seq + cut.n, baton.id_at(l.id, cut.n), l.n - cut.n, l.run_at, l.updated_at, l.kind, l.author, l.priority, false
    FROM cut JOIN baton.live l ON l.ctid = cut.at WHERE l.seq IN (SELECT seq FROM taken)
  )`;

/**
 * Who finds only rows that another claimant has locked looks again instead of going to sleep: that one may hold more than it
 * takes, of several lines or of one range. Each look meets at least one claim that has got something, so that this is more
 * than the claimants that usually meet; who finds nothing in all of them would sleep beside waiting jobs.
 */
export const CONTENDED_TRIES = 32;
export const CONTENDED = `EXISTS (
    SELECT FROM (${first("true")}) AS in_sight WHERE in_sight.n > 1 OR (SELECT count(*) FROM kinds) > 1
  )`;

/**
 * How many rows a claim looks at in each line: as many as its jobs filled last time. Rows beyond those that it takes are
 * locked for nothing, and other claims pass over them.
 */
export class RowsWanted {
  #jobsPerRow = 1;

  for(jobs: number): number {
    return Math.min(Math.ceil(jobs / this.#jobsPerRow) + 1, Math.max(jobs, 0));
  }

  learn(rows: number, jobs: number): void {
    if (rows > 0) this.#jobsPerRow = jobs / rows;
  }
}

/** Whether more may be waiting, for a claim that got less than it wanted: it has used up its rows, or its lines. */
export function mayHaveMore(rows: number, wanted: number): boolean {
  return rows >= Math.min(wanted, LINES_MAX);
}

/** The lines, as `kinds`, for the parameters tasks, queues (null for all) and excluded queues. */
export const kinds = (tasks: string, queues: string, exceptQueues: string, only: string): string => `
  kinds AS MATERIALIZED (
    SELECT k.id FROM baton.kind k LEFT JOIN baton.queue q ON q.name = k.queue
    WHERE k.task = ANY (${tasks}::text[]) AND (${queues}::text[] IS NULL OR k.queue = ANY (${queues}::text[]))
      AND q.paused IS NOT TRUE AND k.queue <> ALL (${exceptQueues}::text[]) AND ${only}
    ORDER BY k.id
  )`;

/** The first values of a claim, from $2 on. */
export function claimValues(
  request: ClaimRequest,
  { worker, author }: { readonly worker: number; readonly author: number },
): unknown[] {
  return [
    request.lease,
    request.leaseMs,
    texts([...request.tasks]),
    request.queues && texts([...request.queues]),
    Math.max(request.limit, 0),
    request.suspect,
    worker,
    author,
    request.opens,
    texts([...request.exceptQueues]),
  ];
}
