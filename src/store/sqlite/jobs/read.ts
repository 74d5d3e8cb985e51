/**
 * Reads single jobs from SQLite: the job, its result, logs and earlier runs, and the timings of recently finished jobs.
 * Lists are in list.ts.
 */

import type { JobId } from "../../../core/ids.ts";
import type { Job } from "../../../core/jobs/job.ts";
import { jobColumns, parsed, STATUS, statusName, toBrief, toJob, type JobRow } from "../../job-row.ts";
import { PAST_RUNS_MAX, type BriefJob, type JobTiming, type LogLine, type PastRun } from "../../jobs.ts";
import type { StoreCache } from "./store-cache.ts";

/** A fresh job has no row in `live`. */
const FRESH = {
  runAt: "j.created_at",
  jobEpoch: "0",
  attempts: "0",
  failures: "0",
  interruptions: "0",
  crashes: "0",
  cancelRequested: "0",
};
export const COLUMNS = `j.seq, j.id, j.kind, coalesce(d.status, l.status, 1) AS status,
  coalesce(d.finished_at, l.updated_at, j.created_at) AS "updatedAt", coalesce(d.worker, l.worker) AS worker,
  coalesce(d.author, l.author, j.author) AS author, ${jobColumns(FRESH)}`;
export const JOINED = "LEFT JOIN live l ON l.seq = j.seq LEFT JOIN done d ON d.seq = j.seq";

export class Read {
  readonly #cache: StoreCache;
  readonly #sql;

  constructor(cache: StoreCache) {
    this.#cache = cache;
    const { file } = cache;
    this.#sql = {
      one: file.prepare(`SELECT ${COLUMNS} FROM job j ${JOINED} WHERE j.seq = ?`),
      id: file.prepare("SELECT id FROM job WHERE seq = ?"),
      timings: file.prepare(
        `SELECT started_at - run_at AS "waitMs", finished_at - started_at AS "runMs", status = ${STATUS.failed} AS failed
         FROM (SELECT run_at, started_at, finished_at, status FROM done ORDER BY seq DESC LIMIT ?)
         WHERE started_at IS NOT NULL AND finished_at >= ?`,
      ),
      result: file.prepare("SELECT result FROM done WHERE seq = ?"),
      logs: file.prepare(
        `SELECT n AS seq, at, level, message, job_epoch AS "jobEpoch" FROM log WHERE seq = ? AND n > ? ORDER BY n LIMIT ?`,
      ),
      pastRuns: file.prepare(
        `SELECT job_epoch AS "jobEpoch", started_at AS "startedAt", ended_at AS "endedAt", worker, author, outcome, error
         FROM past_run WHERE seq = ?
         ORDER BY job_epoch DESC LIMIT ${PAST_RUNS_MAX}`,
      ),
    };
  }

  idOf(seq: number): JobId {
    return this.#sql.id.get(seq)!["id"] as JobId;
  }

  get(id: JobId): Job | null {
    const seq = this.#cache.seqOf(id);
    const row = seq === null ? undefined : this.#sql.one.get(seq);
    return row ? this.job(row) : null;
  }

  result(id: JobId): string | null {
    const seq = this.#cache.seqOf(id);
    return seq === null
      ? null
      : ((this.#sql.result.get(seq)?.["result"] as string | null | undefined) ?? null);
  }

  logs(id: JobId, after: number, limit: number): LogLine[] {
    const seq = this.#cache.seqOf(id);
    if (seq === null) return [];
    return (this.#sql.logs.all(seq, after, limit) as unknown as LogLine[]).map((line) => ({ ...line }));
  }

  timings(limit: number, withinMs: number): JobTiming[] {
    const rows = this.#sql.timings.all(limit, this.#cache.clock.now() - withinMs);
    type Row = Omit<JobTiming, "failed"> & { readonly failed: number };
    return (rows as unknown as Row[]).map((timing) => ({ ...timing, failed: timing.failed === 1 }));
  }

  pastRuns(id: JobId): PastRun[] {
    const seq = this.#cache.seqOf(id);
    if (seq === null) return [];
    const rows = this.#sql.pastRuns.all(seq) as JobRow[];
    return rows.reverse().map(
      ({ worker, author, error, ...run }) =>
        ({
          ...run,
          worker: this.#cache.workerName(worker),
          leaderEpoch: this.#cache.author(author).leaderEpoch,
          error: parsed(error),
        }) as PastRun,
    );
  }

  job(row: JobRow): Job {
    const { node: owner, ownerEpoch, leaderEpoch } = this.#cache.author(row["author"]);
    const worker = this.#cache.workerName(row["worker"]);
    return toJob(row, this.#named(row), { owner, worker, ownerEpoch, leaderEpoch });
  }

  brief(row: JobRow): BriefJob {
    return toBrief(row, this.#named(row));
  }

  /** A scheduled job that is due counts as queued, even if no claim has promoted it yet. */
  #named({ id, kind, status: code, runAt }: JobRow) {
    const { queue, task } = this.#cache.kind(kind);
    const status = statusName(code);
    const due = status === "scheduled" && runAt <= this.#cache.clock.now();
    return { id, queue, task, status: due ? ("queued" as const) : status };
  }
}
