/** Makes foreign text safe for the terminal and measures it. Text of a task may move the cursor, rename the window or hide text. */

import type stringWidth from "fast-string-width";
import type { wrapAnsi } from "fast-wrap-ansi";
import { loadPackage } from "../../platform/load-package.ts";

/** CSI with its parameters, OSC up to its end, and other escapes of two characters. */
// oxlint-disable-next-line no-control-regex
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
/** Of both ranges, and those that turn the direction of writing around. */
const CONTROLS = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
// oxlint-disable-next-line no-control-regex
const COLOURS = /^\u001b\[[\d;]*m$/;

/** One line without anything that a terminal would obey. */
export function plain(text: string): string {
  return text.replaceAll(SEQUENCES, "").replaceAll(CONTROLS, " ");
}

/** The same, for lines of a log: their colours and tabs stay, and so do their line ends. */
export function harmless(text: string): string {
  const kept: string[] = [];
  const marked = text.replaceAll(SEQUENCES, (sequence) =>
    COLOURS.test(sequence) ? (kept.push(sequence), "\ue000") : "",
  );
  if (kept.length === 0) return marked.replaceAll(CONTROLS, keepLayout);
  return `${marked.replaceAll(CONTROLS, keepLayout).replaceAll("\ue000", () => kept.shift() ?? "")}\u001b[0m`;
}

function keepLayout(control: string): string {
  return control === "\n" || control === "\t" ? control : " ";
}

/** ASCII, Latin letters and the signs that we draw with. For anything else a library is loaded, which takes its time. */
const NARROW = /^[ -~¡-¬®-ɏ–…←-↓▁-█░✓]*$/;

export function columnsOf(text: string): number {
  if (NARROW.test(text)) return text.length;
  return loadPackage<{ default: typeof stringWidth }>("fast-string-width").default(text);
}

function wrap(text: string, width: number, options: Parameters<typeof wrapAnsi>[2]): string[] {
  return loadPackage<{ wrapAnsi: typeof wrapAnsi }>("fast-wrap-ansi")
    .wrapAnsi(text, width, options)
    .split("\n");
}

/** Exactly so many columns: filled up, or cut with an ellipsis. */
export function fit(text: string, width: number, align: "left" | "right" = "left"): string {
  const cut = shorten(text, width);
  const space = " ".repeat(Math.max(0, width - columnsOf(cut)));
  return align === "left" ? cut + space : space + cut;
}

export function shorten(text: string, width: number): string {
  if (columnsOf(text) <= width) return text;
  if (width <= 1) return width <= 0 ? "" : "…";
  // A character and its colours are rarely longer than 32; the whole of a long text need not be wrapped.
  const [first = ""] = wrap(text.slice(0, 32 * width), width - 1, {
    hard: true,
    wordWrap: false,
    trim: false,
  });
  return `${columnsOf(first) < width ? first : ""}…`;
}

export function wrapped(text: string, width: number): string[] {
  const line = text.trim().replaceAll(/\s+/g, " ");
  if (columnsOf(line) <= width) return line === "" ? [] : [line];
  return wrap(line, Math.max(2, width), { hard: true });
}
