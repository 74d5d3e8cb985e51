/** `--watch`: repeats a command's output, redrawn in place on a terminal, one after the other elsewhere. */

import { Writable } from "node:stream";
import type { Command } from "commander";
import { BatonClientError } from "../../client/client-error.ts";
import { formatDuration } from "../../config/values/units.ts";
import { asFailure, EXIT } from "../failure.ts";
import { duration, type NodeOptions } from "../node-options.ts";
import { columnsOf, shorten } from "./plain-text.ts";
import { type Output, say, styled, type Terminal } from "./terminal.ts";

const EVERY_MS = 2_000;
/** Faster, and the looking itself is what keeps a node busy. */
const EVERY_MS_MIN = 200;

export interface WatchOptions extends NodeOptions {
  readonly watch?: true | number;
}

export function withWatch(command: Command): Command {
  return command.option(
    "-w, --watch [interval]",
    `look again every 2s, or as often as told, until Ctrl-C`,
    duration,
  );
}

export async function watched(
  terminal: Terminal,
  { watch, output }: WatchOptions,
  look: (terminal: Terminal) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  if (watch === undefined) return look(terminal);
  const everyMs = Math.max(EVERY_MS_MIN, watch === true ? EVERY_MS : watch);
  const inPlace = output === "table" && terminal.out.isTTY === true;
  while (!signal?.aborted) {
    const page = new Page(terminal.out);
    const trouble = await look({ ...terminal, out: page, streaming: true }).then(
      () => null,
      (error: unknown) => (mayPass(error) ? asFailure(error).message : Promise.reject(error)),
    );
    if (inPlace) drawn(terminal, page.text, trouble, everyMs);
    else {
      terminal.out.write(page.text);
      if (trouble !== null) say(terminal, `${trouble}; trying again`);
    }
    await terminal.clock.sleep(everyMs, signal);
  }
}

/** A watch outlives the node that it asks: that is when people look. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof BatonClientError)) return false;
  const { exitCode } = asFailure(error);
  return (
    exitCode === EXIT.unreachable ||
    exitCode === EXIT.timeout ||
    (error.status !== null && error.status >= 500)
  );
}

/** From the top of the screen, each line over the one that was there: nothing is cleared first, so nothing flickers. */
function drawn(terminal: Terminal, text: string, trouble: string | null, everyMs: number): void {
  const { out, clock } = terminal;
  const [columns, rows] = [out.columns ?? 80, out.rows ?? 24];
  const time = new Date(clock.now()).toTimeString().slice(0, 8);
  const title = `every ${formatDuration(everyMs)}, Ctrl-C ends`;
  const head = styled(out, "dim", `${time}  ${shorten(title, columns - 10)}`);
  const body =
    trouble === null ? text.trimEnd().split("\n") : [styled(out, "red", shorten(trouble, columns))];
  const room = Math.max(1, rows - 2);
  const shown =
    body.length > room ? [...body.slice(0, room - 1), `… ${body.length - room + 1} more lines`] : body;
  const lines = [head, ...shown].map((line) => `${cut(line, columns)}\u001b[K`);
  out.write(`\u001b[H${lines.join("\r\n")}\u001b[J\r\n`);
}

/** A styled line that would wrap loses its style with its end: the rest of the screen must not move. */
function cut(line: string, columns: number): string {
  // oxlint-disable-next-line no-control-regex
  const bare = line.replaceAll(/\u001b\[[\d;]*m/g, "");
  return columnsOf(bare) <= columns ? line : shorten(bare, columns);
}

/** What one look prints, with the manners of the stream that it is meant for. */
class Page extends Writable {
  text = "";
  readonly isTTY: boolean | undefined;
  readonly columns: number | undefined;
  readonly rows: number | undefined;
  readonly #target: Output;

  constructor(target: Output) {
    super({ decodeStrings: false });
    this.#target = target;
    this.isTTY = target.isTTY;
    this.columns = target.columns;
    this.rows = target.rows;
  }

  /** Asked by whoever wants to know whether colours are wanted. */
  getColorDepth(): number {
    const target = this.#target as { getColorDepth?: () => number };
    return target.getColorDepth?.() ?? (this.isTTY ? 4 : 1);
  }

  override _write(part: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += part.toString();
    done();
  }
}
