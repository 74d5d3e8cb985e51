/** The token that a command shows to a node, from a flag, a variable or a file; and passwords, from a person or a pipe. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { whyUnreadable } from "../../config/mistake.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { isAttended, say, type Terminal } from "../terminal/terminal.ts";

export const TOKEN_OPTION = [
  "--token <token>",
  "token to show to the node (BATON_TOKEN, or BATON_TOKEN_FILE with the path of a file)",
] as const;

/** Undefined if there is none: a node that listens to its own machine only asks for none. */
export function tokenFrom(terminal: Terminal, options: { readonly token?: string }): string | undefined {
  const { environment, cwd } = terminal;
  const [who, found] =
    options.token !== undefined
      ? ["--token", options.token]
      : environment["BATON_TOKEN"]
        ? ["BATON_TOKEN", environment["BATON_TOKEN"]]
        : ["BATON_TOKEN_FILE", fromFile(environment["BATON_TOKEN_FILE"], cwd)];
  if (found === undefined) return undefined;
  if (options.token !== undefined && isAttended(terminal))
    say(terminal, "every user of this machine can see --token while this runs; BATON_TOKEN_FILE hides it");
  const token = found.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CliFailure(EXIT.usage, `${who} is no token: it is empty, or has a space or a line break in it`);
}

function fromFile(path: string | undefined, cwd: string): string | undefined {
  if (!path) return undefined;
  try {
    return readFileSync(resolve(cwd, path), "utf8");
  } catch (error) {
    throw new CliFailure(EXIT.usage, `BATON_TOKEN_FILE cannot be read (${path}): ${whyUnreadable(error)}`);
  }
}

/** Asked for twice at a terminal, read once from a pipe. Never an argument: every user of the machine can read those. */
export async function readPassword(terminal: Terminal, user: string): Promise<string> {
  if (!isAttended(terminal)) {
    const password = await firstLine(terminal.input);
    if (password !== "") return password;
    throw new CliFailure(EXIT.usage, "there is no password on stdin", "type it, or pipe it in");
  }
  const password = await typed(terminal, `password of ${user}:`);
  if ((await typed(terminal, "the same again:")) === password) return password;
  throw new CliFailure(EXIT.usage, "the two passwords differ");
}

/** Shows no sign for a character: how long a password is stays hidden too. */
async function typed(terminal: Terminal, message: string): Promise<string> {
  const { password } = await import("@clack/prompts");
  const text = await password({ message, mask: "", input: terminal.input, output: terminal.err });
  // Ctrl-C gives a symbol.
  if (typeof text === "string") return text;
  throw new CliFailure(EXIT.usage, "no password was given");
}

/** Longer than any password; a file that was piped in by mistake is not read to its end. */
const LINE_LENGTH_MAX = 10_000;

async function firstLine(input: Terminal["input"]): Promise<string> {
  // A character of several bytes may come in two pieces.
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of input) {
    text += typeof part === "string" ? part : decoder.decode(part, { stream: true });
    if (text.includes("\n") || text.length > LINE_LENGTH_MAX) break;
  }
  return text.split(/\r?\n/, 1)[0]!;
}
