/** Removal of old data by a leader, a piece at a time. Data is removed as soon as it has reached its age. */

import type { Retention } from "../core/jobs/job.ts";
import { purgeAgents } from "./agents.ts";
import { purgeJournal } from "./journal.ts";
import { purgeSamples } from "./samples.ts";
import type { Script } from "./script.ts";

export type Purge =
  /** Finished jobs, and occurrences of schedules. At most `limit`, so that a call is short. */
  | { readonly of: "jobs"; readonly retention: Retention; readonly limit: number }
  /** Entries among the `limit` oldest. */
  | { readonly of: "journal"; readonly ageMs: number; readonly limit: number }
  /** Agents that have not been seen for so long, and tombstones that are as old. */
  | { readonly of: "agents"; readonly ageMs: number }
  | { readonly of: "samples"; readonly ageMs: number };

/** Everything but jobs, for which each store has its own tables. */
export function purgeScript(what: Exclude<Purge, { of: "jobs" }>): Script<number> {
  switch (what.of) {
    case "journal":
      return purgeJournal(what.ageMs, what.limit);
    case "agents":
      return purgeAgents(what.ageMs);
    case "samples":
      return purgeSamples(what.ageMs);
  }
}
