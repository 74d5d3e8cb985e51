/** Decodes the keys that a terminal in raw mode sends. */

export type Key =
  | "up"
  | "down"
  | "left"
  | "right"
  | "page-up"
  | "page-down"
  | "home"
  | "end"
  | "tab"
  | "back-tab"
  | "enter"
  | "escape"
  | "interrupt"
  | "suspend"
  | "redraw"
  /** A letter or a sign, as it was typed. */
  | { readonly char: string };

const SEQUENCES: Readonly<Record<string, Key>> = {
  "[A": "up",
  "[B": "down",
  "[C": "right",
  "[D": "left",
  OA: "up",
  OB: "down",
  OC: "right",
  OD: "left",
  "[5~": "page-up",
  "[6~": "page-down",
  "[H": "home",
  "[F": "end",
  OH: "home",
  OF: "end",
  "[1~": "home",
  "[4~": "end",
  "[Z": "back-tab",
};

const CONTROLS: Readonly<Record<string, Key>> = {
  "\t": "tab",
  "\r": "enter",
  "\n": "enter",
  "\u0003": "interrupt",
  "\u0004": "interrupt",
  "\u000c": "redraw",
  "\u001a": "suspend",
};

/** Several keys may come in one piece. A sequence that is not known is no key; an escape alone is one. */
export function keysIn(text: string): Key[] {
  const keys: Key[] = [];
  // oxlint-disable-next-line no-control-regex
  for (const match of text.matchAll(/\u001b(\[[0-9;]*[A-Za-z~]|O[A-Za-z])|\u001b|[^\u001b]/gu)) {
    const [whole, sequence] = match;
    if (sequence !== undefined) {
      const key = SEQUENCES[sequence];
      if (key !== undefined) keys.push(key);
    } else if (whole === "\u001b") keys.push("escape");
    else if (CONTROLS[whole] !== undefined) keys.push(CONTROLS[whole]);
    else if (whole >= " ") keys.push({ char: whole });
  }
  return keys;
}
