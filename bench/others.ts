/** Runs the comparison with other job queues, a package of its own in `peers`, and reads what it measured. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "./scenario.ts";

const PACKAGE = join(import.meta.dirname, "peers");

interface Spread {
  readonly median: number;
  /** One for each round. */
  readonly values: readonly number[];
}

export interface Drained {
  readonly rate: Spread;
  readonly workerUs: number;
  readonly serverUs: number;
}

export interface Enqueued {
  readonly rate: Spread;
  readonly clientUs: number;
  readonly serverUs: number;
}

/** The results by scenario, contender and, for some, what was measured. */
export interface OthersResults {
  readonly drain: Readonly<Record<string, Readonly<Record<string, Drained>>>>;
  readonly enqueue: Readonly<Record<string, Readonly<Record<"one" | "fifty" | "bulk", Enqueued>>>>;
  readonly latency: Readonly<Record<string, { readonly p50: number; readonly p99: number }>>;
  readonly snapshot: Readonly<
    Record<string, { readonly before: number; readonly slices: readonly number[] }>
  >;
}

export interface Contest {
  readonly scenarios: readonly (keyof OthersResults)[];
  readonly contenders: readonly string[];
  /** Longer windows and backlogs. */
  readonly scale?: number;
}

const ROUNDS_MAX = 3;

export async function runOthers(bench: Bench, contest: Contest): Promise<OthersResults> {
  if (!existsSync(join(PACKAGE, "node_modules")))
    throw new Error("the other job queues are not installed; run npm --prefix bench/peers ci");
  const place = await bench.engine.place("others");
  const out = `${place.dir}.json`;
  const rounds = Math.min(bench.rounds, bench.quick ? 1 : ROUNDS_MAX);
  const options = {
    add: "../contender.ts",
    out,
    scenario: contest.scenarios.join(","),
    only: contest.contenders.join(","),
    rounds,
    scale: contest.scale ?? 1,
    ...(bench.before ? { before: bench.before } : {}),
  };
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  if (bench.quick) args.push("--quick");
  // Its tables are progress here, and go where progress goes.
  const child = spawn(process.execPath, ["src/run.ts", ...args], { cwd: PACKAGE, stdio: ["ignore", 2, 2] });
  const stop = (): void => void child.kill("SIGTERM");
  process.once("exit", stop);
  const [code] = (await once(child, "exit")) as [number | null];
  process.off("exit", stop);
  if (code !== 0) throw new Error(`the comparison with other job queues ended with ${code}`);
  return (JSON.parse(readFileSync(out, "utf8")) as { results: OthersResults }).results;
}
