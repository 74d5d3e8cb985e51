/**
 * Lists of jobs, newest first. The matching jobs may be anywhere among millions, so a page walks a bounded number of
 * narrow rows (`live` and `done`, by `seq`) and reads `job` only for matches. A short page has a cursor to continue
 * with.
 *
 *   any, queued        by seq
 *   processing         at the heads of the lines, where every claim takes from
 *   scheduled          by their index if they are few, else by seq
 *   finished           by seq, the unusual ones by their index
 *
 * Instants are found first: `seq` and `created_at` grow together, except for jobs submitted at the same moment, so a
 * binary search finds the first and the last row.
 */

import { isFinal, type Job } from "../../../core/jobs/job.ts";
import { LISTED_FILTERS } from "../../../core/jobs/job-fields.ts";
import { read, type Statement } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s } from "../../../platform/drivers/postgres/arrays.ts";
import { listPage, type ListSource } from "../../job-list.ts";
import { STATUS } from "../../job-row.ts";
import { runAwaited } from "../../script.ts";
import type { BriefJob, JobPage, JobQuery, JobStore } from "../../store.ts";
import type { StoreCache } from "./store-cache.ts";
import { IN_LINE, linesByPriority } from "./claim/queue-order.ts";
import { RANGE_MAX, STATE_OF_JOB } from "./ranges.ts";
import { briefOf, COLUMNS, JOINED, jobOf, STATUS_NOW, WAITING_OR_RUNNING } from "./read.ts";

/** Rows in the first piece of a page. */
const SCAN_FIRST = 2_000;
/** More are not sorted for a page. */
const SCHEDULED_FEW = 10_000;
/** Rows of one line. Running jobs are at its head, so if none of these runs, none of the line does. */
const LINE_MAX = 2_000;
const LINE_FIRST = 200;

const BETWEEN = "seq < $2 AND seq > $10";
const ROW = "seq, id, kind, error";
const BY_SEQ = "ORDER BY seq DESC LIMIT $9::int";

/** Only completed jobs are in ranges. */
const finished = (status: number): string =>
  `SELECT ${ROW} FROM baton.done WHERE status = ${status} AND ${BETWEEN} ${BY_SEQ}`;

/** The newest jobs of a table, also those in ranges. The first row may be one that the page before has begun. */
const newest = (table: "live" | "done", columns: string): string =>
  `SELECT seq + place AS seq, baton.id_at(id, place) AS id, ${columns} FROM (
     SELECT *, sum(n) OVER (ORDER BY seq DESC) - n AS before FROM (
       SELECT seq, id, n, ${columns} FROM baton.${table} WHERE seq < $2 AND seq > $10::bigint - ${RANGE_MAX} ${BY_SEQ}
     ) AS newest_rows
   ) AS rows CROSS JOIN LATERAL generate_series(0, n - 1) AS place
   WHERE before < $9::int + ${RANGE_MAX} AND seq + place < $2 AND seq + place > $10 ORDER BY 1 DESC LIMIT $9::int`;

const ofLine = (columns: string, limit: string | number): string =>
  `SELECT ${columns} FROM baton.live WHERE kind = line.kind AND priority = line.priority AND ${IN_LINE} ORDER BY run_at, seq LIMIT ${limit}`;

const RUNNING = "started_at IS NOT NULL";

/** Rows to walk; `fits` is the part of the filter that applies to their own columns. */
const WALKS: Readonly<Record<string, string>> = {
  // Each has its own limit: otherwise the planner would sort all rows of both.
  any: `SELECT ${ROW} FROM (
      (${newest("live", "kind, error")}) UNION ALL (${newest("done", "kind, error")})
    ) AS both_places ${BY_SEQ}`,
  waiting: newest("live", "kind, error, started_at, run_at"),
  scheduled: `SELECT ${ROW}, started_at, run_at FROM (
      SELECT ${ROW}, started_at, run_at FROM baton.live WHERE later ORDER BY run_at, seq LIMIT ${SCHEDULED_FEW + 1}
    ) AS later WHERE ${BETWEEN} ${BY_SEQ}`,
  processing: `SELECT ${ROW} FROM (
      SELECT l.seq + place AS seq, baton.id_at(l.id, place) AS id, l.kind, l.error FROM line CROSS JOIN LATERAL (
        ${ofLine(`${ROW}, n, started_at`, `CASE WHEN EXISTS (SELECT FROM (${ofLine("started_at", LINE_FIRST)}) AS first WHERE ${RUNNING}) THEN ${LINE_MAX} ELSE 0 END`)}
      ) AS l CROSS JOIN LATERAL generate_series(0, l.n - 1) AS place WHERE l.${RUNNING}
      UNION ALL SELECT ${ROW} FROM baton.live WHERE suspect AND NOT later AND ${RUNNING}
    ) AS running WHERE ${BETWEEN} ${BY_SEQ}`,
  // Nearly all finished jobs have completed.
  completed: newest("done", "kind, error, status"),
  failed: finished(STATUS.failed),
  cancelled: finished(STATUS.cancelled),
  // A filter on a list field walks its side table (core/jobs/job-fields.ts), in the order of the jobs.
  ...Object.fromEntries(
    LISTED_FILTERS.map((name) => [
      name,
      `SELECT seq, id FROM baton.job_${name} WHERE value = $11::text AND ${BETWEEN} ${BY_SEQ}`,
    ]),
  ),
};

const LINES = `${linesByPriority("$3::int[] IS NULL OR k.id = ANY ($3::int[])")},`;

/** The part of the filter that applies to the columns of a walked row; a side table has only the job. */
const ASKED = `AND ($3::int[] IS NULL OR walk.kind = ANY ($3::int[]))
         AND ($8::text IS NULL OR position(to_json($8::text)::text IN walk.error) > 0)`;
