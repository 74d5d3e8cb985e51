/**
 * Makes foreign text safe for the terminal. The errors and logs of a task may contain anything, also sequences that
 * move the cursor, rename the window or hide text; and on a screen of fixed width every character must be counted.
 */

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

const NARROW = /^[\u0020-\u007e]*$/;
const NO_WIDTH = /[\p{Mn}\p{Me}\p{Cf}]/u;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

function widthOf(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** How many columns it takes. Of plain text: a sequence would be counted like letters. */
export function columnsOf(text: string): number {
  if (NARROW.test(text)) return text.length;
  let columns = 0;
  for (const character of text) columns += widthOf(character);
  return columns;
}

/** Exactly so many columns: filled up, or cut with an ellipsis. */
export function fit(text: string, width: number, align: "left" | "right" = "left"): string {
  const cut = shorten(text, width);
  const space = " ".repeat(Math.max(0, width - columnsOf(cut)));
  return align === "left" ? cut + space : space + cut;
}

/** At most so many columns. */
export function shorten(text: string, width: number): string {
  if (columnsOf(text) <= width) return text;
  return width <= 0 ? "" : `${beginning(text, width - 1)}…`;
}

function beginning(text: string, width: number): string {
  let [kept, columns] = ["", 0];
  for (const character of text) {
    columns += widthOf(character);
    if (columns > width) break;
    kept += character;
  }
  return kept;
}

/** Lines of at most so many columns, broken at spaces where there are any. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).filter((each) => each !== "")) {
    if (line !== "" && columnsOf(line) + 1 + columnsOf(word) > width) {
      lines.push(line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
    while (columnsOf(line) > width) {
      const head = beginning(line, Math.max(2, width));
      lines.push(head);
      line = line.slice(head.length);
    }
  }
  if (line !== "") lines.push(line);
  return lines;
}
