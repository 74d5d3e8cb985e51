/**
 * The whole of `npm test`: types, lint, format, then every test file. Prints what it does and how long it takes.
 * `npm test -- worker store` runs only test files whose path contains one of the words.
 *
 * Files named `*.slow.test.ts` are left to `npm run test:slow`: whole clusters and long histories, minutes each.
 */

import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";

const slow = process.argv.includes("--slow");
const words = process.argv.slice(2).filter((word) => word !== "--slow");
const files = globSync("test/**/*.test.ts")
  .sort()
  .filter((file) => file.includes(".slow.") === slow || words.some((word) => file.includes(word)))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)));

const checks: [string, string, string[]][] = [
  ["types", "tsc", ["--noEmit"]],
  ["lint", "oxlint", ["--type-aware", "--quiet"]],
  ["format", "oxfmt", ["--check"]],
];
/** Those that say how long something takes have the machine to themselves; the others keep both of its cores busy. */
const TIMED =
  /(?:conformance\/|(?:leader|leadership|failover|kill|pause|faults|ownership|chaos|drain|push|pair|takeover)[^/]*$)/;
const whole = files.filter((file) => /^test\/(?:process|conformance)\//.test(file));
const tests: [string, string, string[]][] = [
  [
    "tests",
    process.execPath,
    testing(
      files.filter((file) => !whole.includes(file)),
      2,
    ),
  ],
  [
    "process tests",
    process.execPath,
    testing(
      whole.filter((file) => !TIMED.test(file)),
      2,
    ),
  ],
  [
    "timed process tests",
    process.execPath,
    testing(
      whole.filter((file) => TIMED.test(file)),
      1,
    ),
  ],
];

function testing(which: readonly string[], concurrency: number): string[] {
  const options = ["--test-timeout=300000", `--test-concurrency=${concurrency}`];
  return ["--test", ...options, "--test-reporter=./test/reporter.ts", ...which];
}

for (const [name, command, args] of words.length === 0 && !slow ? [...checks, ...tests] : tests) {
  if (tests.some(([test]) => test === name) && !args.some((arg) => arg.endsWith(".test.ts"))) continue;
  const startedAt = performance.now();
  process.stdout.write(`${name} …\n`);
  // npm puts node_modules/.bin first on the path, so that `tsc` and Node itself are the project's own.
  const { status } = spawnSync(command, args, { stdio: "inherit" });
  process.stdout.write(
    `${name} ${status === 0 ? "ok" : "FAILED"} in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n`,
  );
  if (status !== 0) process.exit(1);
}
