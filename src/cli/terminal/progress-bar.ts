/** The progress of long work: one line that is redrawn on a terminal, separate lines at intervals elsewhere. */

import { count, perSecond, span } from "../../core/format-figures.ts";
import { plain, shorten } from "./plain-text.ts";
import { say, type Terminal } from "./terminal.ts";

export interface Progress {
  readonly label: string;
  readonly done: number;
  readonly total: number | null;
  readonly elapsedMs: number;
  readonly note?: string;
}

const BAR_MAX = 30;
/** Fewer cells show less than the figure next to them. */
const BAR_MIN = 8;
const BACK_AND_CLEAR = "\r\u001b[2K";
/** More often, and a terminal over a slow line falls behind; less, and it looks stuck. */
const REDRAW_MS = 100;
/** A log that has a line each second is full of nothing else. */
const LINE_MS = 5_000;
/** Sooner, and a line would flash up with each answer. */
const QUIET_MS = 1_000;

export function progressLine({ label, done, total, elapsedMs, note }: Progress, width: number): string {
  const share = total === null || total === 0 ? null : Math.min(1, done / total);
  const speed = elapsedMs >= 500 && done > 0 ? (done * 1_000) / elapsedMs : null;
  const left =
    speed !== null && total !== null && done < total
      ? `, ${span(((total - done) * 1_000) / speed)} left`
      : "";
  const figures = [
    share === null ? "" : `${Math.floor(share * 100)}%`.padStart(4),
    total === null ? count(done) : `${count(done)} of ${count(total)}`,
    speed === null ? "" : `${perSecond(speed)}${left}`,
    note === undefined ? "" : plain(note),
  ].filter((part) => part !== "");
  const text = figures.join("  ");
  const room = Math.min(BAR_MAX, width - label.length - text.length - 5);
  if (share === null || room < BAR_MIN) return shorten(`${label}  ${text.trimStart()}`, width);
  const full = Math.floor(share * room);
  return `${label}  [${"=".repeat(full)}${full < room ? ">" : ""}${" ".repeat(Math.max(0, room - full - 1))}] ${text}`;
}

/** One line that changes on a terminal: a text, or a bar. Elsewhere a line for each text, and for a bar one every five seconds. */
export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #label: string;
  readonly #startedAt: number;
  #shown = "";
  #drawnAt: number;

  constructor(terminal: Terminal, label = "") {
    this.#terminal = terminal;
    this.#label = label;
    this.#startedAt = terminal.clock.monotonic();
    // What takes no time needs no line of its own in a log.
    this.#drawnAt = terminal.err.isTTY ? -Infinity : this.#startedAt;
  }

  show(done: number, total: number | null, note?: string): void {
    const { err, clock } = this.#terminal;
    const now = clock.monotonic();
    if (now - this.#drawnAt < (err.isTTY ? REDRAW_MS : LINE_MS)) return;
    this.#drawnAt = now;
    const progress = { label: this.#label, done, total, elapsedMs: now - this.#startedAt, note };
    this.say(progressLine(progress, err.isTTY ? (err.columns ?? 80) - 1 : 100));
  }

  say(text: string): void {
    if (text === this.#shown) return;
    this.#shown = text;
    const { err } = this.#terminal;
    if (!err.isTTY) return say(this.#terminal, text);
    // A line that wraps could not be taken back.
    err.write(BACK_AND_CLEAR + shorten(text, (err.columns ?? 80) - 1));
  }

  clear(): void {
    if (this.#terminal.err.isTTY && this.#shown !== "") this.#terminal.err.write(BACK_AND_CLEAR);
    this.#shown = "";
  }
}

/** On a terminal, a line with what is waited for and since when, while that takes longer than a second. Elsewhere nothing. */
export class WaitingLine {
  readonly #terminal: Terminal;
  readonly #what: () => string;
  readonly #line: ProgressBar;
  #pending = 0;
  #startedAt = 0;
  #cancelTick = (): void => {};

  constructor(terminal: Terminal, what: () => string) {
    this.#terminal = terminal;
    this.#what = what;
    this.#line = new ProgressBar(terminal);
  }

  async during<Answer>(work: Promise<Answer>): Promise<Answer> {
    if (!this.#terminal.err.isTTY) return work;
    if (this.#pending++ === 0) {
      this.#startedAt = this.#terminal.clock.monotonic();
      this.#tickLater();
    }
    try {
      return await work;
    } finally {
      if (--this.#pending === 0) {
        this.#cancelTick();
        this.#line.clear();
      }
    }
  }

  #tickLater(): void {
    const { clock } = this.#terminal;
    this.#cancelTick = clock.after(QUIET_MS, () => {
      this.#line.say(`${this.#what()}  ${span(clock.monotonic() - this.#startedAt)}`);
      this.#tickLater();
    });
  }
}
