/** Writes data to stdout: a table for people, JSON or YAML for programs. */

import type * as Yaml from "yaml";
import { type Tone, toneOf } from "../../core/status-tones.ts";
import { loadPackage } from "../../platform/load-package.ts";
import { type Column, columnLines, type Line, piece, type Piece, pieceOf, type Shown } from "./columns.ts";
import { wrapped } from "./plain-text.ts";
import { say, type Style, styled, type Terminal } from "./terminal.ts";

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

/** Rows under the titles of their columns. A terminal that is too narrow has fewer columns. */
export function table<Row>(
  { out }: Pick<Terminal, "out">,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): string {
  const width = out.isTTY ? (out.columns ?? 80) : null;
  return columnLines(columns, rows, { width, live: false, head: "bold" })
    .map((line) =>
      line
        .map(({ text, style }) => {
          if (style === null) return text;
          // The space around a word is not coloured: at the end of a line it would stay.
          const word = text.trim();
          return text.replace(word, () => styled(out, style, word));
        })
        .join("")
        .trimEnd(),
    )
    .join("\n");
}

/** What is known about one thing. A value of null is left out. */
export type Facts = readonly (readonly [name: string, value: Shown])[];

/** Names on the left, values on the right. */
export function facts({ out }: Pick<Terminal, "out">, pairs: Facts): string {
  const width = out.isTTY ? (out.columns ?? 80) : Infinity;
  return factLines(pairs, width)
    .map((line) => line.map(({ text, style }) => (style === null ? text : styled(out, style, text))).join(""))
    .join("\n");
}

export function factLines(pairs: Facts, width: number): readonly Line[] {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined);
  const names = Math.max(...pairs.map(([name]) => name.length)) + 2;
  return known.flatMap(([name, value]) => {
    const { text, style } = pieceOf(value);
    const lines = width === Infinity ? [text] : wrapped(text, Math.max(20, width - names));
    return lines.map((line, at): Line => [
      ...(at === 0 ? [piece(name, "bold")] : []),
      piece(" ".repeat(at === 0 ? names - name.length : names)),
      piece(line, style),
    ]);
  });
}

export function bold({ out }: Pick<Terminal, "out">, text: string): string {
  return styled(out, "bold", text);
}

/** A title with a text below it; nothing where there is no text. */
export function section(terminal: Pick<Terminal, "out">, title: string, text: string | null): string[] {
  return text === null || text === "" ? [] : [`${bold(terminal, title)}\n${text}`];
}

/** A long sentence behind its mark: on a terminal its further lines stand below the first word. */
export function hanging({ out }: Terminal, mark: string, text: string): string {
  if (!out.isTTY) return mark + text;
  const lines = wrapped(text, Math.max(20, (out.columns ?? 80) - mark.length));
  return mark + lines.join(`\n${" ".repeat(mark.length)}`);
}

/** A title with sentences below it, each behind a dash. */
export function listSection(terminal: Terminal, title: string, lines: readonly string[]): string[] {
  return section(terminal, title, lines.map((line) => hanging(terminal, "  - ", line)).join("\n"));
}

const TONE_STYLES: Readonly<Record<Tone, Style | null>> = {
  good: "green",
  busy: "cyan",
  wait: "yellow",
  bad: "red",
  off: "gray",
  plain: null,
};

export function toneStyle(tone: Tone | null): Style | null {
  return tone && TONE_STYLES[tone];
}

export function statusPiece(status: string, note = ""): Piece {
  return piece(status + note, toneStyle(toneOf(status)));
}

export function statusText(terminal: Terminal, status: string): string {
  const style = toneStyle(toneOf(status));
  return style ? styled(terminal.out, style, status) : status;
}

/** Says whose part is missing, where every node keeps its own jobs and some were not reached. */
export function sayPartial(
  terminal: Pick<Terminal, "err">,
  nodes: readonly { readonly name: string; readonly reachable: boolean }[] | undefined,
): void {
  sayUnreachable(
    terminal,
    (nodes ?? []).flatMap(({ name, reachable }) => (reachable ? [] : [name])),
  );
}

export function sayUnreachable(terminal: Pick<Terminal, "err">, names: readonly string[]): void {
  if (names.length === 0) return;
  const which = names.join(", ");
  const text = `${styled(terminal.err, "yellow", "partial:")} ${which} could not be reached, so what ${which} has is missing here`;
  say(terminal, text);
}
