/** A script as a real process with the Node of this test. Killed, if it still runs, when the test lets go of it. */

import { spawn } from "node:child_process";
import { COMPILED } from "./process-node.ts";

export interface ScriptEnd {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Script extends AsyncDisposable {
  readonly ended: Promise<ScriptEnd>;
  /** The first match in what was written to stderr, now or later. Rejects if the process ends without it. */
  told(pattern: RegExp): Promise<RegExpExecArray>;
  /** As an operator would: SIGTERM, and then its end. */
  stop(): Promise<ScriptEnd>;
}

export interface ScriptOptions {
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export function script(file: string, args: readonly string[], options: ScriptOptions): Script {
  const child = spawn(process.execPath, [file, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILED, ...options.environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (part: Buffer) => (out += part.toString()));
  child.stderr.on("data", (part: Buffer) => (err += part.toString()));
  const ended = new Promise<ScriptEnd>((resolve) => {
    child.on("close", (code) => resolve({ code, out, err }));
  });
  return {
    ended,
    told: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(err);
          if (match) resolve(match);
        };
        look();
        child.stderr.on("data", look);
        child.on("close", (code) => reject(new Error(`ended with ${code} and without ${pattern}: ${err}`)));
      }),
    stop() {
      child.kill("SIGTERM");
      return ended;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
