/** Exclusive use of the terminal: the alternate screen, no cursor, raw keys. However the program ends, the terminal is restored. */

import type { ReadStream } from "node:tty";
import type { Output } from "../terminal/terminal.ts";

export interface TtySessionOptions {
  readonly input: ReadStream;
  readonly output: Output;
  readonly onKey: (key: Key) => void;
  readonly onDirty: () => void;
}

const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** The other screen, cleared; no cursor; no wrapping at the edge. */
const ENTER = "\u001b[?1049h\u001b[2J\u001b[?25l\u001b[?7l";
const LEAVE = "\u001b[?7h\u001b[?25h\u001b[0m\u001b[?1049l";

export class TtySession {
  readonly #o: TtySessionOptions;
  readonly #listeners: readonly (readonly [string, () => void])[];
  #open = false;

  constructor(options: TtySessionOptions) {
    this.#o = options;
    const restore = (): void => this.#leave();
    this.#listeners = [
      ...ENDING.map((signal) => [signal, () => this.#endedBy(signal)] as const),
      ["SIGTSTP", () => this.#suspended()],
      ["SIGCONT", () => this.#enter()],
      ["exit", restore],
      // Before the error is printed: on the other screen it would be gone with it.
      ["uncaughtExceptionMonitor", restore],
    ];
  }

  start(): void {
    const { input, output } = this.#o;
    for (const [event, listener] of this.#listeners) process.on(event, listener);
    output.on("resize", this.#o.onDirty);
    input.setEncoding("utf8");
    input.on("data", this.#read);
    this.#enter();
  }

  stop(): void {
    const { input, output } = this.#o;
    for (const [event, listener] of this.#listeners) process.removeListener(event, listener);
    output.removeListener("resize", this.#o.onDirty);
    input.removeListener("data", this.#read);
    this.#leave();
  }

  /** As Ctrl-Z does for other programs: the shell is back, and `fg` goes on. */
  suspend(): void {
    // The whole group, as the terminal would: a launcher above must stop too, or the shell waits for it.
    process.kill(0, "SIGTSTP");
  }

  readonly #read = (text: string): void => {
    for (const key of keysIn(text)) this.#o.onKey(key);
  };

  #enter(): void {
    if (this.#open) return;
    this.#open = true;
    this.#o.input.setRawMode(true);
    this.#o.input.resume();
    this.#o.output.write(ENTER);
    this.#o.onDirty();
  }

  #leave(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#o.output.write(LEAVE);
    try {
      this.#o.input.setRawMode(false);
    } catch {
      // The terminal is gone, which is why we end.
    }
    this.#o.input.pause();
  }

  /** By the same signal, so that a shell sees 130 or 143. */
  #endedBy(signal: string): void {
    this.stop();
    process.kill(process.pid, signal);
  }

  #suspended(): void {
    this.#leave();
    process.kill(process.pid, "SIGSTOP");
  }
}

/** Computes the output that updates the screen: only changed lines, in one write, so that nothing flickers. */
export class Frame {
  #shown: readonly string[] = [];
  #width = 0;

  /** The next frame is drawn in full: after a change of size, or when another program wrote to the screen. */
  forget(): void {
    this.#shown = [];
    this.#width = -1;
  }

  next(lines: readonly string[], width: number): string {
    const anew = width !== this.#width || lines.length !== this.#shown.length;
    let out = "";
    lines.forEach((line, at) => {
      if (anew || line !== this.#shown[at]) out += `\u001b[${at + 1};1H${line}`;
    });
    if (anew && lines.length > 0) out += "\u001b[J";
    this.#shown = lines;
    this.#width = width;
    // Terminals that know it show all of it at once; others pass it over.
    return out === "" ? "" : `\u001b[?2026h${out}\u001b[?2026l`;
  }
}

type MoveKey = "up" | "down" | "left" | "right" | "page-up" | "page-down" | "home" | "end";
type NamedKey = MoveKey | "tab" | "back-tab" | "enter" | "escape" | "interrupt" | "suspend" | "redraw";
/** By its name, or a letter or a sign as it was typed. */
export type Key = NamedKey | { readonly char: string };

const SEQUENCES: Readonly<Record<string, NamedKey>> = {
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

const CONTROLS: Readonly<Record<string, NamedKey>> = {
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
