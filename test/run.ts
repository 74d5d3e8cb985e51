/**
 * The whole of `npm test`: types, lint, format, then every test file. Prints what it does and how long it takes.
 * `npm test -- worker store` runs only test files whose path contains one of the words.
 *
 * Files named `*.slow.test.ts` are left to `npm run test:slow`: whole clusters and long histories, minutes each.
 *
 * Tests with real servers, processes or a real clock have deadlines, and a machine that stands still for a second may break one. A few files
 * of them that fail are tried once more, alone: what fails again has failed, what passes is called unsteady, here and at the end, with its
 * first failure left above. Pure tests have no such excuse: what they find at random may not be found twice. `--strict` allows no second try.
 */

import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Each file is a process of its own, and nearly all of them load the same modules. */
const COMPILED = join(import.meta.dirname, "../node_modules/.cache/baton-compiled");

const SECOND_TRY_FILES_MAX = 3;
const WITH_SERVERS = /^test\/(?:contract|process|conformance|browser)\//;
const WITH_REAL_TIME = /\b(?:systemClock|nodeHere|startAgent|eventually)\b|Server\.start\(/;

const slow = process.argv.includes("--slow");
const strict = process.argv.includes("--strict");
const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const files = globSync("test/**/*.test.ts")
  .sort()
  .filter((file) => file.includes(".slow.") === slow || words.some((word) => file.includes(word)))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)));

const checks: [string, string, string[]][] = [
  ["types", "tsc", ["--noEmit"]],
  // Those of the page, and of the tests that look at it: they know a DOM, and the rest does not.
  ["types of the dashboard", "tsc", ["--noEmit", "-p", "test/browser"]],
  ["dashboard", process.execPath, ["scripts/build-dashboard.mjs"]],
  ["lint", "oxlint", ["--type-aware", "--quiet"]],
  ["format", "oxfmt", ["--check"]],
];
/** Those that say how long something takes have the machine to themselves; the others keep both of its cores busy: many of them wait. */
const TIMED =
  /^(?!test\/browser\/).*(?:conformance\/|(?:leader|leadership|failover|kill|pause|faults|ownership|chaos|drain|push|pair|takeover)[^/]*$)/;
const whole = files.filter((file) => /^test\/(?:process|conformance|browser)\//.test(file));
const groups = [
  { name: "tests", files: files.filter((file) => !whole.includes(file)), atOnce: 3 },
  { name: "process tests", files: whole.filter((file) => !TIMED.test(file)), atOnce: 2 },
  { name: "timed process tests", files: whole.filter((file) => TIMED.test(file)), atOnce: 1 },
];

const scratch = mkdtempSync(join(tmpdir(), "baton-tests-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const unsteady: string[] = [];

if (words.length === 0 && !slow) {
  for (const [name, command, args] of checks) if (!step(name, command, args)) process.exit(1);
}
for (const { name, files, atOnce } of groups) {
  if (files.length === 0 || test(name, files, atOnce)) continue;
  const { told, again } = failed(files);
  if (strict || again.length === 0 || told > SECOND_TRY_FILES_MAX) process.exit(1);
  if (!again.every(mayStumble)) process.exit(1);
  if (!test(`second try of ${again.join(", ")}`, again, 1)) process.exit(1);
  unsteady.push(...again);
}
for (const file of unsteady)
  process.stdout.write(`UNSTEADY: ${file} failed once and passed at the second try\n`);

function test(name: string, which: readonly string[], atOnce: number): boolean {
  const reports = [
    "--test-reporter=./test/reporter.ts",
    "--test-reporter-destination=stdout",
    "--test-reporter=./test/failed-files.ts",
    `--test-reporter-destination=${join(scratch, "failed")}`,
  ];
  const options = ["--test-timeout=300000", `--test-concurrency=${atOnce}`];
  return step(name, process.execPath, ["--test", ...options, ...reports, ...which]);
}

function mayStumble(file: string): boolean {
  return WITH_SERVERS.test(file) || WITH_REAL_TIME.test(readFileSync(file, "utf8"));
}

/** A test that is defined in a file shared by several counts for all of them in its folder. */
function failed(among: readonly string[]): { readonly told: number; readonly again: readonly string[] } {
  const told = readFileSync(join(scratch, "failed"), "utf8").split("\n").filter(Boolean);
  const found = told.flatMap((file) =>
    among.includes(file) ? [file] : among.filter((each) => each.startsWith(file.replace(/[^/]*$/, ""))),
  );
  return { told: told.length, again: [...new Set(found)] };
}

function step(name: string, command: string, args: readonly string[]): boolean {
  const startedAt = performance.now();
  process.stdout.write(`${name} …\n`);
  // npm puts node_modules/.bin first on the path, so that `tsc` and Node itself are the project's own.
  const { status } = spawnSync(command, args, {
    stdio: "inherit",
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
  });
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  process.stdout.write(`${name} ${status === 0 ? "ok" : "FAILED"} in ${seconds} s\n`);
  return status === 0;
}
