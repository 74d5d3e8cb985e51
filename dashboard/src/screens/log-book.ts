/** The lines of a log in the page (a node keeps ten thousand of a job), and those of them that a search lets through. */

import type { LogLineBody } from "../../../src/api/bodies/job-body.ts";

export interface LogFilter {
  readonly text: string;
  /** Null: of all runs. */
  readonly level: LogLineBody["level"] | null;
}

export class LogBook {
  #lines: LogLineBody[] = [];
  #shown: LogLineBody[] = [];
  #filter: LogFilter = { text: "", level: null };
  #needle = "";

  get size(): number {
    return this.#lines.length;
  }

  /** Behind which line to go on. */
  get last(): number {
    return this.#lines.at(-1)?.seq ?? 0;
  }

  get shown(): readonly LogLineBody[] {
    return this.#shown;
  }

  add(lines: readonly LogLineBody[]): void {
    const after = this.last;
    for (const line of lines) {
      if (line.seq <= after) continue; // told twice, by a stream that was opened again
      this.#lines.push(line);
      if (this.#passes(line)) this.#shown.push(line);
    }
  }

  filter(filter: LogFilter): void {
    if (filter.text === this.#filter.text && filter.level === this.#filter.level) return;
    this.#filter = filter;
    this.#needle = filter.text.toLowerCase();
    this.#shown = this.#lines.filter((line) => this.#passes(line));
  }

  #passes({ message, level }: LogLineBody): boolean {
    if (this.#filter.level !== null && level !== this.#filter.level) return false;
    return this.#needle === "" || message.toLowerCase().includes(this.#needle);
  }
}

/** One row each: colours of terminals go, and line breaks become a sign. */
export function oneLine(message: string): string {
  // oxlint-disable-next-line no-control-regex -- terminals' own signs are what it is about
  return message.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]/g, "").replaceAll(/\r?\n/g, " ⏎ ");
}

/** The text cut where the needle is: every second piece is a find. */
export function pieces(text: string, needle: string): string[] {
  if (needle === "") return [text];
  const found: string[] = [];
  const low = text.toLowerCase();
  const small = needle.toLowerCase();
  let from = 0;
  for (let at = low.indexOf(small); at >= 0; at = low.indexOf(small, from)) {
    found.push(text.slice(from, at), text.slice(at, at + small.length));
    from = at + small.length;
  }
  return [...found, text.slice(from)];
}
