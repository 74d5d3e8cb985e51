/**
 * Cancels, retries and removes single jobs in SQLite, and purges finished jobs and noted occurrences after their
 * retention. Every method runs inside the caller's transaction. A job that runs is not ended here: only the request to
 * cancel is stored.
 */

import type { JobId } from "../../../core/ids.ts";
import {
  FINAL_STATUSES,
  type FinalStatus,
  isOver,
  type JobStatus,
  keptMs,
  occurrencesKeptMs,
  type Retention,
} from "../../../core/jobs/job.ts";
import { cancelledWaiting } from "../../../core/jobs/run-end.ts";
import type { CancelAnswer, RetryAnswer } from "../../jobs.ts";
import type { StoreCache } from "./store-cache.ts";
import { DONE_COLUMNS } from "../schema.ts";
import { statusName } from "../../job-row.ts";

interface Place {
  readonly seq: number;
  readonly queue: string;
  readonly status: JobStatus;
  readonly due: boolean;
  readonly superseded: boolean;
}

export class Control {
  readonly #cache: StoreCache;
  readonly #sql;
  /** Where the next purge continues: it walks the finished jobs in a circle, piece by piece. */
  #purgeAt = 0;

  constructor(cache: StoreCache) {
    this.#cache = cache;
    const { file } = cache;
    this.#sql = {
      place: file.prepare(
        `SELECT j.kind, j.idempotency_key IS NOT NULL AND j.key_task IS NULL AS superseded, coalesce(d.status, l.status, 1) AS status, l.run_at
         FROM job j LEFT JOIN live l ON l.seq = j.seq LEFT JOIN done d ON d.seq = j.seq WHERE j.seq = ?`,
      ),
      requestCancel: file.prepare(
        "UPDATE live SET cancel_requested = 1, cancel_reason = ?, updated_at = ? WHERE seq = ? AND NOT cancel_requested",
      ),
      cancelWaiting: file.prepare(
        `INSERT INTO done (${DONE_COLUMNS})
         SELECT j.seq, 5, ?1, coalesce(l.run_at, j.created_at), coalesce(l.job_epoch, 0), coalesce(l.attempts, 0), coalesce(l.failures, 0),
           coalesce(l.interruptions, 0), coalesce(l.crashes, 0), l.started_at, l.worker, l.lease, coalesce(l.author, j.author),
           coalesce(l.logs, 0), l.progress, l.progress_message, 1, ?2, l.killed
         FROM job j LEFT JOIN live l ON l.seq = j.seq WHERE j.seq = ?3`,
      ),
      unfresh: file.prepare("UPDATE job SET fresh = 0 WHERE seq = ? AND fresh = 1"),
      revive: file.prepare(
        `INSERT INTO live (seq, status, priority, run_at, job_epoch, attempts, failures, interruptions, crashes, updated_at, author, logs)
         SELECT d.seq, 1, j.priority, ?1, d.job_epoch + 1, d.attempts, 0, 0, 0, ?1, d.author, d.logs
         FROM done d JOIN job j ON j.seq = d.seq WHERE d.seq = ?2`,
      ),
      keepRun: file.prepare(
        `INSERT OR IGNORE INTO past_run
         SELECT seq, job_epoch, started_at, finished_at, worker, author, CASE status WHEN 4 THEN 'failed' ELSE 'cancelled' END, error
         FROM done WHERE seq = ? AND started_at IS NOT NULL`,
      ),
      dropRuns: file.prepare("DELETE FROM past_run WHERE seq = ?"),
      dropJob: file.prepare("DELETE FROM job WHERE seq = ?"),
      dropLive: file.prepare("DELETE FROM live WHERE seq = ?"),
      dropDone: file.prepare("DELETE FROM done WHERE seq = ?"),
      dropLogs: file.prepare("DELETE FROM log WHERE seq = ?"),
      finished: file.prepare("SELECT seq, status, finished_at FROM done WHERE seq > ? ORDER BY seq LIMIT ?"),
      dropOccurrences: file.prepare("DELETE FROM occurrence WHERE noted_at <= ?"),
    };
  }

  cancel(id: JobId, reason: string | null): CancelAnswer {
    const place = this.#find(id);
    if (place === null) return { outcome: "missing" };
    const { seq } = place;
    const now = this.#cache.clock.now();
    switch (place.status) {
      case "completed":
      case "failed":
      case "cancelled":
        return { outcome: "finished", status: place.status };
      case "processing":
        if (this.#sql.requestCancel.run(reason, now, seq).changes > 0)
          this.#cache.cancelRequests.set(seq, reason);
        return { outcome: "requested" };
      case "scheduled":
      case "queued": {
        const error = JSON.stringify(cancelledWaiting(reason).end!.error);
        this.#sql.cancelWaiting.run(now, error, seq);
        this.#sql.unfresh.run(seq);
        this.#sql.dropLive.run(seq);
        this.#cache.count(place.queue, place.status, "cancelled");
        return { outcome: "cancelled" };
      }
    }
  }

  retry(id: JobId): RetryAnswer {
    const place = this.#find(id);
    if (place === null) return "missing";
    const { seq } = place;
    if (place.status !== "failed" && place.status !== "cancelled") return place.due ? "queued" : place.status;
    if (place.superseded) return "superseded";
    this.#sql.keepRun.run(seq);
    this.#sql.revive.run(this.#cache.clock.now(), seq);
    this.#sql.dropDone.run(seq);
    this.#cache.count(place.queue, place.status, "queued");
    return "retried";
  }

  remove(id: JobId): "removed" | "running" | "missing" {
    const place = this.#find(id);
    if (place === null) return "missing";
    if (place.status === "processing") return "running";
    this.#drop(place);
    return "removed";
  }

  purge(retention: Retention, limit: number): number {
    const now = this.#cache.clock.now();
    const rows = this.#sql.finished.all(this.#purgeAt, limit);
    const shortestMs = Math.min(...FINAL_STATUSES.map((status) => keptMs(status, retention)));
    let removed = 0;
    let young = true;
    for (const row of rows) {
      const ageMs = now - (row["finished_at"] as number);
      if (isOver(ageMs, shortestMs)) young = false;
      const status = statusName(row["status"] as number) as FinalStatus;
      if (!isOver(ageMs, keptMs(status, retention))) continue;
      this.#drop(this.#place(row["seq"] as number)!);
      removed++;
    }
    // After a whole piece of young jobs mostly younger ones follow: walking through millions of them would delay the
    // old ones.
    this.#purgeAt = young || rows.length < limit ? 0 : (rows.at(-1)!["seq"] as number);
    this.#sql.dropOccurrences.run(now - occurrencesKeptMs(retention));
    return removed;
  }

  #find(id: JobId): Place | null {
    const seq = this.#cache.seqOf(id);
    return seq === null ? null : this.#place(seq);
  }

  #place(seq: number): Place | null {
    const row = this.#sql.place.get(seq);
    if (!row) return null;
    const status = statusName(row["status"] as number);
    const due = status === "scheduled" && (row["run_at"] as number) <= this.#cache.clock.now();
    const { queue } = this.#cache.kind(row["kind"] as number);
    return { seq, queue, status, due, superseded: row["superseded"] === 1 };
  }

  #drop({ seq, queue, status }: Place): void {
    this.#sql.dropJob.run(seq);
    this.#sql.dropLive.run(seq);
    this.#sql.dropDone.run(seq);
    this.#sql.dropLogs.run(seq);
    this.#sql.dropRuns.run(seq);
    this.#cache.count(queue, status, null);
  }
}
