/** Runs one seed of a simulated world and fails with its history if a promise was broken. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SeedReport, ThreadOptions, WorldThread } from "./world-thread.ts";

export async function runSeed(thread: WorldThread, options: ThreadOptions): Promise<SeedReport> {
  const report = await thread.run(options);
  if (report.violations.length > 0) {
    const file = join(tmpdir(), `baton-sim-${options.fabric}-${options.seed}.log`);
    writeFileSync(file, `${report.lines.join("\n")}\n`);
    const shown = report.violations.slice(0, 5).join("\n  ");
    assert.fail(`seed ${options.seed} (${options.fabric}): see ${file}\n  ${shown}`);
  }
  return report;
}

export function tally(reports: readonly SeedReport[]): SeedReport["counts"] {
  const sums: Record<string, number> = {};
  for (const { counts } of reports)
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  return sums as unknown as SeedReport["counts"];
}
