/**
 * The whole of `npm test`: types, lint, format, then every test file. Prints what it does and how long it takes.
 * `npm test -- worker store` runs only test files whose path contains one of the words.
 */

import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";

const words = process.argv.slice(2);
const files = globSync("test/**/*.test.ts")
  .sort()
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)));

const checks: [string, string, string[]][] = [
  ["types", "tsc", ["--noEmit"]],
  ["lint", "oxlint", ["--type-aware", "--quiet"]],
  ["format", "oxfmt", ["--check"]],
];
const tests: [string, string, string[]] = [
  "tests",
  process.execPath,
  ["--test", "--test-timeout=180000", "--test-reporter=./test/reporter.ts", ...files],
];

for (const [name, command, args] of words.length === 0 ? [...checks, tests] : [tests]) {
  const startedAt = performance.now();
  process.stdout.write(`${name} …\n`);
  // npm puts node_modules/.bin first on the path, so that `tsc` and Node itself are the project's own.
  const { status } = spawnSync(command, args, { stdio: "inherit" });
  process.stdout.write(
    `${name} ${status === 0 ? "ok" : "FAILED"} in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n`,
  );
  if (status !== 0) process.exit(1);
}
