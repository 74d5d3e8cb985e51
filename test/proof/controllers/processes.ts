/** Processes that belong to a proof: known by a mark in their environment, which whatever they start inherits. */

import { existsSync, readdirSync, readFileSync } from "node:fs";

export const MARK_VARIABLE = "PROOF_MARK";

/** Elsewhere than on Linux nobody can look into another process: there a pid is taken at its word. */
const CAN_LOOK = existsSync("/proc/self/environ");

export function isMarked(pid: number, mark: string): boolean {
  if (!CAN_LOOK) return true;
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`${MARK_VARIABLE}=${mark}`);
  } catch {
    return false; // it is gone
  }
}

export interface Marked {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** All that live, also those that nobody knows of any more; a zombie's environment is empty. */
export function markedProcesses(mark: string): Marked[] {
  if (!CAN_LOOK) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && isMarked(pid, mark))
    .map((pid) => ({ pid, parent: parentOf(pid), command: commandOf(pid) }));
}

/** Those whose parent is gone: neither we nor one of them has them any more. */
export function strays(mark: string): Marked[] {
  const all = markedProcesses(mark);
  const parents = new Set([process.pid, ...all.map(({ pid }) => pid)]);
  return all.filter(({ parent }) => parent > 0 && !parents.has(parent));
}

export function childrenOf(pid: number): number[] {
  try {
    const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return listed.trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** A pid may have been given to a stranger meanwhile, who is left alone. False if so, or if it is gone. */
export function signalMarked(pid: number, signal: NodeJS.Signals, mark: string): boolean {
  if (!isMarked(pid, mark)) return false;
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** 0 if it is gone. The name before it may have anything in it, also brackets. */
function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return 0;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
}
