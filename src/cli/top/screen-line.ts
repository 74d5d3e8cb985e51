/** A line of the screen: pieces of text with a style each, so that its width is known before colours are added. */

import { columnsOf, fit, plain, shorten } from "../terminal/plain-text.ts";
import type { Style } from "../terminal/terminal.ts";

export interface Piece {
  readonly text: string;
  readonly style: Style | null;
}
export type Line = readonly Piece[];
export type Painter = (style: Style, text: string) => string;

export function piece(text: string, style: Style | null = null): Piece {
  return { text, style };
}

/** As it is read, without colours. */
export function textOf(line: Line): string {
  return line.map(({ text }) => text).join("");
}

/**
 * What is written to the terminal: never wider than told, and the rest of the line cleared, or filled if `fill` is a style for
 * all of it. A full line is not cleared behind its end: the cursor still stands on its last character then.
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

export interface Column<Row> {
  readonly title: string;
  readonly width: number;
  readonly align?: "left" | "right";
  /** Takes what is left of the line; one column does. */
  readonly grows?: true;
  /** Left out where there is no room: the highest goes first, 0 never. */
  readonly spare?: number;
  readonly cell: (row: Row) => string | Piece;
}

const GAP = 2;

/** The columns that have room, with their widths. */
export function columnsFor<Row>(columns: readonly Column<Row>[], width: number): readonly Column<Row>[] {
  let kept = [...columns];
  const needed = (): number => kept.reduce((sum, column) => sum + column.width + GAP, -GAP);
  while (needed() > width) {
    const worst = Math.max(...kept.map(({ spare = 0 }) => spare));
    if (worst === 0) break;
    kept = kept.filter(({ spare = 0 }) => spare !== worst);
  }
  const room = width - needed();
  return kept.map((column) =>
    column.grows && room > 0 ? { ...column, width: column.width + room } : column,
  );
}

export function headLine<Row>(columns: readonly Column<Row>[], style: Style): Line {
  return joined(columns.map((column) => piece(fit(column.title, column.width, column.align), style)));
}

export function rowLine<Row>(columns: readonly Column<Row>[], row: Row): Line {
  return joined(
    columns.map((column) => {
      const cell = column.cell(row);
      const { text, style } = typeof cell === "string" ? piece(cell) : cell;
      return piece(fit(plain(text), column.width, column.align), style);
    }),
  );
}

function joined(pieces: readonly Piece[]): Line {
  return pieces.flatMap((each, at) => (at === 0 ? [each] : [piece(" ".repeat(GAP)), each]));
}
