/** `--watch`: repeats a command's output, redrawn in place on a terminal, one after the other elsewhere. */

import { stripVTControlCharacters } from "node:util";
import type { Command } from "commander";
import { CallError } from "../../client/client-error.ts";
import { durationText } from "../../core/duration.ts";
import { asFailure, EXIT } from "../failure.ts";
import { duration, type NodeOptions } from "../node-options.ts";
import { columnsOf, shorten } from "./plain-text.ts";
import { say, styled, type Terminal } from "./terminal.ts";

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

interface Look {
  readonly text: string;
  readonly note?: () => void;
}

export async function watched(
  terminal: Terminal,
  { watch, output }: WatchOptions,
  look: () => Promise<Look>,
  signal?: AbortSignal,
): Promise<void> {
  const { out, clock } = terminal;
  const show = ({ text, note }: Look): void => {
    out.write(text);
    note?.();
  };
  if (watch === undefined) return show(await look());
  const everyMs = Math.max(EVERY_MS_MIN, watch === true ? EVERY_MS : watch);
  const inPlace = output === "table" && out.isTTY === true;
  while (!signal?.aborted) {
    try {
      const { text, note } = await look();
      show({ text: inPlace ? page(terminal, text, everyMs) : text, note });
    } catch (error) {
      if (!mayPass(error)) throw error;
      const { message } = asFailure(error);
      const trouble = styled(out, "red", shorten(message, out.columns ?? 80));
      if (inPlace) out.write(page(terminal, trouble, everyMs));
      else say(terminal, `${message}; trying again`);
    }
    await clock.sleep(everyMs, signal);
  }
}

/** A watch outlives the node that it asks: that is when people look. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof CallError)) return false;
  const { exitCode } = asFailure(error);
  return (
    exitCode === EXIT.unreachable ||
    exitCode === EXIT.timeout ||
    (error.status !== null && error.status >= 500)
  );
}

/** From the top of the screen, each line over the one that was there: nothing is cleared first, so nothing flickers. */
function page({ out, clock }: Terminal, text: string, everyMs: number): string {
  const [columns, rows] = [out.columns ?? 80, out.rows ?? 24];
  const time = new Date(clock.now()).toTimeString().slice(0, 8);
  const title = `every ${durationText(everyMs)}, Ctrl-C ends`;
  const head = styled(out, "dim", `${time}  ${shorten(title, columns - 10)}`);
  const body = text.trimEnd().split("\n");
  const room = Math.max(1, rows - 2);
  const shown =
    body.length > room ? [...body.slice(0, room - 1), `… ${body.length - room + 1} more lines`] : body;
  const lines = [head, ...shown].map((line) => `${cut(line, columns)}\u001b[K`);
  return `\u001b[H${lines.join("\r\n")}\u001b[J\r\n`;
}

/** A styled line that would wrap loses its style with its end: the rest of the screen must not move. */
function cut(line: string, columns: number): string {
  const bare = stripVTControlCharacters(line);
  return columnsOf(bare) <= columns ? line : shorten(bare, columns);
}
