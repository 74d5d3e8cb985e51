/** Writes data to stdout: a table for people, JSON or YAML for programs. */

import { stripVTControlCharacters } from "node:util";
import Table from "cli-table3";
import type * as Yaml from "yaml";
import { loadPackage } from "../../platform/load-package.ts";
import { columnsOf, shorten, wrapped } from "./plain-text.ts";
import type { Style, Terminal } from "./terminal.ts";
import { styled } from "./terminal.ts";

export const OUTPUT_FORMATS = ["table", "json", "yaml"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** JSON and YAML show the data as it came from the node; only people need a selection. */
export function print(terminal: Terminal, format: OutputFormat, data: unknown, table: () => string): void {
  const { streaming = false } = terminal;
  const text =
    format === "json"
      ? JSON.stringify(data, null, streaming ? undefined : 2)
      : format === "yaml"
        ? `${streaming ? "---\n" : ""}${loadPackage<typeof Yaml>("yaml").stringify(data).trimEnd()}`
        : table();
  terminal.out.write(`${text}\n`);
}

const NO_LINES = Object.fromEntries(
  [
    "top",
    "top-mid",
    "top-left",
    "top-right",
    "bottom",
    "bottom-mid",
    "bottom-left",
    "bottom-right",
    "left",
    "left-mid",
    "mid",
    "mid-mid",
    "right",
    "right-mid",
  ].map((part) => [part, ""]),
);

export interface TableOptions {
  /** Columns that are left out on a terminal that is too narrow for all, the first of them first. */
  readonly spare?: readonly string[];
  /** The column whose text is cut before any is left out; the last one, mostly. */
  readonly cut?: string;
}

/** Less than that of a sentence says nothing. */
const CUT_MIN = 16;

export function table(
  terminal: Terminal,
  allNames: readonly string[],
  allRows: readonly (readonly string[])[],
  options: TableOptions = {},
): string {
  const { head, rows } = fitting(terminal.out, allNames, allRows, options);
  const grid = new Table({
    head: head.map((name) => styled(terminal.out, "bold", name.toUpperCase())),
    chars: { ...NO_LINES, middle: "  " },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
  grid.push(...rows.map((row) => [...row]));
  return trimmed(grid.toString());
}

function fitting(
  { isTTY, columns = 80 }: Terminal["out"],
  head: readonly string[],
  rows: readonly (readonly string[])[],
  { spare = [], cut }: TableOptions,
): { head: readonly string[]; rows: readonly (readonly string[])[] } {
  if (!isTTY) return { head, rows };
  const cutAt = cut === undefined ? -1 : head.indexOf(cut);
  const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => shownWidth(row[at]!))));
  const least = widths.map((width, at) => (at === cutAt ? Math.min(width, CUT_MIN) : width));
  const kept = new Set(head);
  const width = (): number => head.reduce((sum, name, at) => sum + (kept.has(name) ? least[at]! + 2 : 0), -2);
  for (const name of spare) {
    if (width() <= columns) break;
    kept.delete(name);
  }
  const room = cutAt < 0 ? 0 : Math.max(0, columns - width()) + least[cutAt]!;
  const pick = (cells: readonly string[]): string[] =>
    cells
      .map((cell, at) => (at === cutAt && shownWidth(cell) > room ? shorten(cell, room) : cell))
      .filter((_, at) => kept.has(head[at]!));
  return { head: pick(head), rows: rows.map(pick) };
}

/** A cell may have several lines. */
function shownWidth(cell: string): number {
  return Math.max(...stripVTControlCharacters(cell).split("\n").map(columnsOf));
}

/** Names on the left, values on the right; lines without a value are left out. */
export function facts(terminal: Terminal, pairs: readonly (readonly [string, string | null])[]): string {
  const grid = new Table({
    chars: { ...NO_LINES, middle: "  " },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
  const names = Math.max(...pairs.map(([name]) => name.length));
  const { isTTY, columns = 80 } = terminal.out;
  const fitted = (value: string): string =>
    // What is coloured is a word or two, and what has lines was laid out already.
    !isTTY || shownWidth(value) <= columns - names - 2 || value.includes("\u001b") || value.includes("\n")
      ? value
      : wrapped(value, Math.max(20, columns - names - 2)).join("\n");
  for (const [name, value] of pairs) {
    if (value !== null) grid.push([styled(terminal.out, "bold", name), fitted(value)]);
  }
  return trimmed(grid.toString());
}

/** A long sentence behind its mark: on a terminal its further lines stand below the first word. */
export function hanging({ out }: Terminal, mark: string, text: string): string {
  if (!out.isTTY) return mark + text;
  const lines = wrapped(text, Math.max(20, (out.columns ?? 80) - mark.length));
  return mark + lines.join(`\n${" ".repeat(mark.length)}`);
}

function trimmed(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

export const STATUS_STYLES: Readonly<Record<string, Style>> = {
  scheduled: "blue",
  queued: "cyan",
  processing: "yellow",
  completed: "green",
  failed: "red",
  cancelled: "gray",
  joining: "blue",
  active: "green",
  draining: "yellow",
  dead: "red",
};

export function statusText(terminal: Terminal, status: string): string {
  const style = STATUS_STYLES[status];
  return style ? styled(terminal.out, style, status) : status;
}

/** `3m ago`, `in 2h`: one unit is enough to compare rows. */
export function ago(terminal: Terminal, instant: string | null | undefined): string {
  if (!instant) return "-";
  const deltaMs = terminal.clock.now() - Date.parse(instant);
  const sizes = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "m"],
    [1_000, "s"],
  ] as const;
  const [size, unit] = sizes.find(([size]) => Math.abs(deltaMs) >= size) ?? [1_000, "s"];
  const count = Math.trunc(Math.abs(deltaMs) / size);
  return deltaMs >= 0 ? `${count}${unit} ago` : `in ${count}${unit}`;
}
