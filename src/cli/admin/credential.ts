/**
 * The credential that a command sends to a node: a token from a flag, a variable or a file. Also reads passwords, from
 * a person or a pipe.
 */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { CliFailure, EXIT } from "../failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { isAttended, say } from "../terminal/terminal.ts";

export interface TokenOption {
  readonly token?: string;
}

export const TOKEN_OPTION = [
  "--token <token>",
  "token to show to the node (BATON_TOKEN, or BATON_TOKEN_FILE with the path of a file)",
] as const;

/** Undefined if there is none: a node that listens to its own machine only asks for none. */
export function tokenFrom(terminal: Terminal, options: TokenOption): string | undefined {
  const { environment, cwd } = terminal;
  const [who, found] =
    options.token !== undefined
      ? ["--token", options.token]
      : environment["BATON_TOKEN"]
        ? ["BATON_TOKEN", environment["BATON_TOKEN"]]
        : ["BATON_TOKEN_FILE", fromFile(environment["BATON_TOKEN_FILE"], cwd)];
  if (found === undefined) return undefined;
  if (options.token !== undefined && isAttended(terminal))
    say(terminal, "everybody on this machine can see --token while this runs; BATON_TOKEN_FILE hides it");
  const token = found.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CliFailure(EXIT.usage, `${who} is no token: it is empty, or has a space or a line break in it`);
}

function fromFile(path: string | undefined, cwd: string): string | undefined {
  if (!path) return undefined;
  try {
    return readFileSync(resolve(cwd, path), "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file" : String(code);
    throw new CliFailure(EXIT.usage, `BATON_TOKEN_FILE cannot be read (${path}): ${why}`);
  }
}

interface RawInput {
  readonly isTTY?: boolean;
  setRawMode?(raw: boolean): void;
}

/** Asked for twice at a terminal, read once from a pipe. Never an argument: everybody on the machine can read those. */
export async function readPassword(terminal: Terminal, user: string): Promise<string> {
  const input = terminal.input as Terminal["input"] & RawInput;
  if (!input.isTTY || !input.setRawMode) {
    const password = await firstLine(terminal.input);
    if (password !== "") return password;
    throw new CliFailure(EXIT.usage, "there is no password on stdin", "type it, or pipe it in");
  }
  const keys = keysOf(terminal.input);
  input.setRawMode(true);
  try {
    const password = await typed(terminal, keys, `password of ${user}: `);
    if ((await typed(terminal, keys, "the same again: ")) === password) return password;
  } finally {
    input.setRawMode(false);
    await keys.return?.(undefined);
  }
  throw new CliFailure(EXIT.usage, "the two passwords differ");
}

/** Longer than any password; a file that was piped in by mistake is not read to its end. */
const LINE_LENGTH_MAX = 10_000;

async function firstLine(input: Terminal["input"]): Promise<string> {
  let text = "";
  for await (const part of textOf(input)) {
    text += part;
    if (text.includes("\n") || text.length > LINE_LENGTH_MAX) break;
  }
  return text.split(/\r?\n/, 1)[0]!;
}

/** A letter of several bytes may come in two pieces. */
async function* textOf(input: Terminal["input"]): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  for await (const chunk of input)
    yield typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
}

/** One by one. Arrows and their like, which come as several letters behind an escape, are one that means nothing. */
// oxlint-disable-next-line no-control-regex
const KEYS = /\u001b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?|./gsu;

async function* keysOf(input: Terminal["input"]): AsyncGenerator<string, void> {
  for await (const text of textOf(input)) yield* text.match(KEYS) ?? [];
}

const END = new Set(["\r", "\n", "\u0004"]);
const BACK = new Set(["\u007f", "\b"]);
const ALL_BACK = "\u0015";
const INTERRUPT = "\u0003";

/** Nothing of it is shown. */
async function typed(terminal: Terminal, keys: AsyncIterator<string>, prompt: string): Promise<string> {
  terminal.err.write(prompt);
  const letters: string[] = [];
  for (;;) {
    const { value: key, done } = await keys.next();
    if (done || key === INTERRUPT) {
      say(terminal, "");
      throw new CliFailure(EXIT.usage, "no password was given");
    }
    if (END.has(key)) break;
    if (BACK.has(key)) letters.pop();
    else if (key === ALL_BACK) letters.length = 0;
    else if (key >= " ") letters.push(key);
  }
  say(terminal, "");
  return letters.join("");
}
