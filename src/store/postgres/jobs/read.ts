/**
 * Reads single jobs from PostgreSQL: the job, its result and its logs, and the timings of recently finished jobs. Lists
 * are in list.ts, earlier runs in past-runs.ts.
 */

import type { JobId } from "../../../core/ids.ts";
import type { Job } from "../../../core/jobs/job.ts";
import { read } from "../../../platform/drivers/postgres/postgres.ts";
import { jobColumns, type JobRow, toBrief, toJob, statusName } from "../../job-row.ts";
import type { BriefJob, JobTiming, LogLine } from "../../store.ts";
import { covering, STATE_OF_JOB } from "./ranges.ts";
import { birthplaceOf, type StoreCache, NOW, uuidOf } from "./store-cache.ts";

/** A scheduled job that is due counts as queued, even if no claim has promoted it yet. */
export const WAITING_OR_RUNNING = (live: string): string =>
  `CASE WHEN ${live}.started_at IS NOT NULL THEN 2 WHEN ${live}.run_at > ${NOW} THEN 0 ELSE 1 END`;
export const STATUS_NOW = `coalesce(d.status, ${WAITING_OR_RUNNING("l")})`;

export const COLUMNS = `j.seq, b.name || '-' || j.id::text AS id, k.queue, k.task, w.name AS worker, a.leader_epoch AS "leaderEpoch",
  coalesce(o.owner_name, f.name, a.node) AS owner,
  CASE WHEN o.owner IS NULL THEN coalesce(d.owner_epoch, a.owner_epoch) ELSE o.owner_epoch END AS "ownerEpoch",
  ${STATUS_NOW} AS status, coalesce(d.finished_at, l.updated_at) AS "updatedAt", ${jobColumns()}`;
export const JOINED = `JOIN baton.kind k ON k.id = j.kind JOIN baton.name b ON b.id = j.birthplace
  ${STATE_OF_JOB}
  JOIN baton.author a ON a.id = coalesce(d.author, l.author) LEFT JOIN baton.name w ON w.id = coalesce(d.worker, l.worker)
  LEFT JOIN baton.assignment o ON o.id = l.assignment AND o.owner IS NOT NULL LEFT JOIN baton.name f ON f.id = d.owner`;

const ONE = read("job-get", `SELECT ${COLUMNS} FROM baton.job j ${JOINED} WHERE j.id = $2 AND b.name = $3`);
const RESULT = read(
  "job-result",
  `SELECT coalesce(d.result, 'null') AS result
   FROM baton.job j JOIN baton.name b ON b.id = j.birthplace CROSS JOIN LATERAL (${covering("done", "j.seq")}) AS d
   WHERE j.id = $1 AND b.name = $2 AND d.status = 3`,
);
const TIMINGS = read(
  "job-timings",
  `SELECT started_at - run_at AS "waitMs", finished_at - started_at AS "runMs"
   FROM (
     SELECT run_at, started_at, finished_at FROM (SELECT * FROM baton.done ORDER BY seq DESC LIMIT $2) AS newest_rows
     CROSS JOIN generate_series(1, n) ORDER BY seq DESC LIMIT $2
   ) AS newest
   WHERE started_at IS NOT NULL AND finished_at >= ${NOW} - $3::bigint`,
);
const LOGS = read(
  "job-logs",
  `SELECT g.n AS seq, g.at, g.level, g.message, g.job_epoch AS "jobEpoch"
   FROM baton.job j JOIN baton.name b ON b.id = j.birthplace JOIN baton.log g ON g.seq = j.seq
   WHERE j.id = $1 AND b.name = $2 AND g.n > $3::bigint ORDER BY g.n LIMIT $4`,
);

export class Read {
  readonly #cache: StoreCache;

  constructor(cache: StoreCache) {
    this.#cache = cache;
  }

  async get(id: JobId): Promise<Job | null> {
    const values = [this.#cache.now(), uuidOf(id), birthplaceOf(id)];
    const [row] = await this.#cache.db.query<JobRow>(ONE, values);
    return row ? jobOf(row) : null;
  }

  async result(id: JobId): Promise<string | null> {
    const rows = await this.#cache.db.query<{ result: string }>(RESULT, [uuidOf(id), birthplaceOf(id)]);
    return rows[0]?.result ?? null;
  }

  timings(limit: number, withinMs: number): Promise<readonly JobTiming[]> {
    return this.#cache.db.query<JobTiming>(TIMINGS, [this.#cache.now(), limit, withinMs]);
  }

  logs(id: JobId, after: number, limit: number): Promise<readonly LogLine[]> {
    return this.#cache.db.query<LogLine>(LOGS, [uuidOf(id), birthplaceOf(id), after, limit]);
  }
}

/** The status is a number in the tables. */
const withStatus = ({ id, task, queue, status }: JobRow) => ({ id, task, queue, status: statusName(status) });

export const jobOf = (row: JobRow): Job => toJob(row, withStatus(row), row as Job);
export const briefOf = (row: JobRow): BriefJob => toBrief(row, withStatus(row));
