/** Gathers facts about the machine that runs `baton doctor`. */

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { DirectoryFacts } from "./judge-machine.ts";

/** Null where the platform does not tell. */
export function openFilesLimit(): number | "unlimited" | null {
  // A report is the only way to ask without starting a program; without the network it takes some milliseconds.
  (process.report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const soft = userLimits?.open_files?.soft;
  if (soft === "unlimited") return soft;
  return soft === undefined || Number.isNaN(Number(soft)) ? null : Number(soft);
}

/** The numbers by which Linux knows file systems that are somewhere else. */
const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x5346414f, "AFS"],
  [0x00c36400, "Ceph"],
  [0x65735546, "FUSE"],
]);

export async function directoryFacts(path: string): Promise<DirectoryFacts> {
  const exists = existsSync(path);
  const near = nearestExisting(path);
  const space = await statfs(near).catch(() => null);
  return {
    path,
    exists,
    writable: isWritable(near),
    mode: exists ? modeOf(path) : null,
    freeBytes: space && space.bavail * space.bsize,
    totalBytes: space && space.blocks * space.bsize,
    network: (space && process.platform === "linux" && NETWORK.get(space.type >>> 0)) || null,
  };
}

/** Permission bits; null on Windows, where they say nothing, and for what is not there. */
export function modeOf(path: string): number | null {
  if (process.platform === "win32") return null;
  return statSync(path, { throwIfNoEntry: false })?.mode ?? null;
}

function nearestExisting(path: string): string {
  let near = path;
  while (!existsSync(near) && dirname(near) !== near) near = dirname(near);
  return near;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
