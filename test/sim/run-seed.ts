/** Runs one seed of a simulated world and fails with its history if a promise was broken. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Counts } from "./history.ts";
import { World, type Report, type WorldOptions } from "./world.ts";

export async function runSeed(options: WorldOptions): Promise<Report> {
  const report = await World.run(options);
  if (report.violations.length > 0) {
    const file = join(tmpdir(), `baton-sim-${options.fabric}-${options.seed}.log`);
    writeFileSync(file, `${report.history.lines.join("\n")}\n`);
    const shown = report.violations.slice(0, 5).join("\n  ");
    assert.fail(`seed ${options.seed} (${options.fabric}): see ${file}\n  ${shown}`);
  }
  return report;
}

type Tally = Counts & { readonly lostReplies: number; readonly duplicates: number };

/** The counts of all runs together. */
export function tally(reports: readonly Report[]): Tally {
  const sums: Record<string, number> = {};
  for (const {
    history,
    network: { lostReplies, duplicates },
  } of reports)
    for (const [name, count] of Object.entries({ ...history.counts, lostReplies, duplicates }))
      sums[name] = (sums[name] ?? 0) + count;
  return sums as unknown as Tally;
}
