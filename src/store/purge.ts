/** Removal of old data by a leader, a piece at a time. Data is removed as soon as it has reached its age. */

import type { Retention } from "../core/jobs/job.ts";
import { PURGE_AGENTS } from "./agents.ts";
import { PURGE_JOURNAL } from "./journal.ts";
import { PURGE_SAMPLES } from "./samples.ts";
import { query, type Script } from "./script.ts";

export type Purge =
  /** Finished jobs, and occurrences of schedules. At most `limit`, so that a call is short. */
  | { readonly of: "jobs"; readonly retention: Retention; readonly limit: number }
  /** Entries among the `limit` oldest. */
  | { readonly of: "journal"; readonly ageMs: number; readonly limit: number }
  /** Agents that have not been seen for so long, and tombstones that are as old. */
  | { readonly of: "agents"; readonly ageMs: number }
  | { readonly of: "samples"; readonly ageMs: number };

/** Jobs have tables of their own in each store. */
export function* purgeScript(what: Exclude<Purge, { of: "jobs" }>): Script<number> {
  const rows =
    what.of === "journal"
      ? yield* query(PURGE_JOURNAL, what.ageMs, what.limit)
      : yield* query(what.of === "agents" ? PURGE_AGENTS : PURGE_SAMPLES, what.ageMs);
  return rows.length;
}
