/** The one table of a run, readable on a terminal and as Markdown. */

import type { Row } from "./scenario.ts";

const HEADER = [
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

export function table(rows: readonly Row[]): string {
  const lines = [HEADER, ...rows.map(cells)];
  const widths = HEADER.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const draw = (line: readonly string[]): string =>
    `| ${line.map((cell, column) => (leans(column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(" | ")} |`;
  const rule = `|${widths.map((width, column) => (leans(column) ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [draw(HEADER), rule, ...lines.slice(1).map(draw)].join("\n");
}

function leans(column: number): boolean {
  return column < 2 || column === 6 || column === 7;
}

function cells(row: Row): string[] {
  const more = row.unit.endsWith("/s");
  const ratio = (value: number): string => (more ? `${Math.round(value * 100)} %` : `${value.toFixed(2)} ×`);
  return [
    row.figure,
    row.unit,
    number(row.ours),
    row.floor === null ? "" : number(row.floor),
    row.ratio === null ? "" : ratio(row.ratio),
    row.ratios ? row.ratios.map(ratio).join(" … ") : "",
    row.target?.text ?? "",
    row.target ? (row.target.met ? "met" : "MISSED") : "",
    row.cpuUs ? row.cpuUs.ours.toFixed(1) : "",
    row.cpuUs && row.cpuUs.floor !== null ? row.cpuUs.floor.toFixed(1) : "",
  ];
}

function number(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(value >= 10 ? 1 : 2);
}
