/**
 * The report of a supervisor about itself and its children: a file in its data directory, rewritten with every change.
 * A file instead of a port, because it can be read while everything else is broken, and needs no authentication.
 */

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Role } from "../core/leadership/role.ts";
import { lockDataFolder } from "./data-folder-lock.ts";
import type { ExitCause, SupervisedChild } from "./supervised-child.ts";

export interface ChildReport {
  readonly state: "off" | "running" | "stopping" | "waiting";
  readonly pid: number | null;
  readonly started_at: string | null;
  readonly restarts: number;
  readonly crashes_in_a_row: number;
  readonly last_exit: {
    readonly at: string;
    readonly code: number | null;
    readonly signal: string | null;
    readonly cause: ExitCause;
    readonly reason: string;
  } | null;
}

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

export function childReport(child: SupervisedChild): ChildReport {
  const { lastExit, startedAt } = child;
  return {
    state: child.state,
    pid: child.pid,
    started_at: startedAt === null ? null : new Date(startedAt).toISOString(),
    restarts: child.restarts,
    crashes_in_a_row: child.crashes,
    last_exit: lastExit && { ...lastExit, at: new Date(lastExit.at).toISOString() },
  };
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
