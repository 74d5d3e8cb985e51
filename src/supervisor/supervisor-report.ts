/**
 * The data directory of a supervisor: its lock, and the report about itself and its children, a file that is rewritten with
 * every change. A file instead of a port, because it can be read while everything else is broken, and needs no
 * authentication.
 */

import { readFileSync, renameSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Role } from "../core/leadership/role.ts";
import type { ChildReport } from "./supervised-child.ts";
import { DatabaseSync } from "node:sqlite";
import { BatonError, reasonOf } from "../core/errors.ts";

export interface SupervisorReport {
  readonly node: string;
  readonly status: "running" | "degraded" | "stopping" | "stopped";
  readonly pid: number;
  /** Of this life of the node-controller. */
  readonly incarnation: string;
  readonly started_at: string;
  /** Null before the first report of the controller. */
  readonly role: Role | null;
  readonly leader_epoch: number | null;
  readonly url: string | null;
  readonly controller: ChildReport;
  /** Why there is none, where there is none. */
  readonly agent: (ChildReport & { readonly name: string }) | { readonly none: string };
}

/** Never half a file: whoever reads sees the old one or the new one. */
export function writeReport(directory: string, report: SupervisorReport): void {
  const path = pathIn(directory);
  writeFileSync(`${path}.new`, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Null if there never was a node-controller. One that was killed could not say so: its lock shows it. */
export function readReport(directory: string): SupervisorReport | null {
  let report: SupervisorReport;
  try {
    report = JSON.parse(readFileSync(pathIn(directory), "utf8")) as SupervisorReport;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const unlock = lockDataFolder(directory);
  if (!unlock) return report;
  unlock();
  const { controller, agent } = report;
  return {
    ...report,
    status: "stopped",
    role: null,
    url: null,
    controller: { ...controller, ...ENDED },
    agent: "none" in agent ? agent : { ...agent, ...ENDED },
  };
}

/** Children do not outlive their node-controller. */
const ENDED = { state: "off", pid: null, started_at: null } as const;

function pathIn(directory: string): string {
  return join(directory, "controller.json");
}

const SQLITE_BUSY = 5;

/**
 * Ensures one supervisor per data directory. Returns the function that releases it; null while another process has it. The
 * lock is the operating system's, on a file that SQLite holds open: it ends with the process, for whatever reason, so it
 * is never stale. The alternative, a file with a process id, was rejected: ids are reused, and in a container every
 * process has number 1.
 */
export function lockDataFolder(directory: string): (() => void) | null {
  let db: DatabaseSync | undefined;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    db = new DatabaseSync(join(directory, "controller.lock"));
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db?.close();
    if (db && (error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    const why = reasonOf(error);
    const message = `the data directory ${directory} cannot be used: ${why}`;
    throw new BatonError("DATA_UNUSABLE", message, {}, { cause: error });
  }
  const held = db;
  return () => {
    if (held.isOpen) held.close();
  };
}
