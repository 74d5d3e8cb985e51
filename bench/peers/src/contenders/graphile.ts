import { Logger, makeWorkerUtils, run, type Runner, type WorkerUtils } from "graphile-worker";
import pg from "pg";
import type { Contender, Context, Entry, Handler, Job, WorkMode } from "../types.ts";

const POOL = Number(process.env.BENCH_POOL ?? 10);
const CONC = Number(process.env.BENCH_CONC ?? 24);
const LOCAL = Number(process.env.BENCH_BATCH ?? 2000);
const quiet = new Logger(() => () => {});

class Graphile implements Contender {
  #url: string;
  #pool: pg.Pool;
  #utils!: WorkerUtils;
  #runner: Runner | undefined;

  constructor(context: Context) {
    this.#url = context.pgUrl;
    this.#pool = new pg.Pool({ connectionString: context.pgUrl, max: POOL });
    this.#pool.on("error", () => {});
    this.#pool.on("connect", (client) => client.on("error", () => {}));
  }

  async start(): Promise<void> {
    this.#utils = await makeWorkerUtils({ pgPool: this.#pool, logger: quiet });
    await this.#utils.migrate();
  }

  async reset(): Promise<void> {
    await this.#pool.query("TRUNCATE graphile_worker._private_jobs");
  }

  enqueue(job: Job): Promise<unknown> {
    return this.#utils.addJob("bench", job);
  }

  enqueueMany(jobs: Job[]): Promise<unknown> {
    return this.#utils.addJobs(jobs.map((payload) => ({ identifier: "bench", payload })));
  }

  async work(mode: WorkMode, handler: Handler): Promise<void> {
    const recover = mode.startsWith("recover");
    const worker = recover
      ? {
          concurrentJobs: 1,
          pollInterval: 500,
          ...(mode === "recover-tight" ? { minResetLockedInterval: 500, maxResetLockedInterval: 1000 } : {}),
        }
      : mode === "latency"
        ? { concurrentJobs: 24, maxPoolSize: 25, pollInterval: 500 }
        : {
            concurrentJobs: CONC,
            maxPoolSize: CONC + 1,
            localQueue: { size: LOCAL },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          };
    this.#runner = await run({
      preset: { worker: { connectionString: this.#url, ...worker } },
      logger: quiet,
      taskList: { bench: async (payload: unknown) => handler(payload as Job) },
      crontab: "",
      noHandleSignals: true,
    } as never);
  }

  async unfinished(): Promise<number> {
    return Number(
      (
        await this.#pool.query(
          "SELECT count(*) AS c FROM (SELECT 1 FROM graphile_worker._private_jobs LIMIT 1) x",
        )
      ).rows[0].c,
    );
  }

  async stop(): Promise<void> {
    await this.#runner?.stop().catch(() => {});
    await this.#utils?.release();
    await this.#pool.end();
  }
}

export const entries: Entry[] = [
  {
    name: "graphile-worker",
    kind: "peer",
    store: "postgres",
    durability: "fsync on every commit",
    settings:
      "concurrentJobs 24, pool 25, localQueue 2000, completeJobBatchDelay 0; latency without localQueue; addJobs",
    create: (context) => new Graphile(context),
    drainJobs: 70_000,
    recovery: { default: "4 h lock, scanned every 8-10 min", measureDefault: false, tight: null },
  },
];
