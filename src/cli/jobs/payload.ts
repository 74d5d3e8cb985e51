/** Reads a payload from the command line: from an argument, a file, or stdin. */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { CliFailure, EXIT } from "../failure.ts";
import { parseTypedJson } from "../terminal/typed-json.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Undefined when there is none. */
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
  if (file === "-") return parseTypedJson(await readAll(terminal.input), "the payload on stdin");
  return parseTypedJson(await readText(resolve(terminal.cwd, file), file), `the payload in ${file}`);
}

async function readText(path: string, shown: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : String(error);
    throw new CliFailure(EXIT.usage, `--payload-file ${shown} cannot be read: ${why}`);
  }
}

async function readAll(input: Terminal["input"]): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of input) parts.push(typeof part === "string" ? Buffer.from(part) : part);
  return Buffer.concat(parts).toString("utf8");
}
