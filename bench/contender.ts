/**
 * Baton as a contender in a harness that measures job queues side by side. It loads this module, finds `entries`, and
 * drives each through the verbs below; the shapes are the harness's, repeated here so that nothing of it is imported.
 *
 * One process owns the file of the embedded store, so that producer and worker share it (`inProcess`).
 */

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { Baton } from "./baton.ts";
import { payloads, type Payload } from "./subject.ts";

type WorkMode = "throughput" | "retain" | "latency" | "recover-default" | "recover-tight";

/** What the harness hands over: a directory of this contender's own, among servers that are not needed here. */
interface Context {
  readonly dataDir: string;
}

class BatonContender {
  readonly #dir: string;
  readonly #baton: Baton;

  constructor(context: Context) {
    this.#dir = join(context.dataDir, "baton");
    this.#baton = new Baton({ dir: this.#dir });
  }

  start(): Promise<void> {
    return this.#baton.start();
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
    return this.#baton.close();
  }

  /** Run for real, so that they are shaped as the store keeps them; then a restart, with nobody at work again. */
  async seedHistory(count: number): Promise<void> {
    this.#baton.work(async () => {});
    for (let left = count; left > 0; left -= 1_000) {
      await this.#baton.submitMany(payloads(Math.min(left, 1_000)));
      while ((await this.#baton.unfinished()) > 20_000)
        await new Promise<void>((resolve) => setImmediate(resolve));
    }
    while ((await this.#baton.unfinished()) > 0) await new Promise<void>((resolve) => setImmediate(resolve));
    await this.#baton.close();
    await this.#baton.start();
  }

  /** File and write-ahead log. */
  async storeBytes(): Promise<number> {
    const files = ["baton.db", "baton.db-wal"].map((name) => join(this.#dir, name));
    return files.reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0);
  }
}

export const entries = [
  {
    name: "baton-sqlite",
    kind: "ours",
    store: "sqlite",
    durability: "synchronous=FULL: fsync on every commit",
    settings: "all defaults: one node, embedded store, 10 jobs at a time, history kept for 7 days",
    create: (context: Context) => new BatonContender(context),
    drainJobs: 120_000,
    processes: 1,
    inProcess: true,
    keeps: true,
  },
] as const;
