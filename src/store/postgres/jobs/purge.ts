/**
 * Removes finished jobs and noted occurrences after their retention, and adds up the rows of `tally`. Each call
 * examines a limited number of finished jobs, in the order of their arrival, and the next call continues there.
 */

import type { Term } from "../../../core/leadership/term.ts";
import { isLockTimeout } from "../../../platform/drivers/postgres/errors.ts";
import { type Statement, write } from "../../../platform/drivers/postgres/postgres.ts";
import { occurrencesKeptMs, type Retention } from "../../../core/jobs/job.ts";
import { jobsOf } from "./ranges.ts";
import { type StoreCache, NOW } from "./store-cache.ts";
import type { PostgresScripts } from "../scripts.ts";

/** Rows of finished jobs that one purge examines, about 10 ms: jobs with a long retention are between those with a short one. */
const PIECE = 10_000;

const KEPT_MS = "CASE status WHEN 3 THEN $2::bigint WHEN 4 THEN $3::bigint ELSE $4::bigint END";

const EXAMINED = `
  SELECT seq, id, n, (SELECT now FROM clock) - finished_at AS age_ms, ${KEPT_MS} AS kept_ms
  FROM baton.done WHERE seq > $6::bigint ORDER BY seq LIMIT ${PIECE}`;

/** Runs and log lines that a job cannot have are not searched for. Its earlier runs have lower epochs, or it was cancelled. */
const HAS_LOGS = "logs > 0";
const HAS_PAST_RUNS = "job_epoch > 1 OR status <> 3";

/** `>=` as in `isOver`. Stops to examine when it has found enough. `old` are the rows of `chosen` to remove, in CTEs. */
const purge = (name: string, old: string): Statement =>
  write(
    name,
    `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   chosen AS MATERIALIZED (
     SELECT seq, id, n FROM (
       SELECT seq, id, n, sum(n) OVER (ORDER BY seq) - n AS before FROM (
         SELECT seq, id, n FROM (${EXAMINED}) AS examined WHERE age_ms >= kept_ms LIMIT $5::int
       ) AS old_ones
     ) AS counted WHERE before < $5::int
   ),
   enough AS MATERIALIZED (SELECT max(seq) AS last FROM chosen HAVING sum(n) >= $5::int),
   ${old},
   done AS (
     DELETE FROM baton.done WHERE seq = ANY (ARRAY(SELECT seq FROM old))
     RETURNING seq, id, n, kind, status, logs, job_epoch
   ),
   jobs AS (DELETE FROM baton.job WHERE id = ANY (ARRAY(SELECT id FROM done WHERE n = 1))),
   in_ranges AS (DELETE FROM baton.job j USING done WHERE done.n > 1 AND ${jobsOf("done")}),
   lines AS (DELETE FROM baton.log WHERE seq = ANY (ARRAY(SELECT seq FROM done WHERE ${HAS_LOGS}))),
   past AS (DELETE FROM baton.past_run WHERE seq = ANY (ARRAY(SELECT seq FROM done WHERE ${HAS_PAST_RUNS}))),
   tally AS (INSERT INTO baton.tally (kind, status, n) SELECT kind, status, -sum(n) FROM done GROUP BY kind, status)
   SELECT (SELECT coalesce(sum(n), 0) FROM done) AS removed, (SELECT last FROM enough) AS last_chosen,
     CASE WHEN NOT EXISTS (SELECT FROM enough) THEN (
       SELECT max(seq) FROM (${EXAMINED}) AS examined
       HAVING count(*) = ${PIECE} AND max(age_ms) >= least($2::bigint, $3::bigint, $4::bigint)
     ) END AS last`,
  );

/**
 * A change to a finished job locks its row of `job` and then that of `done`, and this deletes them in the other order: only
 * what is still in `done` may be removed from `job`. When it meets such a change it must give up before the two wait for each
 * other for good (PostgreSQL looks for deadlocks after 1 s).
 */
const PURGE = purge("purge", "old AS MATERIALIZED (SELECT seq FROM chosen)");
const BRIEFLY = write("purge-briefly", "SET LOCAL lock_timeout = '50ms'");

/**
 * Beside such a change: locks the rows of `job` first, or skips them, which costs another write for each. A range is removed
 * as a whole, so its rows of `job` must all be free.
 */
const PURGE_FREE = purge(
  "purge-free",
  `free AS MATERIALIZED (
     SELECT c.seq FROM chosen c JOIN baton.job j ON j.id = c.id WHERE c.n = 1 FOR UPDATE OF j SKIP LOCKED
   ),
   free_in_ranges AS MATERIALIZED (
     SELECT c.seq, c.n FROM chosen c JOIN baton.job j ON ${jobsOf("c")} WHERE c.n > 1 FOR UPDATE OF j SKIP LOCKED
   ),
   old AS MATERIALIZED (
     SELECT seq FROM free UNION ALL SELECT seq FROM free_in_ranges GROUP BY seq, n HAVING count(*) = n
   )`,
);
const FORGET_OCCURRENCES = write(
  "purge-occurrences",
  `DELETE FROM baton.occurrence o USING (
     SELECT schedule, at FROM baton.occurrence WHERE noted_at <= ${NOW} - $2::bigint ORDER BY noted_at LIMIT $3::int
   ) AS old WHERE o.schedule = old.schedule AND o.at = old.at`,
);
/** Adds up what has several rows in `tally`, so that counting stays cheap. */
const ADD_UP = write(
  "purge-add-up",
  `WITH parts AS (
     DELETE FROM baton.tally WHERE ctid = ANY (ARRAY(
       SELECT part FROM (SELECT ctid AS part, count(*) OVER (PARTITION BY kind, status) AS n FROM baton.tally) AS t WHERE n > 1
     )) RETURNING kind, status, n
   )
   INSERT INTO baton.tally (kind, status, n) SELECT kind, status, sum(n) FROM parts GROUP BY kind, status HAVING sum(n) <> 0`,
);

interface Purged {
  readonly removed: number;
  /** Set when there may be more to remove in the same piece. */
  readonly last_chosen: number | null;
  /** Set when there may be more to remove after the piece. */
  readonly last: number | null;
}

type PurgeJobs = (retention: Retention, limit: number, fence: Term) => Promise<number>;

export function jobPurge(cache: StoreCache, scripts: PostgresScripts): PurgeJobs {
  // Where the next purge goes on: it walks the finished jobs in a circle by the order of their arrival. An index on the
  // time of their end would be written with every job; a BRIN index comes to cover everything once new rows fill the gaps
  // of removed ones, and then each purge reads all of history.
  let after = 0;
  return async (retention, limit, fence) => {
    const { completedMs, failedMs, cancelledMs } = retention;
    const now = cache.now();
    const remove = (statement: Statement, before: readonly Statement[] = []): Promise<Purged> =>
      scripts.transaction(async (tx) => {
        for (const setting of before) await tx.query(setting);
        const values = [now, completedMs, failedMs, cancelledMs, limit, after];
        const [purged] = await tx.query<Purged>(statement, values);
        await tx.query(FORGET_OCCURRENCES, [now, occurrencesKeptMs(retention), limit]);
        await tx.query(ADD_UP);
        return purged!;
      }, fence);
    const { removed, last_chosen, last } = await remove(PURGE, [BRIEFLY]).catch((error: unknown) => {
      if (!isLockTimeout(error)) throw error;
      return remove(PURGE_FREE);
    });
    // A whole piece of young jobs is mostly followed by younger ones: walking through millions of them would delay the old ones.
    after = last_chosen ?? last ?? 0;
    return removed;
  };
}
