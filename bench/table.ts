/** The one table of a run, readable on a terminal and as Markdown. */

import type { EngineName } from "./engine.ts";
import type { CpuUs, Row } from "./scenario.ts";

/** A row and the store that it was measured on. */
export type StoreRow = Row & { readonly store: EngineName };

const HEADER = [
  "store",
  "figure",
  "unit",
  "ours",
  "floor",
  "ours/floor",
  "rounds",
  "target",
  "",
  "CPU µs ours",
  "floor",
];

export function table(rows: readonly StoreRow[]): string {
  const lines = [HEADER, ...rows.map(cells)];
  const widths = HEADER.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const draw = (line: readonly string[]): string =>
    `| ${line.map((cell, column) => (leans(column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(" | ")} |`;
  const rule = `|${widths.map((width, column) => (leans(column) ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [draw(HEADER), rule, ...lines.slice(1).map(draw)].join("\n");
}

function leans(column: number): boolean {
  return column < 3 || column === 7 || column === 8;
}

function cells(row: StoreRow): string[] {
  const more = row.unit.endsWith("/s");
  const ratio = (value: number): string => (more ? `${Math.round(value * 100)} %` : `${value.toFixed(2)} ×`);
  return [
    row.store,
    row.figure,
    row.unit,
    number(row.ours),
    row.floor === null ? "" : number(row.floor),
    row.ratio === null ? "" : ratio(row.ratio),
    row.ratios ? row.ratios.map(ratio).join(" … ") : "",
    row.target?.text ?? "",
    row.target ? (row.target.met ? "met" : "MISSED") : "",
    cpu(row.cpuUs?.ours),
    cpu(row.cpuUs?.floor),
  ];
}

/** Own and server. */
function cpu(us: CpuUs | null | undefined): string {
  if (!us) return "";
  return us.server === null ? us.own.toFixed(1) : `${us.own.toFixed(1)} + ${us.server.toFixed(1)}`;
}

function number(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(value >= 10 ? 1 : 2);
}
