/**
 * What all parts of a node share: the first argument of their constructors. Nothing else reads clocks, makes randomness, opens files or asks
 * the operating system, so that a test or a simulation replaces all of it.
 */

import { scrypt, type ScryptOptions } from "node:crypto";
import { availableParallelism, hostname, totalmem } from "node:os";
import { promisify } from "node:util";
import type { NodeIdentity } from "../core/node.ts";
import { systemClock, type Clock } from "./clock.ts";
import { systemFiles, type Files } from "./files.ts";
import type { Log } from "./log.ts";
import type { NodeEvents } from "./node-events.ts";
import type { NodeState } from "./node-state.ts";
import { systemRandom, type Random } from "./random.ts";

export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly files: Files;
  readonly machine: Machine;
  readonly log: Log;
  readonly identity: NodeIdentity;
  readonly state: NodeState;
  readonly events: NodeEvents;
}

/** The operating system's figures, and work that keeps a processor busy. */
export interface Machine {
  readonly hostname: string;
  /** CPU time that this process has used, divided by the number of cores. */
  cpuMs(): number;
  /** The share of the memory that this process has, from 0 to 1. */
  memoryShare(): number;
  scrypt(password: string, salt: string, bytes: number, options: ScryptOptions): Promise<Buffer>;
}

const systemMachine: Machine = {
  hostname: hostname(),
  cpuMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000 / availableParallelism();
  },
  memoryShare: () => Math.min(1, process.memoryUsage.rss() / totalmem()),
  scrypt: promisify(scrypt) as Machine["scrypt"],
};

export const SYSTEM = {
  clock: systemClock,
  random: systemRandom,
  files: systemFiles,
  machine: systemMachine,
} as const;
