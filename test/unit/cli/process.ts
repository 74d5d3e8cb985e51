/** The command line as a real process, for tests that need signals, exit codes or another Node. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { COMPILED } from "../../support/process-node.ts";

export const bin = fileURLToPath(new URL("../../../bin/baton.mjs", import.meta.url));

/** One below 24.16, as the system's is on many machines; null if there is none. */
export const olderNode = findOlderNode();

export const runtimes: readonly (readonly [string, string | null])[] = [
  ["the Node of this test", process.execPath],
  ["an older Node", olderNode],
];

function findOlderNode(): string | null {
  const places = (process.env["PATH"] ?? "").split(":").map((place) => join(place, "node"));
  for (const place of [...places, "/usr/bin/node", "/usr/local/bin/node"]) {
    if (!existsSync(place)) continue;
    const version = spawnSync(place, ["-p", "process.versions.node"]).stdout.toString();
    const [major, minor] = version.split(".").map(Number);
    if (major! < 24 || (major === 24 && minor! < 16)) return place;
  }
  return null;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
}

export interface Running extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** The first match in what was written to stderr, now or later. Rejects if the process ends without it. */
  errMatch(pattern: RegExp): Promise<RegExpExecArray>;
}

export interface BatonOptions {
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly runtime?: string;
}

/** Killed, if it still runs, when the test lets go of it. */
export function baton(args: readonly string[], options: BatonOptions): Running {
  const child = spawn(options.runtime ?? process.execPath, [bin, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILED, ...options.environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (part: Buffer) => (out += part.toString()));
  child.stderr.on("data", (part: Buffer) => (err += part.toString()));
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, out, err }));
  });
  return {
    child,
    ended,
    errMatch: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(err);
          if (match) resolve(match);
        };
        look();
        child.stderr.on("data", look);
        child.on("close", () => reject(new Error(`ended without ${pattern}: ${err}`)));
      }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
