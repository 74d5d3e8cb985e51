/** All screens: where they are, what they are called, and which keys lead there. */

import type { Route } from "../../../src/api/operation-table.ts";
import { barredFrom, session } from "../api/session.ts";

export interface ScreenEntry {
  readonly step: string;
  readonly title: string;
  /** Behind `g`. */
  readonly key: string;
  readonly group: "work" | "cluster" | "admin";
  /** Shown to those alone who may do that. */
  readonly needs?: Route;
}

const SCREENS: readonly ScreenEntry[] = [
  { step: "", title: "Overview", key: "o", group: "work" },
  { step: "jobs", title: "Jobs", key: "j", group: "work" },
  { step: "failures", title: "Failures", key: "f", group: "work" },
  { step: "queues", title: "Queues", key: "q", group: "work" },
  { step: "schedules", title: "Schedules", key: "s", group: "work" },
  { step: "nodes", title: "Nodes", key: "n", group: "cluster" },
  { step: "leadership", title: "Leadership", key: "l", group: "cluster" },
  { step: "processes", title: "Processes", key: "p", group: "cluster" },
  { step: "access", title: "Access", key: "u", group: "admin", needs: "GET /tokens" },
  { step: "audit", title: "Audit", key: "a", group: "admin" },
  { step: "settings", title: "Settings", key: "e", group: "admin" },
];

/** Those that whoever looks may see. */
export function screens(): readonly ScreenEntry[] {
  return SCREENS.filter(
    ({ needs }) => needs === undefined || (session.value !== null && barredFrom(needs) === null),
  );
}

export const GROUPS = { work: "Work", cluster: "Cluster", admin: "Administration" } as const;
