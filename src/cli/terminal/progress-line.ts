/** The progress of a job: one line that changes on a terminal, a line for each change elsewhere. */

import type { Terminal } from "./terminal.ts";
import { say } from "./terminal.ts";

const BACK_AND_CLEAR = "\r\u001b[2K";

export class ProgressLine {
  readonly #terminal: Terminal;
  #shown = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  show(text: string): void {
    if (text === this.#shown) return;
    this.#shown = text;
    const { err } = this.#terminal;
    if (!err.isTTY) return say(this.#terminal, text);
    // A line that wraps could not be taken back.
    err.write(BACK_AND_CLEAR + text.slice(0, (err.columns ?? 80) - 1));
  }

  /** Takes the line away, so that what follows begins on a clean one. */
  clear(): void {
    if (this.#terminal.err.isTTY && this.#shown !== "") this.#terminal.err.write(BACK_AND_CLEAR);
    this.#shown = "";
  }
}

export function progressText(percent: number | null, message: string | null): string {
  return [percent === null ? "" : `${Math.round(percent * 10) / 10}%`, message ?? ""]
    .filter((part) => part !== "")
    .join(" ");
}
