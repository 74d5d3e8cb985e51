/** The one table of a run, readable on a terminal and as Markdown. */

import type { EngineName } from "./engine.ts";
import type { CpuUs, Row } from "./scenario.ts";

/** A row, the scenario that gave it, and the store that it was measured on. */
export type StoreRow = Row & { readonly scenario: string; readonly store: EngineName };

const HEADER = [
  "store",
  "figure",
  "unit",
  "ours",
  "beside",
  "of",
  "ratio",
  "rounds",
  "to reach",
  "reached",
  "CPU µs ours",
  "beside",
];
const NUMBERS = new Set([3, 4, 6, 7, 10, 11]);

export function table(rows: readonly StoreRow[]): string {
  return markdown(HEADER, rows.map(cells), NUMBERS);
}

/** `numbers`: the columns that are set flush right. */
export function markdown(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  numbers: ReadonlySet<number>,
): string {
  const lines = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const pad = (cell: string, column: number): string =>
    numbers.has(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!);
  const draw = (line: readonly string[]): string => `| ${line.map(pad).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    numbers.has(column) ? `${"-".repeat(width + 1)}:` : "-".repeat(width + 2),
  );
  return [draw(header), `|${rule.join("|")}|`, ...rows.map(draw)].join("\n");
}

function cells(row: StoreRow): string[] {
  return [
    row.store,
    row.figure,
    row.unit,
    number(row.ours),
    row.floor === null ? "" : number(row.floor),
    row.floor === null ? "" : (row.beside ?? "floor"),
    row.ratio === null ? "" : times(row.ratio),
    row.ratios ? row.ratios.map(times).join(" … ") : "",
    row.target?.text ?? "",
    row.target ? (row.target.met ? "yes" : "NO") : "",
    cpu(row.cpuUs?.ours),
    cpu(row.cpuUs?.floor),
  ];
}

export function times(ratio: number): string {
  return `${ratio.toFixed(2)} ×`;
}

/** Own and server. */
function cpu(us: CpuUs | null | undefined): string {
  if (!us) return "";
  return us.server === null ? us.own.toFixed(1) : `${us.own.toFixed(1)} + ${us.server.toFixed(1)}`;
}

export function number(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(value >= 10 ? 1 : 2);
}
