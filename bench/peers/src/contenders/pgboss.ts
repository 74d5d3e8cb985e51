import pg from "pg";
import { PgBoss } from "pg-boss";
import type { Contender, Context, Entry, Handler, Job, WorkMode } from "../types.ts";

const QUEUE = "bench";
const POOL = Number(process.env.BENCH_POOL ?? 10);
const BATCH = Number(process.env.BENCH_BATCH ?? 1000);
const CONC = Number(process.env.BENCH_CONC ?? 2);

class Boss implements Contender {
  #context: Context;
  #boss: PgBoss | undefined;
  #pool: pg.Pool;

  constructor(context: Context) {
    this.#context = context;
    this.#pool = new pg.Pool({ connectionString: context.pgUrl, max: 2 });
  }

  async #open(options: Record<string, unknown>): Promise<PgBoss> {
    const boss = new PgBoss({
      connectionString: this.#context.pgUrl,
      max: POOL,
      useListenNotify: !process.env.BENCH_NONOTIFY,
      supervise: false,
      schedule: false,
      ...options,
    } as never);
    boss.on("error", () => {});
    await boss.start();
    return boss;
  }

  async start(): Promise<void> {
    this.#boss = await this.#open({});
    await this.#boss
      .createQueue(QUEUE, {
        notify: !process.env.BENCH_NONOTIFY,
        partition: !process.env.BENCH_NOPART,
      } as never)
      .catch(() => {});
  }

  async reset(): Promise<void> {
    await this.#pool.query("TRUNCATE pgboss.job");
  }

  enqueue(job: Job): Promise<unknown> {
    return this.#boss!.send(QUEUE, job);
  }

  enqueueMany(jobs: Job[]): Promise<unknown> {
    return this.#boss!.insert(QUEUE, jobs.map((data) => ({ data })) as never);
  }

  async work(mode: WorkMode, handler: Handler): Promise<void> {
    const boss = this.#boss!;
    if (mode.startsWith("recover")) {
      await boss.stop({ graceful: false } as never);
      const tight = mode === "recover-tight";
      this.#boss = await this.#open(
        tight
          ? {
              supervise: true,
              superviseIntervalSeconds: 1,
              monitorIntervalSeconds: 1,
              maintenanceIntervalSeconds: 1,
            }
          : { supervise: true },
      );
      if (tight) await this.#boss.updateQueue(QUEUE, { heartbeatSeconds: 10 } as never);
      await this.#boss.work(
        QUEUE,
        {
          pollingIntervalSeconds: 0.5,
          notifyPollingIntervalSeconds: 0.5,
          ...(tight ? { heartbeatRefreshSeconds: 3 } : {}),
        },
        async (jobs) => {
          for (const job of jobs) await handler(job.data as Job);
        },
      );
      return;
    }
    const options =
      mode === "latency"
        ? {
            batchSize: 50,
            localConcurrency: 2,
            burstWhenBatchFull: true,
            pollingIntervalSeconds: 0.5,
            notifyPollingIntervalSeconds: 0.5,
          }
        : {
            batchSize: BATCH,
            localConcurrency: CONC,
            burstWhenBatchFull: true,
            pollingIntervalSeconds: 0.5,
            notifyPollingIntervalSeconds: 0.5,
          };
    await boss.work(QUEUE, options, async (jobs) => {
      for (const job of jobs) await handler(job.data as Job);
    });
  }

  async unfinished(): Promise<number> {
    return Number(
      (
        await this.#pool.query(
          `SELECT count(*) AS c FROM (SELECT 1 FROM pgboss.job WHERE name = $1 AND state < 'completed' LIMIT 1) x`,
          [QUEUE],
        )
      ).rows[0].c,
    );
  }

  async seedHistory(count: number): Promise<void> {
    for (let i = 0; i < count; i += 100_000) {
      await this.#boss!.insert(QUEUE, [{ data: { n: 0, t: 0, pad: "x".repeat(160) } }] as never);
      // Copies one waiting job as completed ones, column by column.
      const columns = (
        await this.#pool.query(
          `SELECT column_name FROM information_schema.columns WHERE table_schema = 'pgboss' AND table_name = 'job' AND is_generated = 'NEVER'`,
        )
      ).rows.map((r) => r.column_name as string);
      const rest = columns
        .filter((c) => !["id", "state", "started_on", "completed_on"].includes(c))
        .join(", ");
      await this.#pool.query(`INSERT INTO pgboss.job (id, state, started_on, completed_on, ${rest})
        SELECT gen_random_uuid(), 'completed', now(), now(), ${rest} FROM (SELECT * FROM pgboss.job WHERE name = '${QUEUE}' AND state = 'created' LIMIT 1) one, generate_series(1, ${Math.min(100_000, count - i)})`);
      await this.#pool.query(`DELETE FROM pgboss.job WHERE name = '${QUEUE}' AND state = 'created'`);
    }
    await this.#pool.query("VACUUM ANALYZE pgboss.job");
  }

  async storeBytes(): Promise<number> {
    return Number(
      (
        await this.#pool.query(
          `SELECT sum(pg_total_relation_size(c.oid)) AS b FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'pgboss' AND c.relkind IN ('r', 'p')`,
        )
      ).rows[0].b,
    );
  }

  async stop(): Promise<void> {
    await this.#boss?.stop({ graceful: true, timeout: 2000 } as never);
    await this.#pool.end();
  }
}

export const entries: Entry[] = [
  {
    name: "pg-boss",
    kind: "peer",
    store: "postgres",
    durability: "fsync on every commit",
    settings:
      "pool 10, own partition, notify, batchSize 1000, localConcurrency 2, burstWhenBatchFull, poll 0.5 s; completed jobs are always kept",
    create: (context) => new Boss(context),
    drainJobs: 25_000,
    keeps: true,
    recovery: {
      default: "expireInSeconds 900, no heartbeat",
      measureDefault: false,
      tight: "heartbeatSeconds 10 (the minimum), superviseIntervalSeconds 1",
    },
  },
];
