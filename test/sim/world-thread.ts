/**
 * Runs simulated worlds on a thread of their own, one at a time. On its own thread, node:test follows every promise, and a
 * world, which is made of promises, takes a third more processor time there.
 */

import { once } from "node:events";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { BUGS } from "./bugs.ts";
import type { Counts } from "./history.ts";
import { World, type Report, type WorldOptions } from "./world.ts";

export interface ThreadOptions extends Omit<WorldOptions, "bug"> {
  readonly bug?: string;
}

/** What is left of a world. */
export interface SeedReport extends Pick<Report, "digest" | "violations"> {
  readonly lines: readonly string[];
  readonly counts: Counts & { readonly lostReplies: number; readonly duplicates: number };
}

export class WorldThread {
  readonly #worker = new Worker(import.meta.filename);

  async run(options: ThreadOptions): Promise<SeedReport> {
    const answered = once(this.#worker, "message") as Promise<[SeedReport | Error]>;
    this.#worker.postMessage(options);
    const [report] = await answered;
    if (report instanceof Error) throw report;
    return report;
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}

async function runWorld({ bug, ...options }: ThreadOptions): Promise<SeedReport> {
  const report = await World.run({ ...options, ...(bug !== undefined && { bug: BUGS[bug]! }) });
  const { digest, violations, history, network } = report;
  const { lostReplies, duplicates } = network;
  return { digest, violations, lines: history.lines, counts: { ...history.counts, lostReplies, duplicates } };
}

if (!isMainThread) {
  parentPort!.on("message", (options: ThreadOptions) => {
    runWorld(options).then(
      (report) => parentPort!.postMessage(report),
      (error: unknown) => parentPort!.postMessage(error instanceof Error ? error : new Error(String(error))),
    );
  });
}
