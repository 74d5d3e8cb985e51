/**
 * Reads single jobs from PostgreSQL: the job, its result and its logs, and the timings of recently finished jobs. Lists
 * are in list.ts, earlier runs in past-runs.ts.
 */

import type { JobId, NodeName } from "../../../core/ids.ts";
import type { Job, JobError } from "../../../core/jobs/job.ts";
import { COLUMN_FIELDS, type RareFields } from "../../../core/jobs/job-fields.ts";
import { read } from "../../../platform/drivers/postgres/postgres.ts";
import type { JobTiming, LogLine } from "../../store.ts";
import { birthplaceOf, type StoreCache, NOW, statusName, uuidOf } from "./store-cache.ts";

/** A scheduled job is queued from its time on, whether a claim has noted it yet or not. */
export const WAITING_OR_RUNNING = (live: string): string =>
  `CASE WHEN ${live}.running THEN 2 WHEN ${live}.run_at > ${NOW} THEN 0 ELSE 1 END`;
export const STATUS_NOW = `coalesce(d.status, ${WAITING_OR_RUNNING("l")})`;

export const COLUMNS = `j.seq, b.name AS birthplace, j.id, k.queue, k.task, ${COLUMN_FIELDS.map(({ wire }) => `j.${wire}`).join(", ")},
  j.created_at, j.trace, j.schedule, d.finished_at, w.name AS worker, a.leader_epoch,
  coalesce(o.owner_name, f.name, a.node) AS node,
  CASE WHEN o.owner IS NULL THEN coalesce(d.owner_epoch, a.owner_epoch) ELSE o.owner_epoch END AS owner_epoch,
  ${STATUS_NOW} AS status,
  coalesce(d.run_at, l.run_at) AS run_at,
  coalesce(d.job_epoch, l.job_epoch) AS job_epoch,
  coalesce(d.attempts, l.attempts) AS attempts,
  coalesce(d.failures, l.failures) AS failures,
  coalesce(d.interruptions, l.interruptions) AS interruptions,
  coalesce(d.crashes, l.crashes) AS crashes,
  coalesce(d.finished_at, l.updated_at) AS updated_at,
  coalesce(d.started_at, l.started_at) AS started_at,
  coalesce(d.progress, l.progress) AS progress,
  coalesce(d.progress_message, l.progress_message) AS progress_message,
  coalesce(d.cancel_requested, l.cancel_requested) AS cancel_requested,
  coalesce(d.error, l.error) AS error,
  coalesce(d.killed, l.killed) AS killed`;
export const JOINED = `JOIN baton.kind k ON k.id = j.kind JOIN baton.name b ON b.id = j.birthplace
  LEFT JOIN baton.live l ON l.seq = j.seq LEFT JOIN baton.done d ON d.seq = j.seq
  JOIN baton.author a ON a.id = coalesce(d.author, l.author) LEFT JOIN baton.name w ON w.id = coalesce(d.worker, l.worker)
  LEFT JOIN baton.assignment o ON o.id = l.assignment AND o.owner IS NOT NULL LEFT JOIN baton.name f ON f.id = d.owner`;

const ONE = read("job-get", `SELECT ${COLUMNS} FROM baton.job j ${JOINED} WHERE j.id = $2 AND b.name = $3`);
const RESULT = read(
  "job-result",
  `SELECT coalesce(d.result, 'null') AS result
   FROM baton.job j JOIN baton.name b ON b.id = j.birthplace JOIN baton.done d ON d.seq = j.seq
   WHERE j.id = $1 AND b.name = $2 AND d.status = 3`,
);
const TIMINGS = read(
  "job-timings",
  `SELECT started_at - run_at AS "waitMs", finished_at - started_at AS "runMs"
   FROM (SELECT run_at, started_at, finished_at FROM baton.done ORDER BY seq DESC LIMIT $2) AS newest
   WHERE started_at IS NOT NULL AND finished_at >= ${NOW} - $3::bigint`,
);
const LOGS = read(
  "job-logs",
  `SELECT g.n AS seq, g.at, g.level, g.message, g.job_epoch AS "jobEpoch"
   FROM baton.job j JOIN baton.name b ON b.id = j.birthplace JOIN baton.log g ON g.seq = j.seq
   WHERE j.id = $1 AND b.name = $2 AND g.n > $3::bigint ORDER BY g.n LIMIT $4`,
);

/** A row of our own tables: each column has the type that its reader expects. */
// oxlint-disable-next-line typescript/no-explicit-any -- the schema is the type
export type Row = Record<string, any>;

export class Read {
  readonly #ledger: StoreCache;

  constructor(ledger: StoreCache) {
    this.#ledger = ledger;
  }

  async get(id: JobId): Promise<Job | null> {
    const rows = await this.#ledger.db.query<Row>(ONE, [this.#ledger.now(), uuidOf(id), birthplaceOf(id)]);
    return rows[0] ? toJob(rows[0]) : null;
  }

  async result(id: JobId): Promise<string | null> {
    const rows = await this.#ledger.db.query<{ result: string }>(RESULT, [uuidOf(id), birthplaceOf(id)]);
    return rows[0]?.result ?? null;
  }

  timings(limit: number, withinMs: number): Promise<readonly JobTiming[]> {
    return this.#ledger.db.query<JobTiming>(TIMINGS, [this.#ledger.now(), limit, withinMs]);
  }

  logs(id: JobId, after: number, limit: number): Promise<readonly LogLine[]> {
    return this.#ledger.db.query<LogLine>(LOGS, [uuidOf(id), birthplaceOf(id), after, limit]);
  }
}

function columnFields(
  row: Row,
): Pick<Job, "priority" | "payload" | "maxAttempts" | "timeoutMs" | "idempotencyKey"> & RareFields {
  const found: Row = {};
  for (const { name, wire, kind } of COLUMN_FIELDS) found[name] = row[wire] ?? (kind === "texts" ? [] : null);
  return found as ReturnType<typeof columnFields>;
}

export function toJob(row: Row): Job {
  return {
    id: `${row["birthplace"]}-${row["id"]}` as JobId,
    task: row["task"],
    queue: row["queue"],
    status: statusName(row["status"]),
    ...columnFields(row),
    progress: row["progress"],
    progressMessage: row["progress_message"],
    attempts: row["attempts"],
    failures: row["failures"],
    interruptions: row["interruptions"],
    crashes: row["crashes"],
    trace: row["trace"],
    schedule: row["schedule"],
    cancelRequested: row["cancel_requested"],
    createdAt: row["created_at"],
    updatedAt: row["updated_at"],
    runAt: row["run_at"],
    startedAt: row["started_at"],
    finishedAt: row["finished_at"],
    owner: row["node"] as NodeName,
    worker: row["worker"],
    jobEpoch: row["job_epoch"],
    ownerEpoch: row["owner_epoch"],
    leaderEpoch: row["leader_epoch"],
    error: row["error"] === null ? null : (JSON.parse(row["error"]) as JobError),
    killed: row["killed"] === null ? [] : (JSON.parse(row["killed"]) as string[]),
  };
}
