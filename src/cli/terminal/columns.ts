/**
 * Columns of rows, for the lists that a command prints once and for the live screen of `baton top`. A line consists of
 * pieces of text with a style each, so that its width is known before colours are added. It writes nothing.
 */

import { columnsOf, fit, plain, shorten } from "./plain-text.ts";
import type { Style } from "./terminal.ts";

export interface Piece {
  readonly text: string;
  readonly style: Style | null;
}
export type Line = readonly Piece[];
export type Painter = (style: Style, text: string) => string;

export function piece(text: string, style: Style | null = null): Piece {
  return { text, style };
}

/** The text without colours. */
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

export interface ColumnsRoom {
  /** Null where there is no limit. */
  readonly width: number | null;
  readonly live: boolean;
  readonly head: Style;
}

const GAP = 2;
/** A sentence of fewer columns says nothing. */
const FLEXIBLE_MIN = 16;

/** The lines of the columns that have room: the titles first. */
export function columnLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, live, head }: ColumnsRoom,
): readonly [Line, ...Line[]] {
  let kept = columns.map(([title, cell, options = {}]) => {
    const cells = rows.map((row) => pieceOf(cell(row)));
    const content = Math.max(columnsOf(title), ...cells.map(({ text }) => columnsOf(text)));
    const least = live ? (options.width ?? title.length) : content;
    const flexible = options.flexible === true && width !== null;
    return {
      ...options,
      title,
      cells,
      content,
      width: flexible && !live ? Math.min(least, FLEXIBLE_MIN) : least,
    };
  });
  const room = (): number => (width ?? Infinity) - kept.reduce((sum, each) => sum + each.width + GAP, -GAP);
  while (room() < 0) {
    const worst = Math.max(...kept.map(({ spare = 0 }) => spare));
    if (worst === 0) break;
    kept = kept.filter(({ spare = 0 }) => spare !== worst);
  }
  const flexible = kept.find((each) => each.flexible && width !== null);
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

/**
 * What is written to the terminal: never wider than `width`, and the rest of the line cleared, or filled if `fill` is a
 * style for all of it. A full line is not cleared behind its end: the cursor still stands on its last character then.
 */
export function painted(line: Line, width: number, paint: Painter, fill: Style | null = null): string {
  let left = width;
  let out = "";
  for (const { text, style } of line) {
    if (left <= 0) break;
    const shown = shorten(plain(text), left);
    left -= columnsOf(shown);
    const own = style === null ? shown : paint(style, shown);
    out += fill === null ? own : paint(fill, shown);
  }
  if (left <= 0) return out;
  return out + (fill === null ? "\u001b[K" : paint(fill, " ".repeat(left)));
}

/** Pieces on the left and one on the right edge, which gives way when there is no room for both. */
export function edges(left: Line, right: Line, width: number): Line {
  const space = width - columnsOf(textOf(left)) - columnsOf(textOf(right));
  return space < 1 ? left : [...left, piece(" ".repeat(space)), ...right];
}
