/**
 * Baton as a contender in a harness that measures job queues side by side. It loads this module, finds `entries`, and
 * drives each through the verbs below; the shapes are the harness's, repeated here so that nothing of it is imported.
 *
 * On PostgreSQL, with or without a Redis beside it, every process is a node of one cluster. One process owns the file of the embedded store, so that
 * producer and worker share it there (`inProcess`).
 */

import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { Baton, type BatonOptions } from "./baton.ts";
import { emptyTables, multiplyHistory, storeBytes } from "./postgres-tables.ts";
import { payloads, type Payload } from "./subject.ts";

type WorkMode = "throughput" | "retain" | "latency" | "recover-default" | "recover-tight";

/** What the harness hands over: a directory and a database of this contender's own, among servers not needed here. */
interface Context {
  readonly dataDir: string;
  readonly pgUrl: string;
  readonly redis: { readonly everysec: { readonly host: string; readonly port: number } };
}

/** What every kind does alike: a node whose workers wait for the handler. */
abstract class Contender {
  protected baton: Baton;

  constructor(options: BatonOptions) {
    this.baton = new Baton(options);
  }

  start(): Promise<void> {
    return this.baton.start();
  }

  enqueue(job: Payload): Promise<unknown> {
    return this.baton.submit(job);
  }

  enqueueMany(jobs: readonly Payload[]): Promise<unknown> {
    return this.baton.submitMany(jobs);
  }

  /** All modes alike: the defaults serve bursts and single jobs, and history is always kept. */
  async work(_mode: WorkMode, handler: (job: Payload) => void | Promise<void>): Promise<void> {
    this.baton.work(async (job) => handler(job));
  }

  unfinished(): Promise<number> {
    return this.baton.unfinished();
  }

  stop(): Promise<void> {
    return this.baton.close();
  }
}

class EmbeddedContender extends Contender {
  constructor({ dataDir }: Context) {
    super({ dir: join(dataDir, "baton") });
  }

  reset(): Promise<void> {
    return this.baton.reset();
  }
}

/**
 * A node that knows the task from its start, as any worker does, and waits for the handler; unless the process turns out to
 * be the producer, and becomes a node without a task.
 */
class ClusterContender extends Contender {
  readonly #url: string;
  readonly #place: BatonOptions;
  #produces = false;

  constructor({ dataDir, pgUrl }: Context, settings: BatonOptions["settings"] = {}) {
    // Nothing is written into the directory.
    const place = { dir: join(dataDir, "baton-pg"), url: pgUrl, settings };
    super(place);
    this.#url = pgUrl;
    this.#place = place;
  }

  /** Of the store only: other nodes are up and stay so. */
  async reset(): Promise<void> {
    await this.#beProducer();
    await emptyTables(this.#url);
  }

  /** Some are run for real, and the others are copies of them. */
  async seedHistory(count: number): Promise<void> {
    const worker = new Baton({ ...this.#place, name: "seeder" });
    await worker.start();
    worker.work(async () => {});
    await this.baton.submitMany(payloads(1_000));
    while ((await worker.unfinished()) > 0) await turn();
    await worker.close();
    await multiplyHistory(this.#url, count);
  }

  storeBytes(): Promise<number> {
    return storeBytes(this.#url);
  }

  async #beProducer(): Promise<void> {
    if (this.#produces) return;
    this.#produces = true;
    await this.baton.close();
    this.baton = new Baton({ ...this.#place, works: false });
    await this.baton.start();
  }
}

/** Of those on PostgreSQL: what their node does without any tuning. */
const CLUSTER = {
  kind: "ours",
  store: "postgres",
  keeps: true,
} as const;

function recovery(by: string) {
  return { default: by, measureDefault: true, tight: "the same, at the defaults" } as const;
}

function redisOf({ redis: { everysec } }: Context): Record<string, string> {
  return { "redis.url": `redis://${everysec.host}:${everysec.port}` };
}

export const entries = [
  {
    name: "baton-sqlite",
    kind: "ours",
    store: "sqlite",
    durability: "synchronous=FULL: fsync on every commit",
    settings: "all defaults: one node, embedded store, 10 jobs at a time, history kept for 7 days",
    create: (context: Context) => new EmbeddedContender(context),
    drainJobs: 300_000,
    processes: 1,
    inProcess: true,
    // No `keeps`: the harness's history scenario ends the process of an `inProcess` contender after its first drain and
    // then calls it again, which would end that scenario for everybody.
  },
  {
    ...CLUSTER,
    name: "baton-pg",
    durability: "fsync on every commit",
    settings: "all defaults: each process a node, 10 jobs at a time, history kept for 7 days",
    create: (context: Context) => new ClusterContender(context),
    drainJobs: 400_000,
    recovery: recovery("the dead node's database session"),
  },
  {
    ...CLUSTER,
    name: "baton-redis",
    durability: "fsync of the database on every commit; what Redis loses is sent again",
    settings:
      "all defaults with --redis: jobs are kept in PostgreSQL, Redis elects the leader and carries the hints",
    create: (context: Context) => new ClusterContender(context, redisOf(context)),
    drainJobs: 400_000,
    recovery: recovery("the dead node's connection to Redis"),
  },
  {
    ...CLUSTER,
    name: "baton-push",
    durability: "fsync of the database on every commit; what Redis loses is sent again",
    settings: "--redis --dispatch push: the leader dispatches through Redis Streams, and jobs have owners",
    create: (context: Context) =>
      new ClusterContender(context, { ...redisOf(context), "dispatch.mode": "push" }),
    drainJobs: 100_000,
    recovery: recovery("the dead node's connection to Redis"),
  },
] as const;
