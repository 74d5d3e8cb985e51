/** Runs the command line inside the test, with everything that it writes caught. */

import { Readable, Writable } from "node:stream";
import { main } from "../../../src/cli/main.ts";
import type { Terminal } from "../../../src/cli/terminal/terminal.ts";
import { type Clock, systemClock } from "../../../src/platform/clock.ts";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd?: string;
  readonly clock?: Clock;
  /** Makes stderr look like a terminal of this width. */
  readonly columns?: number;
}

let sleptMs = 0;

/** 2026-01-01, an hour after the canned jobs were created. A sleep takes no time, and the clock has moved on after it. */
export const testClock: Clock = {
  ...systemClock,
  now: () => Date.UTC(2026, 0, 1, 1),
  monotonic: () => systemClock.monotonic() + sleptMs,
  sleep: (ms) => {
    sleptMs += ms;
    return new Promise<void>((resolve) => setImmediate(resolve));
  },
};

/** `args`: also a line without quotes, whose words they are. */
export async function runCli(args: readonly string[] | string, options: RunOptions = {}): Promise<Ran> {
  const out = caught();
  const err = caught(options.columns);
  const terminal: Terminal = {
    out: out.stream,
    err: err.stream,
    input: Readable.from([Buffer.from(options.input ?? "")]),
    environment: options.environment ?? {},
    cwd: options.cwd ?? "/",
    clock: options.clock ?? testClock,
  };
  const code = await main(typeof args === "string" ? args.split(" ") : args, terminal);
  return { code, out: out.text(), err: err.text() };
}

export function caught(columns?: number): { stream: Writable; text: () => string } {
  const parts: string[] = [];
  const stream = new Writable({
    write(part: Buffer, _encoding, done) {
      parts.push(part.toString());
      done();
    },
  });
  if (columns !== undefined) Object.assign(stream, { isTTY: true, columns });
  return { stream, text: () => parts.join("") };
}
