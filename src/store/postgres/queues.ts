import type { JobStatus } from "../../core/job.ts";
import { read, write } from "../../platform/drivers/postgres.ts";
import type { QueueInfo, QueueStore } from "../store.ts";
import { type Ledger, NOW, statusName } from "./ledger.ts";

const SAVE = write(
  "queue-save",
  "INSERT INTO baton.queue (name, paused) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused",
);
const IS_PAUSED = read("queue-paused", "SELECT paused FROM baton.queue WHERE name = $1");
const NAMES = `SELECT name, paused FROM baton.queue UNION ALL SELECT DISTINCT queue, false FROM baton.kind`;
const LIST = read(
  "queue-list",
  `SELECT q.name, bool_or(q.paused) AS paused, c.status, coalesce(max(c.n), 0) AS n
   FROM (${NAMES}) AS q
   LEFT JOIN (
     SELECT k.queue, s.status, sum(s.n)::bigint AS n
     FROM (
       SELECT kind, CASE WHEN running THEN 2 WHEN run_at > ${NOW} THEN 0 ELSE 1 END AS status, count(*) AS n
       FROM baton.live GROUP BY 1, 2
       UNION ALL SELECT kind, status, sum(n) FROM baton.tally GROUP BY 1, 2
     ) AS s JOIN baton.kind k ON k.id = s.kind GROUP BY 1, 2
   ) AS c ON c.queue = q.name
   GROUP BY q.name, c.status ORDER BY q.name`,
);

interface Row {
  readonly name: string;
  readonly paused: boolean;
  readonly status: number | null;
  readonly n: number;
}

export class PostgresQueues implements QueueStore {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  async setPaused(queue: string, paused: boolean): Promise<void> {
    await this.#ledger.db.query(SAVE, [queue, paused]);
  }

  async isPaused(queue: string): Promise<boolean> {
    const [row] = await this.#ledger.db.query<{ paused: boolean }>(IS_PAUSED, [queue]);
    return row?.paused ?? false;
  }

  async list(): Promise<readonly QueueInfo[]> {
    const found = new Map<string, { name: string; paused: boolean; counts: Record<JobStatus, number> }>();
    for (const { name, paused, status, n } of await this.#ledger.db.query<Row>(LIST, [this.#ledger.now()])) {
      let queue = found.get(name);
      if (!queue) {
        const counts = { scheduled: 0, queued: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };
        found.set(name, (queue = { name, paused, counts }));
      }
      if (status !== null) queue.counts[statusName(status)] = n;
    }
    return [...found.values()];
  }
}
