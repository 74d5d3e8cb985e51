/** A platform that a test controls: time moves on request, chance repeats, files are in memory, nothing is logged. */

import { scryptSync } from "node:crypto";
import type { NodeName } from "../../src/core/ids.ts";
import type { AppendFile, Files } from "../../src/platform/files.ts";
import { silentLog } from "../../src/platform/log.ts";
import { NodeEvents } from "../../src/platform/node-events.ts";
import { NodeState } from "../../src/platform/node-state.ts";
import type { Machine, Platform } from "../../src/platform/platform.ts";
import { ManualClock } from "./manual-clock.ts";
import { seededRandom } from "./seeded-random.ts";

export interface FakePlatform<Time extends Platform["clock"] = ManualClock> extends Platform {
  readonly clock: Time;
}

type Given<Time> = Partial<Omit<Platform, "clock">> & { readonly clock?: Time; readonly name?: string };

/** What is given replaces its part; `name` is the node's. A real clock and a recording log are typical. */
export function fakePlatform<Time extends Platform["clock"] = ManualClock>(
  given: Given<Time> = {},
): FakePlatform<Time> {
  const { name = "node-a", ...parts } = given;
  const random = parts.random ?? seededRandom(1);
  const log = parts.log ?? silentLog;
  return {
    files: new MemoryFiles(),
    machine: { hostname: `${name}.example`, cpuMs: () => 0, memoryShare: () => 0, scrypt: quickScrypt },
    identity: { name: name as NodeName, incarnation: random.uuid() },
    state: new NodeState(),
    events: new NodeEvents(log),
    ...parts,
    random,
    log,
    clock: parts.clock ?? (new ManualClock() as Platform["clock"] as Time),
  };
}

/** Without the work that makes passwords hard to guess: a quarter of a second each. */
export const quickScrypt: Machine["scrypt"] = async (password, salt, bytes) =>
  scryptSync(password, salt, bytes, { N: 2, r: 1, p: 1 });

/** Files of one disk. They survive the node that wrote them if its successor gets the same object. */
export class MemoryFiles implements Files {
  readonly texts = new Map<string, string>();

  async read(path: string): Promise<string | null> {
    return this.texts.get(path) ?? null;
  }

  async replace(path: string, text: string): Promise<void> {
    this.texts.set(path, text);
  }

  async append(path: string): Promise<AppendFile> {
    this.texts.set(path, this.texts.get(path) ?? "");
    return {
      add: async (text) => void this.texts.set(path, this.texts.get(path)! + text),
      close: async () => {},
    };
  }
}
