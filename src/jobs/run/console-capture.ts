/**
 * What handlers write to the console goes to the log of their job as well. Node tells of each call (`console.log` and so on are
 * diagnostics channels), so the console is not replaced, and what is written outside of runs costs the check that it is outside.
 *
 * A run costs about 0.1 µs for it. One entry for all jobs of a worker's place, instead of each, would cost nothing, but a promise that
 * an earlier job did not await would write into the log of the next.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { format } from "node:util";
import type { LogLevel } from "../../store/store.ts";

/** Whose log it is; `over` once nothing more belongs to it. */
export interface RunLines {
  readonly over: boolean;
  addLine(level: LogLevel, message: string): void;
}

/** The others, as `console.table`, write through these. */
const LEVELS: Readonly<Record<string, LogLevel>> = {
  log: "info",
  info: "info",
  debug: "debug",
  warn: "warn",
  error: "error",
};

export class ConsoleCapture {
  readonly #runs = new AsyncLocalStorage<RunLines>();
  readonly #listeners = Object.entries(LEVELS).map(([method, level]) => ({
    channel: `console.${method}`,
    hear: (values: unknown) => this.#hear(level, values as readonly unknown[]),
  }));
  #open = false;

  open(): void {
    if (this.#open) return;
    this.#open = true;
    for (const { channel, hear } of this.#listeners) subscribe(channel, hear);
  }

  close(): void {
    this.#open = false;
    for (const { channel, hear } of this.#listeners) unsubscribe(channel, hear);
  }

  /** What `work` writes until the run is over, also after it has waited for something. */
  during<Args extends readonly unknown[], Result>(
    run: RunLines,
    work: (...args: Args) => Result,
    ...args: Args
  ): Result {
    return this.#runs.run(run, work, ...args);
  }

  #hear(level: LogLevel, values: readonly unknown[]): void {
    const run = this.#runs.getStore();
    if (!run || run.over) return;
    try {
      run.addLine(level, format(...values));
    } catch {
      // A value that cannot be shown: the console has told the caller already, or will.
    }
  }
}
