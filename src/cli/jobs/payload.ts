/** Reads a payload from the command line: from an argument, a file, or stdin. A mistake in its JSON is shown in its place. */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text as allOf } from "node:stream/consumers";
import { whyUnreadable } from "../../config/mistake.ts";
import { CliFailure, EXIT } from "../failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

export async function readPayload(
  terminal: Terminal,
  argument: string | undefined,
  file: string | undefined,
): Promise<unknown> {
  if (argument !== undefined && file !== undefined) {
    throw new CliFailure(EXIT.usage, "give the payload as an argument or with --payload-file, not both");
  }
  if (argument !== undefined) return parseTypedJson(argument, "the payload");
  if (file === undefined) return undefined;
  if (file === "-") return parseTypedJson(await allOf(terminal.input), "the payload on stdin");
  return parseTypedJson(await readText(resolve(terminal.cwd, file), file), `the payload in ${file}`);
}

async function readText(path: string, shown: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new CliFailure(EXIT.usage, `--payload-file ${shown} cannot be read: ${whyUnreadable(error)}`);
  }
}

export function parseTypedJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const at = mistakePosition(text);
    const before = text.slice(0, at);
    const line = before.split("\n").length;
    const column = at - (before.lastIndexOf("\n") + 1) + 1;
    const found =
      at >= text.length
        ? "it ends too early"
        : `unexpected ${JSON.stringify(String.fromCodePoint(text.codePointAt(at)!))}`;
    const message = `${what} is not valid JSON at line ${line}, column ${column}: ${found}\n${excerpt(text, at)}`;
    const hint = text.trim() === "" ? null : 'in a shell, put it in single quotes: \'{"name": "value"}\'';
    throw new CliFailure(EXIT.usage, message, hint);
  }
}

/** The length of the longest beginning that could still become JSON, found by halving, because V8 does not always tell. */
export function mistakePosition(text: string): number {
  let good = 0;
  let bad = text.length + 1;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (mayGoOn(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

function mayGoOn(beginning: string): boolean {
  try {
    JSON.parse(beginning);
    return true;
  } catch (error) {
    const message = (error as Error).message;
    const position = /at position (\d+)/.exec(message)?.[1];
    return position === undefined
      ? message.startsWith("Unexpected end")
      : Number(position) === beginning.length;
  }
}

function excerpt(text: string, at: number): string {
  const start = text.lastIndexOf("\n", at - 1) + 1;
  const end = text.indexOf("\n", at);
  const from = Math.max(start, at - 40);
  const shown = text.slice(from, Math.min(end === -1 ? text.length : end, at + 30));
  return `  ${shown.replaceAll("\t", " ")}\n  ${" ".repeat(at - from)}^`;
}
