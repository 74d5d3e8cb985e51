/**
 * Reads single jobs from PostgreSQL: the job, its result, logs and earlier runs, and the timings of recently finished
 * jobs. Lists are in list.ts.
 */

import type { JobId } from "../../../core/ids.ts";
import type { Job } from "../../../core/jobs/job.ts";
import { read } from "../../../platform/drivers/postgres/postgres.ts";
import { jobColumns, type JobRow, parsed, STATUS, toBrief, toJob, statusName } from "../../job-row.ts";
import { type BriefJob, type JobStore, PAST_RUNS_MAX, type PastRun } from "../../jobs.ts";
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
  `SELECT started_at - run_at AS "waitMs", finished_at - started_at AS "runMs", status = ${STATUS.failed} AS failed
   FROM (
     SELECT run_at, started_at, finished_at, status FROM (SELECT * FROM baton.done ORDER BY seq DESC LIMIT $2) AS newest_rows
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

const PAST_RUNS = read(
  "past-runs",
  `SELECT p.job_epoch AS "jobEpoch", w.name AS worker, a.leader_epoch AS "leaderEpoch", p.started_at AS "startedAt",
     p.ended_at AS "endedAt", p.outcome, p.error, p.assignment
   FROM baton.job j JOIN baton.name b ON b.id = j.birthplace JOIN baton.past_run p ON p.seq = j.seq
   JOIN baton.author a ON a.id = p.author LEFT JOIN baton.name w ON w.id = p.worker
   WHERE j.id = $1 AND b.name = $2 ORDER BY p.job_epoch DESC LIMIT ${PAST_RUNS_MAX}`,
);
const LAST_ASSIGNMENT = read(
  "past-runs-assignment",
  `SELECT coalesce(d.assignment, l.assignment) AS assignment
   FROM baton.job j JOIN baton.name b ON b.id = j.birthplace
   LEFT JOIN baton.live l ON l.seq = j.seq LEFT JOIN baton.done d ON d.seq = j.seq
   WHERE j.id = $1 AND b.name = $2`,
);

type PastRow = Omit<PastRun, "error"> & {
  readonly error: string | null;
  readonly assignment: number | null;
};

export function jobReads(cache: StoreCache): Pick<JobStore, "get" | "result" | "runs" | "timings" | "logs"> {
  const { db } = cache;
  const named = (id: JobId): [string, string] => [uuidOf(id), birthplaceOf(id)];
  return {
    get: async (id) => {
      const [row] = await db.query<JobRow>(ONE, [cache.now(), ...named(id)]);
      return row ? jobOf(row) : null;
    },
    result: async (id) => (await db.query<{ result: string }>(RESULT, named(id)))[0]?.result ?? null,
    runs: async (id) => {
      const [rows, last] = await Promise.all([
        db.query<PastRow>(PAST_RUNS, named(id)),
        db.query<{ assignment: number | null }>(LAST_ASSIGNMENT, named(id)),
      ]);
      const assignments = [...rows, ...last].map(({ assignment }) => assignment);
      return {
        past: rows.reverse().map(({ assignment: _assignment, ...run }) => ({
          ...run,
          error: parsed(run.error) as PastRun["error"],
        })),
        assignments: [...new Set(assignments.filter((one) => one !== null))],
      };
    },
    timings: (limit, withinMs) => db.query(TIMINGS, [cache.now(), limit, withinMs]),
    logs: (id, after, limit) => db.query(LOGS, [...named(id), after, limit]),
  };
}

/** The status is a number in the tables. */
const withStatus = ({ id, task, queue, status }: JobRow) => ({ id, task, queue, status: statusName(status) });

export function jobOf(row: JobRow): Job {
  const { owner, worker, ownerEpoch, leaderEpoch } = row as Job;
  return toJob(row, withStatus(row), { owner, worker, ownerEpoch, leaderEpoch });
}

export const briefOf = (row: JobRow): BriefJob => toBrief(row, withStatus(row));
