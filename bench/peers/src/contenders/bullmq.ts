import { Queue, Worker, createPostgresBackend, runMigrations } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";
import type { Contender, Context, Entry, Handler, Job, WorkMode } from "../types.ts";
import { sleep } from "../util.ts";

const NAME = "bench";
const POOL = Number(process.env.BENCH_POOL ?? 10);
const CONC = Number(process.env.BENCH_CONC ?? 0);

class Bull implements Contender {
  #context: Context;
  #store: "everysec" | "always" | "postgres";
  #queue: any;
  #worker: any;
  #redis: Redis | undefined;
  #pool: pg.Pool | undefined;
  #keep = false;

  constructor(context: Context, store: "everysec" | "always" | "postgres") {
    this.#context = context;
    this.#store = store;
  }

  #options(): Record<string, unknown> {
    if (this.#store === "postgres")
      return { connection: { connectionString: this.#context.pgUrl, max: POOL } };
    return { connection: { ...this.#context.redis[this.#store], maxRetriesPerRequest: null } };
  }

  async start(): Promise<void> {
    if (this.#store === "postgres") {
      this.#pool = new pg.Pool({
        connectionString: this.#context.pgUrl,
        max: 2,
        options: "-c search_path=bullmq",
      });
      const client = await this.#pool.connect();
      await runMigrations(client as never);
      client.release();
      this.#queue = new Queue(NAME, this.#options() as never, createPostgresBackend as never);
    } else {
      this.#redis = new Redis({ ...this.#context.redis[this.#store], maxRetriesPerRequest: null });
      this.#queue = new Queue(NAME, this.#options() as never);
    }
    this.#queue.on("error", () => {});
    await this.#queue.waitUntilReady();
  }

  async reset(): Promise<void> {
    if (this.#store === "postgres") {
      const { rows } = await this.#pool!.query(
        `SELECT format('%I.%I', schemaname, tablename) AS t FROM pg_tables WHERE schemaname = 'bullmq' AND tablename NOT LIKE '%migration%'`,
      );
      await this.#pool!.query(`TRUNCATE ${rows.map((r) => r.t).join(", ")} CASCADE`);
    } else {
      const keys = await this.#redis!.keys(`bull:${NAME}:*`);
      for (let i = 0; i < keys.length; i += 5000) await this.#redis!.unlink(...keys.slice(i, i + 5000));
    }
  }

  enqueue(job: Job): Promise<unknown> {
    return this.#queue.add("job", job, { removeOnComplete: !this.#keep });
  }

  enqueueMany(jobs: Job[]): Promise<unknown> {
    return this.#queue.addBulk(jobs.map((data) => ({ name: "job", data })));
  }

  async work(mode: WorkMode, handler: Handler): Promise<void> {
    const recover = mode.startsWith("recover");
    this.#keep = mode === "retain";
    const options = {
      ...this.#options(),
      concurrency: recover ? 1 : CONC || (this.#store === "postgres" ? 8 : 100),
      ...(mode === "retain" || recover ? {} : { removeOnComplete: { count: 0 } }),
      ...(mode === "recover-tight"
        ? { lockDuration: 1000, lockRenewTime: 333, stalledInterval: 500, maxStalledCount: 10 }
        : {}),
    };
    await this.#start(options, async (job: { data: Job }) => handler(job.data));
  }

  async #start(options: unknown, processor: unknown): Promise<void> {
    this.#worker =
      this.#store === "postgres"
        ? new Worker(NAME, processor as never, options as never, createPostgresBackend as never)
        : new Worker(NAME, processor as never, options as never);
    this.#worker.on("error", () => {});
    await this.#worker.waitUntilReady();
  }

  async unfinished(): Promise<number> {
    const counts = await this.#queue.getJobCounts("wait", "active", "delayed", "prioritized", "paused");
    return Object.values(counts as Record<string, number>).reduce((a, b) => a + b, 0);
  }

  async seedHistory(count: number): Promise<void> {
    if (this.#store === "postgres") {
      const columns = (
        await this.#pool!.query(
          `SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'bullmq' AND table_name = 'job'`,
        )
      ).rows;
      // One real completed job is the template; its row is copied with new ids.
      await this.#template();
      const list = columns
        .filter((c) => !["id", "seq"].includes(c.column_name))
        .map((c) => `"${c.column_name}"`)
        .join(", ");
      await this.#pool!.query(
        `INSERT INTO bullmq.job (id, seq, ${list}) SELECT 'h' || i, -i, ${list} FROM bullmq.job, generate_series(1, ${count}) i WHERE id = (SELECT id FROM bullmq.job LIMIT 1)`,
      );
      await this.#pool!.query("VACUUM ANALYZE bullmq.job");
      return;
    }
    await this.#template();
    const redis = this.#redis!;
    const key = (await redis.keys(`bull:${NAME}:*`)).find((k) => /:\d+$/.test(k))!;
    const hash = Object.entries(await redis.hgetall(key)).flat();
    for (let i = 0; i < count; i += 20_000) {
      await redis.eval(
        `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
           redis.call('HSET', 'bull:${NAME}:h' .. i, unpack(ARGV, 3))
           redis.call('ZADD', 'bull:${NAME}:completed', 1700000000000 + i, 'h' .. i)
         end`,
        0,
        i + 1,
        Math.min(i + 20_000, count),
        ...hash,
      );
    }
  }

  async #template(): Promise<void> {
    await this.#queue.add("job", { n: 0, t: 0, pad: "x".repeat(160) });
    await this.#start({ ...this.#options() }, async () => {});
    while ((await this.unfinished()) > 0) await sleep(10);
    await this.#worker.close();
    this.#worker = undefined;
  }

  async storeBytes(): Promise<number> {
    if (this.#store === "postgres")
      return Number(
        (
          await this.#pool!.query(
            `SELECT sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)) AS b FROM pg_tables WHERE schemaname = 'bullmq'`,
          )
        ).rows[0].b,
      );
    return Number(/used_memory:(\d+)/.exec(await this.#redis!.info("memory"))![1]);
  }

  async stop(): Promise<void> {
    await Promise.race([this.#worker?.close(), sleep(3000)]);
    await Promise.race([this.#queue?.close(), sleep(2000)]);
    this.#redis?.disconnect();
    await this.#pool?.end();
  }
}

const recovery = {
  default: "lockDuration 30 s, stalledInterval 30 s",
  measureDefault: true,
  tight: "lockDuration 1 s, stalledInterval 0.5 s (below the recommended values)",
};
const redisSettings = "concurrency 100, removeOnComplete; addBulk";
export const entries: Entry[] = [
  {
    name: "bullmq",
    kind: "peer",
    store: "redis-everysec",
    durability: "AOF everysec: up to 1 s lost",
    settings: redisSettings,
    create: (c) => new Bull(c, "everysec"),
    drainJobs: 20_000,
    keeps: true,
    recovery,
  },
  {
    name: "bullmq-fsync",
    kind: "peer",
    store: "redis-always",
    durability: "AOF always: fsync before the reply",
    settings: redisSettings,
    create: (c) => new Bull(c, "always"),
    drainJobs: 16_000,
    keeps: true,
    recovery,
  },
  {
    name: "bullmq-pg",
    kind: "peer",
    store: "postgres",
    durability: "fsync on every commit",
    settings: `Postgres backend, pool ${POOL}, concurrency 8, removeOnComplete; addBulk`,
    create: (c) => new Bull(c, "postgres"),
    drainJobs: 2_000,
    keeps: true,
    recovery,
  },
];
