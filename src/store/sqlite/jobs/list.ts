/**
 * Lists of jobs, newest first. Reading a page blocks the event loop, so it walks a bounded number of rows by `seq`; a
 * short page has a cursor to continue with. Running jobs are known without a read, and a binary search finds the
 * position of an instant.
 */

import { isFinal, type Job } from "../../../core/jobs/job.ts";
import { LISTED_FILTERS, listedFilter } from "../../../core/jobs/job-fields.ts";
import { cursorSeq, SEEK_MARGIN_MS, walkPage } from "../../job-list.ts";
import { runNow } from "../../script.ts";
import type { BriefJob, JobPage, JobQuery } from "../../store.ts";
import type { StoreCache } from "./store-cache.ts";
import { COLUMNS, JOINED, type Read } from "./read.ts";
import { STATUS } from "../../job-row.ts";

/** Rows in the first piece of a page. */
const SCAN_FIRST = 1_000;
/** More are not sorted for a page. */
const SCHEDULED_FEW = 5_000;

const BETWEEN = "seq < ?1 AND seq > ?2";
const BY_SEQ = "ORDER BY seq DESC LIMIT ?3";

/** Rows to walk; `extra` are columns that only some of them need. */
const WALKS = {
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
} as const;
type Walk = keyof typeof WALKS;

const BRIEF = `j.seq, j.id, j.kind, j.created_at AS "createdAt", d.finished_at AS "finishedAt", coalesce(d.status, l.status, 1) AS status,
  coalesce(d.run_at, l.run_at, j.created_at) AS "runAt", coalesce(d.error, l.error) AS error`;

/** Only jobs of these kinds; null for all. */
const OF_KINDS = "(?4 IS NULL OR j.kind IN (SELECT value FROM json_each(?4)))";
const STATUS_NOW =
  "coalesce(d.status, CASE WHEN l.status = 0 AND l.run_at <= ?10 THEN 1 ELSE l.status END, 1)";

/** Prepared on first use: lists are rare, and their statements are long. */
type Pages = (walk: Walk) => ReturnType<StoreCache["file"]["prepare"]>;

export class List {
  readonly #cache: StoreCache;
  readonly #read: Read;
  readonly #whole: Pages;
  readonly #brief: Pages;
  readonly #sql;

  constructor(cache: StoreCache, read: Read) {
    this.#cache = cache;
    this.#read = read;
    const { file } = cache;
    const prepare = (columns: string, walk: Walk) =>
      file.prepare(
        // The cross join keeps the planner from reversing the join, which would walk through all jobs.
        `WITH extra (value) AS (SELECT ?11), walk AS MATERIALIZED (${WALKS[walk]})
         SELECT w.walked, page.* FROM (SELECT CASE WHEN count(*) = ?3 THEN min(seq) END AS walked FROM walk) AS w
         LEFT JOIN (
           SELECT ${columns} FROM walk s CROSS JOIN job j ON j.seq = s.seq ${JOINED}
           WHERE ${OF_KINDS} AND j.created_at >= ?5 AND j.created_at < ?6 AND (?7 IS NULL OR ${STATUS_NOW} = ?7)
             AND (?8 IS NULL OR json_extract(coalesce(d.error, l.error), '$.code') = ?8)
           ORDER BY j.seq DESC LIMIT ?9
         ) AS page ORDER BY page.seq DESC`,
      );
    const pages = (columns: string): Pages => {
      const prepared = new Map<Walk, ReturnType<Pages>>();
      return (walk) => {
        const known = prepared.get(walk) ?? prepare(columns, walk);
        prepared.set(walk, known);
        return known;
      };
    };
    this.#whole = pages(COLUMNS);
    this.#brief = pages(BRIEF);
    this.#sql = {
      scheduled: file.prepare(`SELECT count(*) AS n FROM (SELECT 1 FROM live WHERE status = 0 LIMIT ?)`),
      nearest: file.prepare("SELECT seq, created_at FROM job WHERE seq <= ? ORDER BY seq DESC LIMIT 1"),
    };
  }

  page(query: JobQuery, brief = false): JobPage<Job | BriefJob> {
    const cache = this.#cache;
    const { limit, since, until, status, errorCode = null } = query;
    const start = cursorSeq(query);
    const kinds = this.#kinds(query);
    if (kinds?.length === 0) return { jobs: [], cursor: null };
    const walk = this.#walk(query);
    const statement = (brief ? this.#brief : this.#whole)(walk);
    const listed = listedFilter(query);
    const extra =
      listed?.text ?? (walk === "processing" ? JSON.stringify([...cache.running.keys()]) : cache.head);
    const after = since === undefined ? 0 : this.#seek(since - SEEK_MARGIN_MS) - 1;
    const end = until === undefined ? Infinity : this.#seek(until + SEEK_MARGIN_MS);
    const filter = [
      kinds && JSON.stringify(kinds),
      since ?? 0,
      until ?? Number.MAX_SAFE_INTEGER,
      status === undefined ? null : STATUS[status],
      errorCode,
    ] as const;
    const pages = walkPage(limit, {
      before: Math.min(start, end),
      scanFirst: SCAN_FIRST,
      filtered: status !== undefined || kinds !== null || errorCode !== null,
      read: ({ before, scan, limit: left }) =>
        statement.all(before, after, scan, ...filter, left, cache.clock.now(), extra),
    });
    const { rows, cursor } = runNow(pages);
    const read = this.#read;
    return { jobs: rows.map((row) => (brief ? read.brief(row) : read.job(row))), cursor };
  }

  #kinds({ queue, task }: JobQuery): number[] | null {
    if (queue === undefined && task === undefined) return null;
    return this.#cache
      .kinds()
      .filter(
        (kind) => (queue === undefined || kind.queue === queue) && (task === undefined || kind.task === task),
      )
      .map(({ id }) => id);
  }

  #walk(query: JobQuery): Walk {
    const { status } = query;
    const listed = listedFilter(query);
    if (listed) return listed.name as Walk;
    if (status === undefined) return "any";
    if (status === "queued" || status === "processing" || status === "completed") return status;
    if (isFinal(status)) return "unusual";
    const few = (this.#sql.scheduled.get(SCHEDULED_FEW + 1)!["n"] as number) <= SCHEDULED_FEW;
    return few ? "scheduled" : "live";
  }

  /** The first job that was created at or after an instant, approximately (SEEK_MARGIN_MS). */
  #seek(at: number): number {
    let [low, high] = [0, this.#cache.lastSeq + 1];
    while (high - low > 1) {
      const half = Math.floor((low + high) / 2);
      const found = this.#sql.nearest.get(half);
      if (!found || (found["created_at"] as number) < at) low = half;
      else high = found["seq"] as number;
    }
    return high;
  }
}
