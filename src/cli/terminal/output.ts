/** Writes data to stdout: a table for people, JSON or YAML for programs. `baton top` has the columns of the lists. Widths are known before colours are added. */
import type * as Yaml from "yaml";
import { type Tone, toneOf } from "../../core/status-tones.ts";
import { loadPackage } from "../../platform/load-package.ts";
import { wrapped, columnsOf, fit, plain, shorten } from "./plain-text.ts";
import { type Output, say, type Style, styled, type Terminal } from "./terminal.ts";

export const OUTPUT_FORMATS = ["table", "json", "yaml"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** JSON and YAML show the data as it came; only people need a selection. `streaming`: documents follow each other without end. */
export function printed(format: OutputFormat, data: unknown, table: () => string, streaming = false): string {
  if (format === "table") return `${table()}\n`;
  if (format === "json") return `${JSON.stringify(data, null, streaming ? undefined : 2)}\n`;
  return (streaming ? "---\n" : "") + loadPackage<typeof Yaml>("yaml").stringify(data);
}

export function print({ out }: Terminal, ...what: Parameters<typeof printed>): void {
  out.write(printed(...what));
}

export function table<Row>(
  { out }: Pick<Terminal, "out">,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): string {
  return columnLines(columns, rows, { width: widthOf(out), live: false, head: "bold" })
    .map((line) => written(out, line).trimEnd())
    .join("\n");
}

/** Lines are as long as they are where nobody sees a screen. */
function widthOf(out: Output): number {
  return out.isTTY ? (out.columns ?? 80) : Infinity;
}

/** The space around a word is not coloured: at the end of a line it would stay. */
function written(out: Output, line: Line): string {
  const pieces = line.map(({ text, style }) => {
    const word = text.trim();
    return style === null ? text : text.replace(word, () => styled(out, style, word));
  });
  return pieces.join("");
}

export type Facts = readonly (readonly [name: string, value: Shown])[];

export function facts({ out }: Pick<Terminal, "out">, pairs: Facts): string {
  return factLines(pairs, widthOf(out))
    .map((line) => written(out, line))
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

export function section({ out }: Pick<Terminal, "out">, title: string, text: string | null): string[] {
  return text === null || text === "" ? [] : [`${styled(out, "bold", title)}\n${text}`];
}

/** A long sentence behind its mark: on a terminal its further lines stand below the first word. */
export function hanging({ out }: Terminal, mark: string, text: string): string {
  const width = widthOf(out);
  if (width === Infinity) return mark + text;
  const lines = wrapped(text, Math.max(20, width - mark.length));
  return mark + lines.join(`\n${" ".repeat(mark.length)}`);
}

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
  return written(terminal.out, [statusPiece(status)]);
}

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

export interface Piece {
  readonly text: string;
  readonly style: Style | null;
}
export type Line = readonly Piece[];

export function piece(text: string, style: Style | null = null): Piece {
  return { text, style };
}

export function textOf(line: Line): string {
  return line.map(({ text }) => text).join("");
}

/** What a cell or a fact shows: null is shown as a dash in a column, and leaves out a fact. */
export type Shown = string | number | Piece | null | undefined;

export function pieceOf(shown: Shown): Piece {
  const { text, style } = typeof shown === "object" && shown !== null ? shown : piece(String(shown ?? "-"));
  return { text: plain(text), style };
}

export type Column<Row> = readonly [title: string, cell: (row: Row) => Shown, options?: ColumnOptions];

export interface ColumnOptions {
  /** On a live screen, whose columns must not move; elsewhere a column is as wide as its content. */
  readonly width?: number;
  readonly align?: "left" | "right";
  /** Left out where there is no room: the highest goes first, 0 never. */
  readonly spare?: number;
  /** It is cut before another column is left out, and takes what is left of a live screen. At most one. */
  readonly flexible?: true;
}

const GAP = 2;
/** A sentence of fewer columns says nothing. */
const FLEXIBLE_MIN = 16;

export function columnLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, live, head }: { readonly width: number; readonly live: boolean; readonly head: Style },
): readonly [Line, ...Line[]] {
  let kept = columns.map(([title, cell, options = {}]) => {
    const cells = rows.map((row) => pieceOf(cell(row)));
    const content = Math.max(columnsOf(title), ...cells.map(({ text }) => columnsOf(text)));
    const least = live ? (options.width ?? title.length) : content;
    const shortest = options.flexible && !live ? Math.min(least, FLEXIBLE_MIN) : least;
    return { ...options, title, cells, content, width: shortest };
  });
  const room = (): number => width - kept.reduce((sum, each) => sum + each.width + GAP, -GAP);
  while (room() < 0) {
    const worst = Math.max(...kept.map(({ spare = 0 }) => spare));
    if (worst === 0) break;
    kept = kept.filter(({ spare = 0 }) => spare !== worst);
  }
  const flexible = kept.find((each) => each.flexible);
  if (flexible && room() > 0) {
    flexible.width = live ? flexible.width + room() : Math.min(flexible.content, flexible.width + room());
  }
  const line = (pieces: readonly Piece[]): Line =>
    pieces.flatMap((each, at) => (at === 0 ? [each] : [piece(" ".repeat(GAP)), each]));
  return [
    line(kept.map((each) => piece(fit(each.title.toUpperCase(), each.width, each.align), head))),
    ...rows.map((_, at) =>
      line(
        kept.map(({ cells, width: wide, align }) => {
          const { text, style } = cells[at]!;
          return piece(fit(text, wide, align), style);
        }),
      ),
    ),
  ];
}

/** Never wider than `width`, and the rest of the line cleared. A full line is not cleared: the cursor stands on its last character. */
export function painted(line: Line, width: number, paint: (style: Style, text: string) => string): string {
  let left = width;
  let out = "";
  for (const { text, style } of line) {
    if (left <= 0) break;
    const shown = shorten(plain(text), left);
    left -= columnsOf(shown);
    out += style === null ? shown : paint(style, shown);
  }
  return left <= 0 ? out : `${out}\u001b[K`;
}

export function edges(left: Line, right: Line, width: number): Line {
  const space = width - columnsOf(textOf(left)) - columnsOf(textOf(right));
  return space < 1 ? left : [...left, piece(" ".repeat(space)), ...right];
}
