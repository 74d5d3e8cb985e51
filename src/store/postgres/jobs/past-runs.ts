/** Runs that did not end their job. Only the statements that put a job back write them. */

import type { JobId } from "../../../core/ids.ts";
import type { JobError } from "../../../core/jobs/job.ts";
import { read } from "../../../platform/drivers/postgres/postgres.ts";
import { PAST_EPOCHS_KEPT, PAST_RUNS_MAX, type JobRuns, type PastRun } from "../../jobs.ts";
import { birthplaceOf, type StoreCache, uuidOf } from "./store-cache.ts";

/** The values of `l` before the same statement changes it; `a` has outcome and error, null if it is not a run. */
export const keepRuns = (rows: string): string => `
  kept_runs AS (
    INSERT INTO baton.past_run (seq, job_epoch, started_at, ended_at, worker, author, assignment, outcome, error)
    SELECT l.seq, l.job_epoch, l.started_at, (SELECT now FROM clock), l.worker, l.author, l.assignment, a.outcome, a.error
    FROM ${rows} AND l.started_at IS NOT NULL AND a.outcome IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING seq, job_epoch
  ),
  forgotten_runs AS (
    DELETE FROM baton.past_run p USING kept_runs k WHERE p.seq = k.seq AND p.job_epoch < k.job_epoch - ${PAST_EPOCHS_KEPT}
  )`;

const LIST = read(
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

type Row = Omit<PastRun, "error"> & {
  readonly error: string | null;
  readonly assignment: number | null;
};

export class PastRuns {
  readonly #cache: StoreCache;

  constructor(cache: StoreCache) {
    this.#cache = cache;
  }

  async of(id: JobId): Promise<JobRuns> {
    const { db } = this.#cache;
    const named = [uuidOf(id), birthplaceOf(id)];
    const [rows, last] = await Promise.all([
      db.query<Row>(LIST, named),
      db.query<{ assignment: number | null }>(LAST_ASSIGNMENT, named),
    ]);
    const assignments = [...rows.map(({ assignment }) => assignment), last[0]?.assignment ?? null];
    return {
      past: rows.reverse().map(pastRun),
      assignments: [...new Set(assignments.filter((one) => one !== null))],
    };
  }
}

function pastRun({ jobEpoch, worker, leaderEpoch, startedAt, endedAt, outcome, error }: Row): PastRun {
  const read = error === null ? null : (JSON.parse(error) as JobError);
  return { jobEpoch, worker, leaderEpoch, startedAt, endedAt, outcome, error: read };
}
