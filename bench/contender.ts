/**
 * Baton as a contender in a harness that measures job queues side by side. It loads this module, finds `entries`, and
 * drives each through the verbs below; the shapes are the harness's, repeated here so that nothing of it is imported.
 *
 * On PostgreSQL, with or without a Redis beside it, every process is a node of one cluster. One process owns the file of the embedded store, so that
 * producer and worker share it there (`inProcess`).
 */

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../src/core/errors.ts";
import { Baton, TASK, type BatonOptions } from "./baton.ts";
import { emptyTables, multiplyHistory, storeBytes } from "./postgres-tables.ts";
import { payloads, type Payload } from "./subject.ts";

type WorkMode = "throughput" | "retain" | "latency" | "recover-default" | "recover-tight";

/** What the harness hands over: a directory and a database of this contender's own, among servers not needed here. */
interface Context {
  readonly dataDir: string;
  readonly pgUrl: string;
  readonly redis: { readonly everysec: { readonly host: string; readonly port: number } };
}

/** How often a second process tries to open the file. */
const RETRY_MS = 100;

class EmbeddedContender {
  readonly #dir: string;
  readonly #baton: Baton;
  #started = false;
  #stopped = false;

  constructor(context: Context) {
    this.#dir = join(context.dataDir, "baton");
    this.#baton = new Baton({ dir: this.#dir });
  }

  /** A process that finds the file in use stands by: only `cron` knows what to do then. */
  async start(): Promise<void> {
    try {
      await this.#baton.start();
      this.#started = true;
    } catch (error) {
      if (!hasCode(error, "DATA_IN_USE")) throw error;
    }
  }

  reset(): Promise<void> {
    return this.#baton.reset();
  }

  enqueue(job: Payload): Promise<unknown> {
    return this.#baton.submit(job);
  }

  enqueueMany(jobs: readonly Payload[]): Promise<unknown> {
    return this.#baton.submitMany(jobs);
  }

  /** All modes alike: the defaults serve bursts and single jobs, and history is always kept. */
  async work(_mode: WorkMode, handler: (job: Payload) => void | Promise<void>): Promise<void> {
    this.#baton.work(async (job) => handler(job));
  }

  unfinished(): Promise<number> {
    return this.#baton.unfinished();
  }

  stop(): Promise<void> {
    this.#stopped = true;
    return this.#baton.close();
  }

