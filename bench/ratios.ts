/**
 * The regression guard: ratios of a run beside those in the file that `--record` wrote. Only ratios to a floor of the same run are
 * compared; absolute figures are those of one machine in one hour.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { moreIsBetter, type CpuUs } from "./scenario.ts";
import { markdown, times, type StoreRow } from "./table.ts";

/** What is committed. */
const FILE = join(import.meta.dirname, "ratios.json");
/** A ratio that is worse by more than this share is a regression. */
const LOSS_MAX = 0.2;

export interface Ratio {
  readonly ratio: number;
  readonly better: "more" | "less";
}

export type Ratios = Readonly<Record<string, Ratio>>;

export interface Machine {
  readonly cpus: number;
  readonly model: string;
  readonly memoryGiB: number;
  readonly node: string;
  readonly platform: string;
}

interface Recording {
  readonly machine: Machine;
  readonly rounds: number;
  readonly ratios: Ratios;
}

export type Verdict = "kept" | "better" | "LOST" | "new" | "NOT MEASURED";

export interface Change {
  readonly figure: string;
  readonly recorded: number | null;
  readonly measured: number | null;
  /** Share by which it became worse; negative if it became better. */
  readonly loss: number | null;
  readonly verdict: Verdict;
}

/** Of rates and times, and of the processor time for each job, which moves less when the machine is busy. */
export function ratiosOf(rows: readonly StoreRow[]): Ratios {
  const ratios: Record<string, Ratio> = {};
  for (const { store, scenario, figure, unit, ratio, cpuUs } of rows) {
    const name = `${store} ${scenario}: ${figure.trim()}`;
    const better = moreIsBetter(unit) ? "more" : "less";
    if (ratio !== null) ratios[name] = { ratio: rounded(ratio), better };
    if (cpuUs?.floor)
      ratios[`${name}, CPU`] = { ratio: rounded(sum(cpuUs.ours) / sum(cpuUs.floor)), better: "less" };
  }
  return ratios;
}

function sum({ own, server }: CpuUs): number {
  return own + (server ?? 0);
}

function rounded(ratio: number): number {
  return Number(ratio.toPrecision(3));
}

/** Every recorded figure has to be measured: a guard that loses a figure does not guard it any more. */
export function compareRatios(recorded: Ratios, measured: Ratios): Change[] {
  return [...new Set([...Object.keys(recorded), ...Object.keys(measured)])].map((figure) => {
    const [before, now] = [recorded[figure], measured[figure]];
    if (!now) return { figure, recorded: before!.ratio, measured: null, loss: null, verdict: "NOT MEASURED" };
    if (!before) return { figure, recorded: null, measured: now.ratio, loss: null, verdict: "new" };
    const share = now.better === "more" ? now.ratio / before.ratio : before.ratio / now.ratio;
    const loss = 1 - share;
    const verdict = loss > LOSS_MAX ? "LOST" : loss < -LOSS_MAX ? "better" : "kept";
    return { figure, recorded: before.ratio, measured: now.ratio, loss, verdict };
  });
}

export function passes(changes: readonly Change[]): boolean {
  return changes.every(({ verdict }) => verdict !== "LOST" && verdict !== "NOT MEASURED");
}

export function changeTable(changes: readonly Change[]): string {
  const cell = (ratio: number | null): string => (ratio === null ? "" : times(ratio));
  const rows = changes.map(({ figure, recorded, measured, loss, verdict }) => [
    figure,
    cell(recorded),
    cell(measured),
    loss === null ? "" : `${(loss * 100).toFixed(0)} %`,
    verdict,
  ]);
  return markdown(["figure", "recorded", "now", "loss", ""], rows, new Set([1, 2, 3]));
}

function thisMachine(): Machine {
  return {
    cpus: cpus().length,
    model: cpus()[0]?.model.trim() ?? "unknown",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
  };
}

/** What differs between the two machines, in words. */
export function differences(recorded: Machine, here: Machine): string[] {
  return (Object.keys(here) as (keyof Machine)[])
    .filter((key) => recorded[key] !== here[key])
    .map((key) => `${key} ${recorded[key]} there, ${here[key]} here`);
}

export function recordRatios(rows: readonly StoreRow[], rounds: number): void {
  const recording: Recording = { machine: thisMachine(), rounds, ratios: ratiosOf(rows) };
  writeFileSync(FILE, `${JSON.stringify(recording, null, 2)}\n`);
  console.log(`${Object.keys(recording.ratios).length} ratios are in bench/ratios.json.`);
}

/** False if a ratio became worse than it may. */
export function checkRatios(rows: readonly StoreRow[]): boolean {
  const recording = JSON.parse(readFileSync(FILE, "utf8")) as Recording;
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
