/** Calls to real nodes by callers who show something, or nothing. */

import { spawn } from "node:child_process";
import { BIN, COMPILED } from "../../support/process-node.ts";

export interface Asked {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
  readonly text: string;
}

export interface AskOptions {
  readonly method?: string;
  readonly token?: string;
  readonly cookie?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function ask(url: string, path: string, options: AskOptions = {}): Promise<Asked> {
  const { method = "GET", token, cookie, body, headers } = options;
  const reader = new AbortController();
  const answer = await fetch(`${url}${path}`, {
    method,
    signal: AbortSignal.any([reader.signal, AbortSignal.timeout(15_000)]),
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(cookie !== undefined && { cookie, origin: url }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    reader.abort();
    return { status: answer.status, headers: answer.headers, body: {}, text: "" };
  }
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: objectIn(text), text };
}

function objectIn(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** The command line in a process of its own, with an environment of its own. */
export function baton(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input = "",
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
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
