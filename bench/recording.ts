/** The file with the recorded ratios: written by `--record`, read by `--check`. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  changeTable,
  compareRatios,
  differences,
  LOSS_MAX,
  passes,
  ratiosOf,
  thisMachine,
  type Recording,
} from "./ratios.ts";
import type { StoreRow } from "./table.ts";

const FILE = join(import.meta.dirname, "ratios.json");

export function recordRatios(rows: readonly StoreRow[], rounds: number): void {
  const recording: Recording = { machine: thisMachine(), rounds, ratios: ratiosOf(rows) };
  writeFileSync(FILE, `${JSON.stringify(recording, null, 2)}\n`);
  console.log(`${Object.keys(recording.ratios).length} ratios are in bench/ratios.json.`);
}

/** False if a ratio became worse than it may. */
export function checkRatios(rows: readonly StoreRow[]): boolean {
  const recording = readRecording();
  const changes = compareRatios(recording.ratios, ratiosOf(rows));
  console.log(`\n${changeTable(changes)}\n`);
  for (const difference of differences(recording.machine, thisMachine()))
    console.log(`Recorded on another machine: ${difference}.`);
  const ok = passes(changes);
  console.log(
    ok ? "No ratio is lost." : `A ratio is worse than recorded by more than ${LOSS_MAX * 100} %, or missing.`,
  );
  return ok;
}

export function hasRecording(): boolean {
  return existsSync(FILE);
}

function readRecording(): Recording {
  return JSON.parse(readFileSync(FILE, "utf8")) as Recording;
}
