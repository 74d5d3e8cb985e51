/**
 * Cancels, retries and removes single jobs in PostgreSQL. A job that runs is not ended here: the request to cancel is
 * stored, and its worker reads it when it renews its lease.
 */

import type { JobId } from "../../../core/ids.ts";
import { isFinal, type JobStatus } from "../../../core/jobs/job.ts";
import { cancelledWaiting } from "../../../core/jobs/run-end.ts";
import { type Queryable, write } from "../../../platform/drivers/postgres/postgres.ts";
import type { CancelAnswer, JobStore, RetryAnswer } from "../../store.ts";
import type { PostgresScripts } from "../scripts.ts";
import { applyChanges } from "./run-endings.ts";
import { covering, takeApart } from "./ranges.ts";
import { birthplaceOf, type StoreCache, NOW, uuidOf, withoutNul } from "./store-cache.ts";
import { STATUS, statusName } from "../../job-row.ts";

interface Place {
  readonly seq: number;
  readonly status: JobStatus;
  /** Its idempotency key belongs to another job. */
  readonly superseded: boolean;
}

/** A change to a job locks its row in `job`, which neither claims nor results touch. */
const HOLD = write(
  "control-hold",
  `SELECT j.seq, j.idempotency_key IS NOT NULL AND j.key_task IS NULL AS superseded FROM baton.job j JOIN baton.name b ON b.id = j.birthplace
   WHERE j.id = $1 AND b.name = $2 FOR UPDATE OF j`,
);
/** `live` first: a result may move the job to `done` meanwhile, and only a change under this lock moves it back. */
const IN_LIVE = write(
  "control-in-live",
  `SELECT CASE WHEN started_at IS NOT NULL THEN 2 WHEN run_at > ${NOW} THEN 0 ELSE 1 END AS status
   FROM baton.live WHERE seq = $2 AND n = 1 FOR UPDATE`,
);
/** Only this column: a prepared statement fails when a migration of a later version changes what it returns. */
const IN_DONE = write(
  "control-in-done",
  `SELECT status FROM (${covering("done", "$1::bigint", "FOR UPDATE")}) AS d`,
);
const REQUEST_CANCEL = write(
  "control-cancel",
  `UPDATE baton.live SET cancel_requested = true, cancel_reason = $3, updated_at = ${NOW}
   WHERE seq = $2 AND NOT cancel_requested`,
);
const MARK_CANCELLED = write(
  "control-mark-cancelled",
  "UPDATE baton.live SET cancel_requested = true WHERE seq = $1",
);
/** Resets everything but the number of starts and the logs, and raises the epoch: the last run becomes a past run. */
const REVIVE = write(
  "control-revive",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   gone AS (
     DELETE FROM baton.done WHERE seq = $2
     RETURNING seq, id, job_epoch, attempts, author, logs, status, started_at, finished_at, worker, assignment, error
   ),
   kept_runs AS (
     INSERT INTO baton.past_run (seq, job_epoch, started_at, ended_at, worker, author, assignment, outcome, error)
     SELECT seq, job_epoch, started_at, finished_at, worker, author, assignment,
       CASE status WHEN ${STATUS.failed} THEN 'failed' ELSE 'cancelled' END, error
     FROM gone WHERE started_at IS NOT NULL ON CONFLICT DO NOTHING
   ),
   back AS (
     INSERT INTO baton.live (seq, id, run_at, updated_at, kind, author, job_epoch, attempts, logs, priority, later)
     SELECT g.seq, g.id, clock.now, clock.now, j.kind, g.author, g.job_epoch + 1, g.attempts, g.logs, j.priority, false
     FROM clock, gone g JOIN baton.job j ON j.id = g.id
   )
   INSERT INTO baton.tally (kind, status, n) SELECT j.kind, g.status, -1 FROM gone g JOIN baton.job j ON j.id = g.id`,
);
const REMOVE = write(
  "control-remove",
  `WITH job AS (DELETE FROM baton.job WHERE id = $2 RETURNING kind),
   live AS (DELETE FROM baton.live WHERE seq = $1),
   logs AS (DELETE FROM baton.log WHERE seq = $1),
   past AS (DELETE FROM baton.past_run WHERE seq = $1),
   done AS (DELETE FROM baton.done WHERE seq = $1 RETURNING status)
   INSERT INTO baton.tally (kind, status, n) SELECT job.kind, done.status, -1 FROM job, done`,
);

export function jobControl(
  cache: StoreCache,
  scripts: PostgresScripts,
): Pick<JobStore, "cancel" | "retry" | "remove"> {
  const change = <T>(id: JobId, missing: T, work: (tx: Queryable, place: Place) => Promise<T>): Promise<T> =>
    scripts.transaction(async (tx) => {
      const [job] = await tx.query<Pick<Place, "seq" | "superseded">>(HOLD, [uuidOf(id), birthplaceOf(id)]);
      if (!job) return missing;
      await takeApart(tx, [job.seq]);
      const [live] = await tx.query<{ status: number }>(IN_LIVE, [cache.now(), job.seq]);
      const [found] = live ? [live] : await tx.query<{ status: number }>(IN_DONE, [job.seq]);
      return found ? work(tx, { ...job, status: statusName(found.status) }) : missing;
    });
  return {
    cancel: (id, reason) =>
      change<CancelAnswer>(id, { outcome: "missing" }, async (tx, { seq, status }) => {
        if (isFinal(status)) return { outcome: "finished", status };
        const text = reason === null ? null : withoutNul(reason);
        const now = cache.now();
        if (status === "processing") {
          await tx.query(REQUEST_CANCEL, [now, seq, text]);
          return { outcome: "requested" };
        }
        await tx.query(MARK_CANCELLED, [seq]);
        const cancelled = cancelledWaiting(text);
        await applyChanges(tx, [{ seq, change: cancelled, result: null, taken: false, author: null }], now);
        return { outcome: "cancelled" };
      }),
    retry: (id) =>
      change<RetryAnswer>(id, "missing", async (tx, { seq, status, superseded }) => {
        if (status !== "failed" && status !== "cancelled") return status;
        if (superseded) return "superseded";
        await tx.query(REVIVE, [cache.now(), seq]);
        return "retried";
      }),
    remove: (id) =>
      change<"removed" | "running" | "missing">(id, "missing", async (tx, { seq, status }) => {
        if (status === "processing") return "running";
        await takeApart(tx, [seq], "done");
        await tx.query(REMOVE, [seq, uuidOf(id)]);
        return "removed";
      }),
  };
}
