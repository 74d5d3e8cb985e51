/**
 * Reads single jobs from SQLite: the job, its result, logs and earlier runs, and the timings of recently finished jobs.
 * Lists are in list.ts.
 */

import type { JobId } from "../../../core/ids.ts";
import type { Job, JobError, JobStatus } from "../../../core/jobs/job.ts";
import { COLUMN_FIELDS, type RareFields } from "../../../core/jobs/job-fields.ts";
import { PAST_RUNS_MAX, type JobTiming, type LogLine, type PastRun } from "../../jobs.ts";
import { type StoreCache, statusName } from "./store-cache.ts";

export const COLUMNS = `j.seq, j.id, j.kind, j.created_at, j.schedule, j.trace, ${COLUMN_FIELDS.map(({ wire }) => `j.${wire}`).join(", ")},
  coalesce(d.status, l.status, 1) AS stored_status,
  coalesce(d.run_at, l.run_at, j.created_at) AS run_at,
  coalesce(d.job_epoch, l.job_epoch, 0) AS job_epoch,
  coalesce(d.attempts, l.attempts, 0) AS attempts,
  coalesce(d.failures, l.failures, 0) AS failures,
  coalesce(d.interruptions, l.interruptions, 0) AS interruptions,
  coalesce(d.crashes, l.crashes, 0) AS crashes,
  coalesce(d.finished_at, l.updated_at, j.created_at) AS updated_at,
  coalesce(d.started_at, l.started_at) AS started_at,
  d.finished_at AS finished_at,
  coalesce(d.worker, l.worker) AS worker,
  coalesce(d.author, l.author, j.author) AS author,
  coalesce(d.progress, l.progress) AS progress,
  coalesce(d.progress_message, l.progress_message) AS progress_message,
  coalesce(d.cancel_requested, l.cancel_requested, 0) AS cancel_requested,
  coalesce(d.error, l.error) AS error,
  coalesce(d.killed, l.killed) AS killed`;
export const JOINED = "LEFT JOIN live l ON l.seq = j.seq LEFT JOIN done d ON d.seq = j.seq";

export type Row = Record<string, string | number | null>;

export class Read {
  readonly #ledger: StoreCache;
  readonly #sql;

  constructor(ledger: StoreCache) {
    this.#ledger = ledger;
    const { file } = ledger;
    this.#sql = {
      one: file.prepare(`SELECT ${COLUMNS} FROM job j ${JOINED} WHERE j.seq = ?`),
      id: file.prepare("SELECT id FROM job WHERE seq = ?"),
      timings: file.prepare(
        `SELECT started_at - run_at AS wait_ms, finished_at - started_at AS run_ms
         FROM (SELECT run_at, started_at, finished_at FROM done ORDER BY seq DESC LIMIT ?)
         WHERE started_at IS NOT NULL AND finished_at >= ?`,
      ),
      result: file.prepare("SELECT result FROM done WHERE seq = ?"),
      logs: file.prepare(
        "SELECT n, at, level, message, job_epoch FROM log WHERE seq = ? AND n > ? ORDER BY n LIMIT ?",
      ),
      pastRuns: file.prepare(
        `SELECT job_epoch, started_at, ended_at, worker, author, outcome, error FROM past_run WHERE seq = ?
         ORDER BY job_epoch DESC LIMIT ${PAST_RUNS_MAX}`,
      ),
    };
  }

  idOf(seq: number): JobId {
    return this.#sql.id.get(seq)!["id"] as JobId;
  }

  get(id: JobId): Job | null {
    const seq = this.#ledger.seqOf(id);
    const row = seq === null ? undefined : this.#sql.one.get(seq);
    return row ? this.job(row as Row) : null;
  }

  result(id: JobId): string | null {
    const seq = this.#ledger.seqOf(id);
    return seq === null
      ? null
      : ((this.#sql.result.get(seq)?.["result"] as string | null | undefined) ?? null);
  }

  logs(id: JobId, after: number, limit: number): LogLine[] {
    const seq = this.#ledger.seqOf(id);
    if (seq === null) return [];
    return this.#sql.logs.all(seq, after, limit).map((row) => ({
      seq: row["n"] as number,
      at: row["at"] as number,
      level: row["level"] as LogLine["level"],
      message: row["message"] as string,
      jobEpoch: row["job_epoch"] as number,
    }));
  }

  timings(limit: number, withinMs: number): JobTiming[] {
    const rows = this.#sql.timings.all(limit, this.#ledger.clock.now() - withinMs);
    return rows.map((row) => ({ waitMs: row["wait_ms"] as number, runMs: row["run_ms"] as number }));
  }

  pastRuns(id: JobId): PastRun[] {
    const seq = this.#ledger.seqOf(id);
    if (seq === null) return [];
    return this.#sql.pastRuns
      .all(seq)
      .map((row) => ({
        jobEpoch: row["job_epoch"] as number,
        worker: this.#ledger.workerName(row["worker"] as number | null),
        leaderEpoch: this.#ledger.author(row["author"] as number).leaderEpoch,
        startedAt: row["started_at"] as number,
        endedAt: row["ended_at"] as number,
        outcome: row["outcome"] as PastRun["outcome"],
        error: parse(row["error"] as string | null) as JobError | null,
      }))
      .reverse();
  }

  /** A scheduled job is queued from its time on, whether a claim has noted it yet or not. */
  #status(row: Row): JobStatus {
    const status = statusName(row["stored_status"] as number);
    return status === "scheduled" && (row["run_at"] as number) <= this.#ledger.clock.now()
      ? "queued"
      : status;
  }

  job(row: Row): Job {
    const author = this.#ledger.author(row["author"] as number);
    const kind = this.#ledger.kind(row["kind"] as number);
    return {
      id: row["id"] as JobId,
      task: kind.task,
      queue: kind.queue,
      status: this.#status(row),
      ...columnFields(row),
      progress: row["progress"] as number | null,
      progressMessage: row["progress_message"] as string | null,
      attempts: row["attempts"] as number,
      failures: row["failures"] as number,
      interruptions: row["interruptions"] as number,
      crashes: row["crashes"] as number,
      trace: row["trace"] as string | null,
      schedule: row["schedule"] as string | null,
      cancelRequested: row["cancel_requested"] === 1,
      createdAt: row["created_at"] as number,
      updatedAt: row["updated_at"] as number,
      runAt: row["run_at"] as number,
      startedAt: row["started_at"] as number | null,
      finishedAt: row["finished_at"] as number | null,
      owner: author.node,
      worker: this.#ledger.workerName(row["worker"] as number | null),
      jobEpoch: row["job_epoch"] as number,
      ownerEpoch: author.ownerEpoch,
      leaderEpoch: author.leaderEpoch,
      error: parse(row["error"] as string | null) as JobError | null,
      killed: (parse(row["killed"] as string | null) as string[] | null) ?? [],
    };
  }
}

function columnFields(
  row: Row,
): Pick<Job, "priority" | "payload" | "maxAttempts" | "timeoutMs" | "idempotencyKey"> & RareFields {
  const found: Record<string, unknown> = {};
  for (const { name, wire, kind } of COLUMN_FIELDS) {
    const value = row[wire] as string | null;
    found[name] = kind === "texts" ? (parse(value) ?? []) : value;
  }
  return found as ReturnType<typeof columnFields>;
}

function parse(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}
