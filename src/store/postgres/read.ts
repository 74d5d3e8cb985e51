import { BatonError } from "../../core/errors.ts";
import type { JobId, NodeName } from "../../core/ids.ts";
import { isFinal, type Job, type JobError } from "../../core/job.ts";
import { read } from "../../platform/drivers/postgres.ts";
import type { JobPage, JobQuery, JobTiming, LogLine } from "../store.ts";
import { birthplaceOf, type Ledger, NOW, statusName, uuidOf } from "./ledger.ts";
import { STATUS } from "./schema.ts";

/** A scheduled job is queued from its time on, whether a claim has noted it yet or not. */
const WAITING_OR_RUNNING = (live: string): string =>
  `CASE WHEN ${live}.running THEN 2 WHEN ${live}.run_at > ${NOW} THEN 0 ELSE 1 END`;
const STATUS_NOW = `coalesce(d.status, ${WAITING_OR_RUNNING("l")})`;

const COLUMNS = `j.seq, b.name AS birthplace, j.id, k.queue, k.task, j.priority, j.payload, j.created_at, j.max_attempts,
  j.timeout_ms, j.idempotency_key, j.trace, j.schedule, d.finished_at, w.name AS worker, a.leader_epoch,
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
const JOINED = `JOIN baton.kind k ON k.id = j.kind JOIN baton.name b ON b.id = j.birthplace
  LEFT JOIN baton.live l ON l.seq = j.seq LEFT JOIN baton.done d ON d.seq = j.seq
  JOIN baton.author a ON a.id = coalesce(d.author, l.author) LEFT JOIN baton.name w ON w.id = coalesce(d.worker, l.worker)
  LEFT JOIN baton.assignment o ON o.id = l.assignment LEFT JOIN baton.name f ON f.id = d.owner`;

/**
 * Rows that one page may look at. A filter that fits hardly any job then gives a short page and a cursor to go on
 * with, instead of a walk through a million jobs.
 */
const SCAN_MAX = 20_000;

const newest = (table: string, where = ""): string =>
  `(SELECT seq, id FROM baton.${table} WHERE seq < $2 ${where} ORDER BY seq DESC LIMIT ${SCAN_MAX})`;

/** Where the jobs of a status lie, newest first. */
const PLACES = {
  any: `SELECT seq, id FROM (${newest("live")} UNION ALL ${newest("done")}) AS both_places ORDER BY seq DESC LIMIT ${SCAN_MAX}`,
  live: newest("live").replace("seq, id", "seq, id, running, run_at"),
  completed: newest("done"),
  failed: newest("done", "AND status = 4"),
  cancelled: newest("done", "AND status = 5"),
} as const;
type Place = keyof typeof PLACES;

/** `OFFSET 0` keeps the planner from turning the walk around: it must stop at the limit, and start at the newest. */
const page = (place: Place) =>
  read(
    `list-${place}`,
    `SELECT one.* FROM (${PLACES[place]}) AS s CROSS JOIN LATERAL (
       SELECT ${COLUMNS} FROM baton.job j ${JOINED}
       WHERE j.id = s.id AND ($3::text IS NULL OR k.queue = $3) AND ($4::text IS NULL OR k.task = $4)
         AND j.created_at >= $5 AND j.created_at < $8
         AND ($9::text IS NULL OR coalesce(d.error, l.error)::jsonb ->> 'code' = $9) AND ($6::int IS NULL OR ${STATUS_NOW} = $6)
       OFFSET 0
     ) AS one ${place === "live" ? `WHERE ${WAITING_OR_RUNNING("s")} = $6` : ""} ORDER BY s.seq DESC LIMIT $7`,
  );
const walked = (place: Place) =>
  read(
    `walked-${place}`,
    `SELECT seq FROM (${PLACES[place].replaceAll("$2", "$1")}) AS s ORDER BY seq DESC LIMIT 1 OFFSET ${SCAN_MAX - 1}`,
  );
const places = <T>(make: (place: Place) => T): Record<Place, T> => ({
  any: make("any"),
  live: make("live"),
  completed: make("completed"),
  failed: make("failed"),
  cancelled: make("cancelled"),
});
const PAGE = places(page);
const WALKED = places(walked);

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
type Row = Record<string, any>;

export class Read {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
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

  async list(query: JobQuery): Promise<JobPage> {
    const before = cursorSeq(query.cursor);
    const status = query.status === undefined ? null : STATUS[query.status];
    const rows = await this.#ledger.db.query<Row>(PAGE[placeOf(query)], [
      this.#ledger.now(),
      before,
      query.queue ?? null,
      query.task ?? null,
      query.since ?? 0,
      status,
      query.limit,
      query.until ?? Number.MAX_SAFE_INTEGER,
      query.errorCode ?? null,
    ]);
    return { jobs: rows.map(toJob), cursor: await this.#cursor(query, before, rows) };
  }

  /** Where the next page begins: behind the last row given, or behind the last one looked at. */
  async #cursor(query: JobQuery, before: number, rows: readonly Row[]): Promise<string | null> {
    const last = rows.at(-1);
    if (last && rows.length === query.limit) return String(last["seq"]);
    if (rows.length >= query.limit) return null;
    const [end] = await this.#ledger.db.query<{ seq: number }>(WALKED[placeOf(query)], [before]);
    return end ? String(end.seq) : null;
  }
}

function placeOf({ status }: JobQuery): Place {
  if (status === undefined) return "any";
  return isFinal(status) ? status : "live";
}

function toJob(row: Row): Job {
  return {
    id: `${row["birthplace"]}-${row["id"]}` as JobId,
    task: row["task"],
    queue: row["queue"],
    status: statusName(row["status"]),
    priority: row["priority"],
    payload: row["payload"],
    progress: row["progress"],
    progressMessage: row["progress_message"],
    attempts: row["attempts"],
    failures: row["failures"],
    interruptions: row["interruptions"],
    crashes: row["crashes"],
    maxAttempts: row["max_attempts"],
    timeoutMs: row["timeout_ms"],
    idempotencyKey: row["idempotency_key"],
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

function cursorSeq(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  if (/^[1-9][0-9]{0,15}$/.test(cursor)) return Number(cursor);
  throw new BatonError(
    "BAD_REQUEST",
    "cursor is not one that a list gave; leave it out to start at the newest",
    { field: "cursor" },
  );
}
