/**
 * The whole of `npm test`: types, lint, format and every test file. It prints each part as it ends, and the slowest ones at the end.
 * `npm test -- worker store` runs only the test files whose path contains one of the words, without the checks.
 *
 * All parts wait in one queue, whole clusters and then the longest first, so that no core is idle at the end. The tests of one folder of `test/unit` or
 * `test/node` share a process; every other file has a process of its own. One PostgreSQL server serves all files of a run (see support/postgres-server.ts).
 *
 * The files in `test/nightly` start whole clusters or replay long histories. `npm run test:nightly` runs them, with a random seed for the
 * properties; `npm test` uses a fixed one. BATON_TEST_SEED repeats a run.
 *
 * A test that fails has failed: nothing is tried twice.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, constants } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PostgresServer, SHARED_POSTGRES } from "./support/postgres-server.ts";

/** One entry of the queue: a check, a test file, or the unit tests of one folder. */
interface Part {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whole clusters of processes, which keep more than one core busy. */
  readonly heavy: boolean;
}

interface Result {
  readonly part: Part;
  readonly ok: boolean;
  readonly seconds: number;
  readonly output: string;
}

/** More at once, and leases of a second or two end because their nodes get no processor time. */
const PARTS_MAX = availableParallelism();
const HEAVY_MAX = Math.max(1, availableParallelism() - 1);
const PART_MS = 20 * 60_000;
/** For a part to stop its servers and to remove their directories after a signal. */
const STOP_MS = 5_000;
/** Other process and browser tests start one node. */
const CLUSTERS = /^test\/(?:nightly\/)?(?:process\/\w+\/|conformance\/|browser\/(?:leader-kill|processes))/;
/** Where a folder's name does not say how long it takes: seconds on two cores, as written by `--record`. */
const DURATIONS = join(import.meta.dirname, "durations.json");
/** Nearly all processes load the same modules. */
const COMPILED = join(import.meta.dirname, "../node_modules/.cache/baton-compiled");

const flags = new Set(process.argv.slice(2).filter((word) => word.startsWith("--")));
const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const nightly = flags.has("--nightly");
const files = globSync("test/**/*.test.ts", { exclude: ["**/node_modules/**"] })
  .filter((file) =>
    words.length === 0
      ? file.startsWith("test/nightly/") === nightly
      : words.some((word) => file.includes(word)),
  )
  .sort();
/** Tests that are given none use a fixed one. */
const seed = process.env["BATON_TEST_SEED"] ?? (nightly ? String(randomInt(2 ** 31)) : null);

const durations = JSON.parse(readFileSync(DURATIONS, "utf8")) as Record<string, number>;
const running = new Map<ChildProcess, Part>();
const results: Result[] = [];

if (files.length === 0) {
  process.stderr.write(`no test file contains ${words.join(" or ")} in its path\n`);
  process.exit(1);
}
const startedAt = performance.now();
process.stdout.write(`${files.length} test files${seed === null ? "" : `, BATON_TEST_SEED=${seed}`}\n`);
const whole = words.length === 0 && !nightly;
const waiting = longestFirst([...(whole ? checks() : []), ...parts(files)]);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void stop(signal));
if (words.length === 0) buildDashboard();
const server = await PostgresServer.start({ settings: ["max_connections=400"] });
try {
  await runAll();
} finally {
  await server.stop();
}
report();

/** Before anything else: tests serve the files that this makes. */
function buildDashboard(): void {
  const built = spawnSync(process.execPath, ["scripts/build-dashboard.mjs"], { encoding: "utf8" });
  if (built.status === 0) return;
  process.stdout.write(`${built.stdout}${built.stderr}✖ the dashboard was not built\n`);
  process.exit(1);
}

/**
 * npm puts node_modules/.bin first on the path, so that `tsc` and Node itself are the project's own. Each check has one thread: four
 * threads of tsc check many types four times, which takes twice the processor time.
 */
function checks(): Part[] {
  const types = ["--noEmit", "--singleThreaded"];
  const lint = ["--type-aware", "--quiet", "--threads=1"];
  return [
    { name: "types", command: "tsc", args: types, heavy: false },
    // Those of the page, and of the tests that look at it: they know a DOM, and the rest does not.
    { name: "types of the dashboard", command: "tsc", args: [...types, "-p", "test/browser"], heavy: false },
    { name: "lint", command: "oxlint", args: lint, env: { GOMAXPROCS: "1" }, heavy: false },
    { name: "format", command: "oxfmt", args: ["--check"], heavy: false },
  ];
}

