/**
 * The order of waiting jobs. Each kind (queue and task) has its own line, ordered by an index. A claim merges the heads
 * of the lines from which it may take, so that a million jobs of an unknown task or a paused queue cost nothing.
 */

import { write } from "../../../platform/drivers/postgres/postgres.ts";
import { NOW } from "./store-cache.ts";

/** Due jobs that one claim promotes: limits its duration after a long downtime. */
const PROMOTE_MAX = 5_000;

export const PROMOTE = write(
  "claim-promote",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   due AS MATERIALIZED (
     SELECT seq FROM baton.live WHERE later AND run_at <= (SELECT now FROM clock)
     ORDER BY run_at, seq LIMIT ${PROMOTE_MAX} FOR UPDATE
   ),
   promoted AS (UPDATE baton.live l SET later = false FROM due WHERE l.seq = due.seq)
   SELECT CASE WHEN (SELECT count(*) FROM due) = ${PROMOTE_MAX} THEN 0 ELSE
     (SELECT min(run_at) FROM baton.live WHERE later AND run_at > (SELECT now FROM clock)) - (SELECT now FROM clock)
   END AS next_due_in_ms`,
);

/** The heads of the lines: free jobs, in order. Jobs that another claim has locked are skipped. */
export const heads = (suspect: boolean, limit: string, which = "true"): string => `
  SELECT head.* FROM kinds CROSS JOIN LATERAL (
    SELECT l.ctid AS at, l.seq, l.priority, l.run_at, l.suspect FROM baton.live l
    WHERE l.kind = kinds.id AND NOT l.running AND NOT l.later AND ${suspect ? "" : "NOT"} l.suspect
      AND ${which}
    ORDER BY l.priority DESC, l.run_at, l.seq LIMIT ${limit} FOR UPDATE SKIP LOCKED
  ) AS head`;
export const IN_ORDER = "ORDER BY priority DESC, run_at, seq";

/** The lines, as `kinds`, for the parameters tasks, queues (null for all) and excluded queues. */
export const kinds = (tasks: string, queues: string, exceptQueues: string, only: string): string => `
  kinds AS MATERIALIZED (
    SELECT k.id FROM baton.kind k LEFT JOIN baton.queue q ON q.name = k.queue
    WHERE k.task = ANY (${tasks}::text[]) AND (${queues}::text[] IS NULL OR k.queue = ANY (${queues}::text[]))
      AND q.paused IS NOT TRUE AND k.queue <> ALL (${exceptQueues}::text[]) AND ${only}
    ORDER BY k.id
  )`;