const FITS: { readonly [walk: string]: string } = {
  waiting: `AND ${WAITING_OR_RUNNING("walk")} = $6`,
  scheduled: `AND ${WAITING_OR_RUNNING("walk")} = $6`,
  completed: `AND walk.status = ${STATUS.completed}`,
};

const BRIEF = `j.seq, b.name || '-' || j.id::text AS id, k.queue, k.task, j.created_at AS "createdAt", d.finished_at AS "finishedAt",
  ${STATUS_NOW} AS status, coalesce(d.error, l.error) AS error`;
const BRIEF_JOINED = `JOIN baton.kind k ON k.id = j.kind JOIN baton.name b ON b.id = j.birthplace
  ${STATE_OF_JOB}`;

/**
 * With the last row that was read, if there may be more after it; also if nothing matches. `OFFSET 0` keeps the planner
 * from reversing the join.
 */
const pagesOf = (name: string, columns: string, joined: string): Readonly<Record<string, Statement>> =>
  Object.fromEntries(
    Object.entries(WALKS).map(([walk, rows]) => [
      walk,
      read(
        `list-${name}-${walk}`,
        `WITH RECURSIVE ${walk === "processing" ? LINES : ""}
     walk AS MATERIALIZED (${rows})
     SELECT w.walked, page.* FROM (SELECT CASE WHEN count(*) = $9::int THEN min(seq) END AS walked FROM walk) AS w
     LEFT JOIN LATERAL (
       SELECT one.* FROM walk CROSS JOIN LATERAL (
         SELECT ${columns} FROM baton.job j ${joined}
         WHERE j.id = walk.id AND ($3::int[] IS NULL OR j.kind = ANY ($3::int[])) AND j.created_at >= $4 AND j.created_at < $5
           AND ($6::int IS NULL OR ${STATUS_NOW} = $6) AND ($8::text IS NULL OR coalesce(d.error, l.error)::jsonb ->> 'code' = $8)
         OFFSET 0
       ) AS one
       WHERE true ${LISTED_FILTERS.includes(walk) ? "" : ASKED} ${FITS[walk] ?? ""}
       ORDER BY walk.seq DESC LIMIT $7::int
     ) AS page ON true ORDER BY page.seq DESC`,
      ),
    ]),
  );
const WHOLE = pagesOf("jobs", COLUMNS, JOINED);
const BRIEFLY = pagesOf("brief", BRIEF, BRIEF_JOINED);

const KINDS = read(
  "list-kinds",
  "SELECT id FROM baton.kind WHERE ($1::text IS NULL OR queue = $1) AND ($2::text IS NULL OR task = $2)",
);
const SCHEDULED = read(
  "list-scheduled",
  `SELECT count(*) AS n FROM (SELECT FROM baton.live WHERE later LIMIT ${SCHEDULED_FEW + 1}) AS few`,
);
/** The first job that was created at or after an instant, approximately (SEEK_MARGIN_MS). */
const SEEK = read(
  "list-seek",
  `WITH RECURSIVE search (low, high) AS (
     SELECT least((SELECT min(seq) FROM baton.live), (SELECT min(seq) FROM baton.done)) - 1,
       greatest((SELECT max(seq) FROM baton.live), (SELECT max(seq) FROM baton.done)) + 1
     UNION ALL
     SELECT CASE WHEN found.at < $1 THEN half.seq ELSE half.low END, CASE WHEN found.at < $1 THEN half.high ELSE half.seq END
     FROM (SELECT low, high, (low + high) / 2 AS seq FROM search WHERE high - low > 1) AS half
     CROSS JOIN LATERAL (
       SELECT coalesce((
         SELECT j.created_at FROM (
           (SELECT seq, id FROM baton.live WHERE seq <= half.seq ORDER BY seq DESC LIMIT 1)
           UNION ALL (SELECT seq, id FROM baton.done WHERE seq <= half.seq ORDER BY seq DESC LIMIT 1)
           ORDER BY seq DESC LIMIT 1
         ) AS nearest JOIN baton.job j ON j.id = nearest.id
       ), 0) AS at
     ) AS found
   )
   SELECT min(high) AS seq FROM search`,
);

export function jobList(cache: StoreCache): JobStore["list"] {
  const { db } = cache;
  const source = (statements: typeof WHOLE): ListSource => ({
    scanFirst: SCAN_FIRST,
    kinds: async (queue, task) => {
      const rows = await db.query<{ id: number }>(KINDS, [queue ?? null, task ?? null]);
      return rows.map(({ id }) => id);
    },
    seek: async (at) => (await db.query<{ seq: number | null }>(SEEK, [at]))[0]?.seq ?? null,
    walkFor: async (status) => {
      if (status === undefined) return "any";
      if (isFinal(status) || status === "processing") return status;
      if (status === "queued") return "waiting";
      const [row] = await db.query<{ n: number }>(SCHEDULED);
      return row!.n <= SCHEDULED_FEW ? "scheduled" : "waiting";
    },
    read: (walk, { before, after, scan, limit, kinds, since, until, status, errorCode, listed }) => {
      const values = [
        cache.now(),
        before,
        kinds && int4s(kinds),
        since,
        until,
        status,
        limit,
        errorCode,
        scan,
        after,
      ];
      return db.query(statements[walk]!, listed === null ? values : [...values, listed]);
    },
  });
  const [whole, briefly] = [source(WHOLE), source(BRIEFLY)];
  return (async (query: JobQuery, brief?: true): Promise<JobPage<Job | BriefJob>> => {
    const { rows, cursor } = await runAwaited(listPage(query, brief ? briefly : whole));
    return { jobs: rows.map(brief ? briefOf : jobOf), cursor };
  }) as JobStore["list"];
}
