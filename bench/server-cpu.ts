/** Processor time of other processes, out of /proc. */

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** USER_HZ is 100 on every Linux that Node runs on. */
const TICK_US = 10_000;

/**
 * Processor time in µs of a server's process and its children so far, those that have ended included; null where there is no
 * /proc. Of the living it is exact, of the dead in ticks.
 */
export function serverCpuUs(pid: number): number | null {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    const living = [pid, ...children.trim().split(" ").filter(Boolean).map(Number)];
    return living.reduce((sum, each) => sum + runUs(each), reapedUs(pid));
  } catch {
    return null;
  }
}

/** Which share of a core each of these processes takes in so long a time. */
export async function coreShares(pids: readonly number[], ms: number): Promise<number[]> {
  const before = pids.map(processCpuUs);
  const startedAt = performance.now();
  await sleep(ms);
  const tookUs = (performance.now() - startedAt) * 1_000;
  return pids.map((pid, at) => (processCpuUs(pid) - before[at]!) / tookUs);
}

/** Of one process with all its threads, exact; those of threads that have ended are lost. */
function processCpuUs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + runUs(`${pid}/task/${thread}`), 0);
}

function runUs(pid: number | string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ", 1)[0]) / 1_000;
  } catch {
    return 0; // it has just ended
  }
}

function reapedUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * TICK_US;
}
