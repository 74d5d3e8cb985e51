/** All screens: where they are, what they are called, and which keys lead there. */

export interface ScreenEntry {
  readonly step: string;
  readonly title: string;
  /** Behind `g`. */
  readonly key: string;
  readonly group: "work" | "cluster" | "admin";
}

export const SCREENS: readonly ScreenEntry[] = [
  { step: "", title: "Overview", key: "o", group: "work" },
  { step: "jobs", title: "Jobs", key: "j", group: "work" },
  { step: "failures", title: "Failures", key: "f", group: "work" },
  { step: "queues", title: "Queues", key: "q", group: "work" },
  { step: "schedules", title: "Schedules", key: "s", group: "work" },
  { step: "nodes", title: "Nodes", key: "n", group: "cluster" },
  { step: "leadership", title: "Leadership", key: "l", group: "cluster" },
  { step: "processes", title: "Processes", key: "p", group: "cluster" },
  { step: "audit", title: "Audit", key: "a", group: "admin" },
  { step: "settings", title: "Settings", key: "e", group: "admin" },
];

export const GROUPS = { work: "Work", cluster: "Cluster", admin: "Administration" } as const;
