/** The command line as a real process, for tests that need signals, exit codes or another Node. */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BIN, TestProcess } from "../../support/process.ts";

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

export interface BatonOptions {
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly runtime?: string;
}

export function baton(args: readonly string[], options: BatonOptions): TestProcess {
  const { runtime = process.execPath, ...command } = options;
  return new TestProcess(runtime, [BIN, ...args], command);
}
