/**
 * Lists of jobs, newest first. Reading a page blocks the event loop, so it walks a bounded number of rows by `seq`; a
 * short page has a cursor to continue with. Running jobs are known without a read, and a binary search finds the
 * position of an instant.
 */

import type { StatementSync } from "node:sqlite";
import { isFinal, type Job } from "../../../core/jobs/job.ts";
import { LISTED_FILTERS } from "../../../core/jobs/job-fields.ts";
import { listPage, type ListSource } from "../../job-list.ts";
import { runNow } from "../../script.ts";
import type { BriefJob, JobPage, JobQuery } from "../../store.ts";
import type { StoreCache } from "./store-cache.ts";
import { COLUMNS, JOINED, type Read } from "./read.ts";

/** Rows in the first piece of a page. */
const SCAN_FIRST = 1_000;
/** More are not sorted for a page. */
const SCHEDULED_FEW = 5_000;

const BETWEEN = "seq < ?1 AND seq > ?2";
const BY_SEQ = "ORDER BY seq DESC LIMIT ?3";

/** Rows to walk; `extra` are columns that only some of them need. */
const WALKS: Readonly<Record<string, string>> = {
  any: `SELECT seq FROM job WHERE ${BETWEEN} ${BY_SEQ}`,
  // A waiting job is fresh or in `live`; both are walked from the newest. With two bounds the planner would use the lower one.
  queued: `SELECT seq FROM (
      SELECT seq FROM (SELECT seq FROM job WHERE seq < ?1 AND seq > max(?2, (SELECT value FROM extra)) AND fresh = 1 ${BY_SEQ})
      UNION ALL SELECT seq FROM (SELECT seq FROM live WHERE ${BETWEEN} ${BY_SEQ})
    ) ${BY_SEQ}`,
  live: `SELECT seq FROM live WHERE ${BETWEEN} ${BY_SEQ}`,
  scheduled: `SELECT seq FROM (SELECT seq FROM live WHERE status = 0 ORDER BY run_at, seq LIMIT ${SCHEDULED_FEW + 1}) WHERE ${BETWEEN} ${BY_SEQ}`,
  processing: `SELECT value AS seq FROM json_each((SELECT value FROM extra)) WHERE value < ?1 AND value > ?2 ORDER BY value DESC LIMIT ?3`,
  completed: `SELECT seq FROM done WHERE ${BETWEEN} ${BY_SEQ}`,
  unusual: `SELECT seq FROM done WHERE status = ?7 AND status <> 3 AND ${BETWEEN} ${BY_SEQ}`,
  // A filter on a list field walks its side table (core/jobs/job-fields.ts), in the order of the jobs.
  ...Object.fromEntries(
    LISTED_FILTERS.map((name) => [
      name,
      `SELECT seq FROM job_${name} WHERE value = (SELECT value FROM extra) AND ${BETWEEN} ${BY_SEQ}`,
    ]),
  ),
};

const BRIEF = `j.seq, j.id, j.kind, j.created_at AS "createdAt", d.finished_at AS "finishedAt", coalesce(d.status, l.status, 1) AS status,
  coalesce(d.run_at, l.run_at, j.created_at) AS "runAt", coalesce(d.error, l.error) AS error`;

/** Only jobs of these kinds; null for all. */
const OF_KINDS = "(?4 IS NULL OR j.kind IN (SELECT value FROM json_each(?4)))";
const STATUS_NOW =
  "coalesce(d.status, CASE WHEN l.status = 0 AND l.run_at <= ?10 THEN 1 ELSE l.status END, 1)";

/** The cross join keeps the planner from reversing the join, which would walk through all jobs. */
const pageOf = (columns: string, walk: string): string => `
  WITH extra (value) AS (SELECT ?11), walk AS MATERIALIZED (${WALKS[walk]!})
  SELECT w.walked, page.* FROM (SELECT CASE WHEN count(*) = ?3 THEN min(seq) END AS walked FROM walk) AS w
  LEFT JOIN (
    SELECT ${columns} FROM walk s CROSS JOIN job j ON j.seq = s.seq ${JOINED}
    WHERE ${OF_KINDS} AND j.created_at >= ?5 AND j.created_at < ?6 AND (?7 IS NULL OR ${STATUS_NOW} = ?7)
      AND (?8 IS NULL OR json_extract(coalesce(d.error, l.error), '$.code') = ?8)
    ORDER BY j.seq DESC LIMIT ?9
  ) AS page ORDER BY page.seq DESC`;

export function jobList(
  cache: StoreCache,
  read: Read,
): (query: JobQuery, brief?: boolean) => JobPage<Job | BriefJob> {
  const { file } = cache;
  const scheduled = file.prepare("SELECT count(*) AS n FROM (SELECT 1 FROM live WHERE status = 0 LIMIT ?)");
  const nearest = file.prepare("SELECT seq, created_at FROM job WHERE seq <= ? ORDER BY seq DESC LIMIT 1");
  /** Prepared on first use: lists are rare, and their statements are long. */
  const prepared = new Map<string, StatementSync>();
  const prepare = (shape: string, columns: string, walk: string): StatementSync => {
    const known = prepared.get(shape + walk) ?? file.prepare(pageOf(columns, walk));
    prepared.set(shape + walk, known);
    return known;
  };
  const source = (shape: string, columns: string): ListSource => ({
    scanFirst: SCAN_FIRST,
    kinds: (queue, task) =>
      cache
        .kinds()
        .filter((kind) => (queue ?? kind.queue) === kind.queue && (task ?? kind.task) === kind.task)
        .map(({ id }) => id),
    seek: (at) => {
      let [low, high] = [0, cache.lastSeq + 1];
      while (high - low > 1) {
        const half = Math.floor((low + high) / 2);
        const found = nearest.get(half);
        if (!found || (found["created_at"] as number) < at) low = half;
        else high = found["seq"] as number;
      }
      return high;
    },
    walkFor: (status) => {
      if (status === undefined) return "any";
      if (status === "queued" || status === "processing" || status === "completed") return status;
      if (isFinal(status)) return "unusual";
      return (scheduled.get(SCHEDULED_FEW + 1)!["n"] as number) <= SCHEDULED_FEW ? "scheduled" : "live";
    },
    read: (walk, { before, after, scan, limit, kinds, since, until, status, errorCode, listed }) => {
      const numbers = kinds && JSON.stringify(kinds);
      const extra =
        listed ?? (walk === "processing" ? JSON.stringify([...cache.running.keys()]) : cache.head);
      const filter = [numbers, since, until, status, errorCode] as const;
      return prepare(shape, columns, walk).all(
        before,
        after,
        scan,
        ...filter,
        limit,
        cache.clock.now(),
        extra,
      );
    },
  });
  const [whole, briefly] = [source("whole ", COLUMNS), source("brief ", BRIEF)];
  return (query, brief = false) => {
    const { rows, cursor } = runNow(listPage(query, brief ? briefly : whole));
    return { jobs: rows.map((row) => (brief ? read.brief(row) : read.job(row))), cursor };
  };
}
