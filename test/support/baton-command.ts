/** The command line as a real process, until it ends. */

import { spawn } from "node:child_process";
import { BIN, COMPILED, type NodeProcess } from "./process-node.ts";

export interface CommandEnd {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** With an environment of its own. */
export function batonCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input = "",
): Promise<CommandEnd> {
  const child = spawn(process.execPath, [BIN, ...args], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILED, ...environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  child.stdin.on("error", () => {}).end(input);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, out, err }));
  });
}

/** `baton …` against a node. */
export function baton(node: Pick<NodeProcess, "url">, ...args: string[]): Promise<CommandEnd> {
  return batonCommand([...args, "--url", node.url]);
}