  /** Run for real, so that they are shaped as the store keeps them; then a restart, with nobody at work again. */
  async seedHistory(count: number): Promise<void> {
    this.#baton.work(async () => {});
    for (let left = count; left > 0; left -= 1_000) {
      await this.#baton.submitMany(payloads(Math.min(left, 1_000)));
      while ((await this.#baton.unfinished()) > 20_000) await turn();
    }
    while ((await this.#baton.unfinished()) > 0) await turn();
    await this.#baton.close();
    await this.#baton.start();
  }

  /** File and write-ahead log. */
  async storeBytes(): Promise<number> {
    const files = ["baton.db", "baton.db-wal"].map((name) => join(this.#dir, name));
    return files.reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0);
  }

  /** Both modes are the defaults. */
  async cron(_mode: "default" | "tight", fired: () => void): Promise<void> {
    if (this.#started) return this.#schedule(fired);
    // Its owner is another process. What a supervisor would do by restarting this one, this one does by itself.
    const standBy = async (): Promise<void> => {
      for (; !this.#started && !this.#stopped; await sleep(RETRY_MS)) await this.start();
      if (!this.#stopped) await this.#schedule(fired);
    };
    void standBy();
  }

  async #schedule(fired: () => void): Promise<void> {
    this.#baton.work(async () => fired());
    await everySecond(this.#baton);
  }
}

async function everySecond(baton: Baton): Promise<void> {
  await baton.node.services.schedules.put({ name: "every-second", task: TASK, cron: "* * * * * *" });
}

/**
 * A node that knows the task from its start, as any worker does, and waits for the handler; unless the process turns out to
 * be the producer, and becomes a node without a task.
 */
class ClusterContender {
  readonly #url: string;
  readonly #place: BatonOptions;
  #baton: Baton;
  #produces = false;

  constructor(context: Context, settings: BatonOptions["settings"] = {}) {
    this.#url = context.pgUrl;
    // Nothing is written into the directory.
    this.#place = { dir: join(context.dataDir, "baton-pg"), url: this.#url, settings };
    this.#baton = new Baton(this.#place);
  }

  start(): Promise<void> {
    return this.#baton.start();
  }

  /** Of the store only: other nodes are up and stay so. */
  async reset(): Promise<void> {
    await this.#beProducer();
    await emptyTables(this.#url);
  }

  async enqueue(job: Payload): Promise<unknown> {
    return this.#baton.submit(job);
  }

  async enqueueMany(jobs: readonly Payload[]): Promise<unknown> {
    return this.#baton.submitMany(jobs);
  }

  /** All modes alike: the defaults serve bursts and single jobs, and history is always kept. */
  async work(_mode: WorkMode, handler: (job: Payload) => void | Promise<void>): Promise<void> {
    this.#baton.work(async (job) => handler(job));
  }

  unfinished(): Promise<number> {
    return this.#baton.unfinished();
  }

  stop(): Promise<void> {
    return this.#baton.close();
  }

  /** Some are run for real, and the others are copies of them. */
  async seedHistory(count: number): Promise<void> {
    const worker = new Baton({ ...this.#place, name: "seeder" });
    await worker.start();
    worker.work(async () => {});
    await this.#baton.submitMany(payloads(1_000));
    while ((await worker.unfinished()) > 0) await turn();
    await worker.close();
    await multiplyHistory(this.#url, count);
  }

  storeBytes(): Promise<number> {
    return storeBytes(this.#url);
  }

  /** Both modes are the defaults. */
  async cron(_mode: "default" | "tight", fired: () => void): Promise<void> {
    this.#baton.work(async () => fired());
    await everySecond(this.#baton);
  }

  async #beProducer(): Promise<void> {
    if (this.#produces) return;
    this.#produces = true;
    await this.#baton.close();
    this.#baton = new Baton({ ...this.#place, works: false });
    await this.#baton.start();
  }
}

export const entries = [
  {
    name: "baton-sqlite",
    kind: "ours",
    store: "sqlite",
    durability: "synchronous=FULL: fsync on every commit",
    settings: "all defaults: one node, embedded store, 10 jobs at a time, history kept for 7 days",
    create: (context: Context) => new EmbeddedContender(context),
    drainJobs: 120_000,
    processes: 1,
    inProcess: true,
    // No `keeps` yet: the harness's history scenario ends the process of an `inProcess` contender after its first
    // drain and then calls it again, which would end that scenario for everybody. What it needs is here.
    cron: {
      periodMs: 1_000,
      settings: `cron "* * * * * *"; a second process tries to open the file every ${RETRY_MS} ms`,
    },
  },
  {
    name: "baton-pg",
    kind: "ours",
    store: "postgres",
    durability: "fsync on every commit",
    settings: "all defaults: each process a node, 10 jobs at a time, history kept for 7 days",
    create: (context: Context) => new ClusterContender(context),
    drainJobs: 70_000,
    keeps: true,
    recovery: {
      default: "the dead node's database session",
      measureDefault: true,
      tight: "the same, at the defaults",
    },
    cron: { periodMs: 1_000, settings: 'cron "* * * * * *"; both modes are the defaults' },
  },
  {
    name: "baton-redis",
    kind: "ours",
    store: "postgres",
    durability: "fsync of the database on every commit; what Redis loses is sent again",
    settings: "all defaults with --redis: jobs are kept in PostgreSQL and pushed through Redis Streams",
    create: (context: Context) => {
      const { host, port } = context.redis.everysec;
      return new ClusterContender(context, { "redis.url": `redis://${host}:${port}` });
    },
    drainJobs: 50_000,
    keeps: true,
    recovery: {
      default: "the dead node's connection to Redis",
      measureDefault: true,
      tight: "the same, at the defaults",
    },
    cron: { periodMs: 1_000, settings: 'cron "* * * * * *"; both modes are the defaults' },
  },
] as const;
