/**
 * Queues in PostgreSQL: pause and resume, the number of jobs by status, and how long the oldest job of each queue has
 * waited. Finished jobs are counted in `tally`, all others in `live`.
 */

import { read, write } from "../../platform/drivers/postgres/postgres.ts";
import type { QueueStore } from "../store.ts";
import { IN_LINE, linesByPriority } from "./jobs/claim/queue-order.ts";
import { type StoreCache, NOW } from "./jobs/store-cache.ts";
import { noJobs, STATUS, statusName } from "../job-row.ts";

const SAVE = write(
  "queue-save",
  "INSERT INTO baton.queue (name, paused) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused",
);
const IS_PAUSED = read("queue-paused", "SELECT paused FROM baton.queue WHERE name = $1");
const NAMES = `SELECT name, paused FROM baton.queue UNION ALL SELECT DISTINCT queue, false FROM baton.kind`;
/** The clock is read once: for each of many rows it would cost as much as the rest of the statement. */
const LIST = read(
  "queue-list",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   unfinished AS (
     SELECT kind, sum(n) AS n, coalesce(sum(n) FILTER (WHERE started_at IS NOT NULL), 0) AS running,
       coalesce(sum(n) FILTER (WHERE started_at IS NULL AND run_at > (SELECT now FROM clock)), 0) AS later
     FROM baton.live GROUP BY kind
   )
   SELECT q.name, bool_or(q.paused) AS paused, c.status, coalesce(max(c.n), 0) AS n
   FROM (${NAMES}) AS q
   LEFT JOIN (
     SELECT k.queue, s.status, sum(s.n)::bigint AS n
     FROM (
       SELECT u.kind, part.status, part.n FROM unfinished u CROSS JOIN LATERAL (
         VALUES (${STATUS.scheduled}, u.later), (${STATUS.queued}, u.n - u.running - u.later), (${STATUS.processing}, u.running)
       ) AS part (status, n) WHERE part.n > 0
       UNION ALL SELECT kind, status, sum(n) FROM baton.tally GROUP BY 1, 2
     ) AS s JOIN baton.kind k ON k.id = s.kind GROUP BY 1, 2
   ) AS c ON c.queue = q.name
   GROUP BY q.name, c.status ORDER BY q.name`,
);

/** Due jobs that no claim has promoted yet: many only if no worker claims. */
const DUE_MAX = 1_000;
/** Skips running jobs at the head of each line. */
const WAITING_SINCE = read(
  "queue-waiting-since",
  `WITH RECURSIVE clock AS MATERIALIZED (SELECT ${NOW} AS now),
   ${linesByPriority()}
   SELECT k.queue, min(w.run_at) AS since FROM (
     SELECT line.kind, head.run_at FROM line CROSS JOIN LATERAL (
       SELECT l.run_at FROM baton.live l WHERE l.kind = line.kind AND l.priority = line.priority AND ${IN_LINE} AND l.started_at IS NULL
       ORDER BY l.run_at, l.seq LIMIT 1
     ) AS head
     UNION ALL (SELECT kind, run_at FROM baton.live WHERE suspect AND NOT later AND started_at IS NULL LIMIT ${DUE_MAX})
     UNION ALL (
       SELECT kind, run_at FROM baton.live WHERE later AND run_at <= (SELECT now FROM clock) ORDER BY run_at, seq LIMIT ${DUE_MAX}
     )
   ) AS w JOIN baton.kind k ON k.id = w.kind GROUP BY k.queue`,
);

interface Row {
  readonly name: string;
  readonly paused: boolean;
  readonly status: number | null;
  readonly n: number;
}

export function postgresQueues(cache: StoreCache): QueueStore {
  const { db } = cache;
  return {
    setPaused: async (queue, paused) => void (await db.query(SAVE, [queue, paused])),
    isPaused: async (queue) => (await db.query<{ paused: boolean }>(IS_PAUSED, [queue]))[0]?.paused ?? false,
    list: async () => {
      const now = [cache.now()];
      const [rows, oldest] = await Promise.all([
        db.query<Row>(LIST, now),
        db.query<{ queue: string; since: number }>(WAITING_SINCE, now),
      ]);
      const oldestAt = new Map(oldest.map(({ queue, since }) => [queue, since]));
      return [...Map.groupBy(rows, ({ name }) => name)].map(([name, parts]) => {
        const counts = noJobs();
        for (const { status, n } of parts) if (status !== null) counts[statusName(status)] = n;
        return { name, paused: parts[0]!.paused, counts, oldestAt: oldestAt.get(name) ?? null };
      });
    },
  };
}