function parts(files: readonly string[]): Part[] {
  const named = Map.groupBy(files, (file) => /^test\/(?:unit|node)\/[^/]+(?=\/)/.exec(file)?.[0] ?? file);
  return [...named].map(([name, files]) => ({
    name,
    command: process.execPath,
    args: [
      "--test",
      "--test-isolation=none",
      "--test-timeout=300000",
      "--test-reporter=./test/reporter.ts",
      ...files,
    ],
    heavy: CLUSTERS.test(name),
  }));
}

/**
 * Heavy parts first: they take one place after the other, and left for the end they would leave the second place empty. A new file
 * counts as long: it must not be the last to start.
 */
function longestFirst(parts: readonly Part[]): Part[] {
  const secondsOf = ({ name }: Part): number => durations[name] ?? 10;
  return parts.toSorted((a, b) => Number(b.heavy) - Number(a.heavy) || secondsOf(b) - secondsOf(a));
}

async function runAll(): Promise<void> {
  const runNext = async (): Promise<void> => {
    for (;;) {
      const heavy = [...running.values()].filter((part) => part.heavy).length;
      const next = waiting.findIndex((part) => !part.heavy || heavy < HEAVY_MAX);
      if (next === -1) return;
      results.push(await run(waiting.splice(next, 1)[0]!));
    }
  };
  // A place that found only heavy parts waiting is filled again when one of them ends.
  while (waiting.length > 0) await Promise.all(Array.from({ length: PARTS_MAX }, runNext));
}

function run(part: Part): Promise<Result> {
  const from = performance.now();
  const child = spawn(part.command, part.args, {
    stdio: ["ignore", "pipe", "pipe"],
    // A process group of its own, so that nothing that it starts outlives it.
    detached: true,
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: COMPILED,
      // tsc and the linter are Go programs that end soon: garbage collection is a third of their processor time.
      GOGC: "400",
      ...part.env,
      ...(seed !== null && { BATON_TEST_SEED: seed }),
      [SHARED_POSTGRES]: String(server.port),
    },
  });
  running.set(child, part);
  const late = setTimeout(() => killGroup(child), PART_MS);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => killGroup(child));
    child.once("close", (code, signal) => {
      running.delete(child);
      clearTimeout(late);
      const seconds = (performance.now() - from) / 1_000;
      const ok = code === 0;
      if (signal !== null) output += `ended by ${signal}\n`;
      process.stdout.write(`${ok ? "✔" : "✖"} ${part.name} (${seconds.toFixed(1)} s)\n${ok ? "" : output}`);
      resolve({ part, ok, seconds, output });
    });
  });
}

function report(): void {
  const failed = results.filter(({ ok }) => !ok);
  const slowest = results.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10);
  const skipped = results.flatMap(({ output }) => output.match(/^- skipped: .*$/gm) ?? []);
  const wall = (performance.now() - startedAt) / 1_000;
  const used = results.reduce((sum, { seconds }) => sum + seconds, 0);
  const tests = results.reduce((sum, { output }) => sum + Number(/(\d+) passed, /.exec(output)?.[1] ?? 0), 0);
  const lines = [
    "",
    `slowest: ${slowest.map(({ part, seconds }) => `${part.name} ${seconds.toFixed(0)} s`).join(", ")}`,
    ...skipped,
    ...failed.map(({ part }) => `✖ ${part.name}`),
    `${tests} tests passed, ${failed.length} parts failed, ${wall.toFixed(0)} s; ${used.toFixed(0)} s of parts on ${PARTS_MAX} places`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  if (flags.has("--record")) record();
  if (failed.length > 0) process.exitCode ??= 1;
}

function record(): void {
  for (const { part, ok, seconds } of results) if (ok) durations[part.name] = Math.round(seconds);
  const kept = Object.entries(durations).toSorted(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(DURATIONS, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);
}

/**
 * Nothing more is started. The test processes get the signal: they stop their servers and remove their directories. The nodes that they
 * started end with their groups.
 */
async function stop(signal: NodeJS.Signals): Promise<void> {
  waiting.length = 0;
  process.exitCode = 128 + constants.signals[signal];
  const children = [...running.keys()];
  for (const child of children) child.kill(signal);
  await sleep(STOP_MS, undefined, { ref: false });
  children.forEach(killGroup);
}

function killGroup(leader: ChildProcess): void {
  try {
    process.kill(-leader.pid!, "SIGKILL");
  } catch {
    // Nothing of it is left.
  }
}
