/** The interface of commands to their process: data goes to `out`, everything else to `err`. */

import type { Readable, Writable } from "node:stream";
import { styleText } from "node:util";
import type { Environment } from "../../config/sources/environment.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";

export type Output = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export type Input = Readable & { readonly isTTY?: boolean };

export interface Terminal {
  readonly out: Output;
  readonly err: Output;
  readonly input: Input;
  readonly environment: Environment;
  readonly cwd: string;
  readonly clock: Clock;
}

export function systemTerminal(): Terminal {
  return {
    out: process.stdout,
    err: process.stderr,
    input: process.stdin,
    environment: process.env,
    cwd: process.cwd(),
    clock: systemClock,
  };
}

export function isAttended({ input, err }: Pick<Terminal, "input" | "err">): boolean {
  return input.isTTY === true && err.isTTY === true;
}

export type Style = Parameters<typeof styleText>[0];

/** Styled only if the stream is a terminal and neither NO_COLOR nor its kin object. */
export function styled(stream: Output, style: Style, text: string): string {
  return styleText(style, text, { stream });
}

export function say(terminal: Pick<Terminal, "err">, text: string): void {
  terminal.err.write(`${text}\n`);
}
