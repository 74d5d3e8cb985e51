/**
 * Removes finished jobs and noted occurrences after their retention, and adds up the rows of `tally`. Each call
 * examines a limited number of finished jobs, in the order of their arrival, and the next call continues there.
 */

import type { Term } from "../../../core/leadership/term.ts";
import { write } from "../../../platform/drivers/postgres/postgres.ts";
import { occurrencesKeptMs, type Retention } from "../../../core/jobs/job.ts";
import { jobsOf } from "./ranges.ts";
import { type StoreCache, NOW } from "./store-cache.ts";
import type { PostgresScripts } from "../scripts.ts";

/** Rows of finished jobs that one purge examines, about 10 ms: jobs with a long retention are between those with a short one. */
const PIECE = 10_000;

const KEPT_MS = "CASE status WHEN 3 THEN $2::bigint WHEN 4 THEN $3::bigint ELSE $4::bigint END";

/**
 * `>=` as in `isOver`. Locks both rows of a job or skips it: a concurrent change locks them in the other order. A range is
 * removed as a whole, so its rows of `job` must all be free.
 */
const PURGE = write(
  "purge",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   piece AS MATERIALIZED (
     SELECT seq, n, (SELECT now FROM clock) - finished_at AS age_ms, ${KEPT_MS} AS kept_ms
     FROM baton.done WHERE seq > $6::bigint ORDER BY seq LIMIT ${PIECE}
   ),
   chosen AS MATERIALIZED (
     SELECT seq FROM (SELECT seq, sum(n) OVER (ORDER BY seq) - n AS before FROM piece WHERE age_ms >= kept_ms) AS old_ones
     WHERE before < $5::int
   ),
   free AS MATERIALIZED (
     SELECT d.seq, d.n FROM baton.done d JOIN baton.job j ON ${jobsOf("d")}
     WHERE d.seq = ANY (ARRAY(SELECT seq FROM chosen)) FOR UPDATE OF d, j SKIP LOCKED
   ),
   old AS MATERIALIZED (SELECT seq, n FROM free GROUP BY seq, n HAVING count(*) = n),
   done AS (DELETE FROM baton.done d USING old WHERE d.seq = old.seq RETURNING d.seq, d.id, d.n, d.status),
   logs AS (DELETE FROM baton.log g USING old WHERE g.seq = old.seq),
   past AS (DELETE FROM baton.past_run p USING old WHERE p.seq = old.seq),
   job AS (DELETE FROM baton.job j USING done WHERE ${jobsOf("done")} RETURNING j.kind, done.status),
   tally AS (INSERT INTO baton.tally (kind, status, n) SELECT kind, status, -count(*) FROM job GROUP BY kind, status)
   SELECT (SELECT coalesce(sum(n), 0) FROM old) AS removed,
     (SELECT max(seq) FROM chosen WHERE (SELECT sum(n) FROM piece WHERE age_ms >= kept_ms) >= $5::int) AS last_chosen,
     (SELECT max(seq) FROM piece HAVING count(*) = ${PIECE} AND max(age_ms) >= least($2::bigint, $3::bigint, $4::bigint)) AS last`,
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
    const { removed, last_chosen, last } = await scripts.transaction(async (tx) => {
      const values = [now, completedMs, failedMs, cancelledMs, limit, after];
      const [purged] = await tx.query<Purged>(PURGE, values);
      await tx.query(FORGET_OCCURRENCES, [now, occurrencesKeptMs(retention), limit]);
      await tx.query(ADD_UP);
      return purged!;
    }, fence);
    // A whole piece of young jobs is mostly followed by younger ones: walking through millions of them would delay the old ones.
    after = last_chosen ?? last ?? 0;
    return removed;
  };
}
