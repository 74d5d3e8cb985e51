/** What a leader removes when its time is over, a piece at a time. What is as old as its age is removed. */

import type { Retention } from "../core/jobs/job.ts";
import { purgeAgents } from "./agents.ts";
import { purgeJournal } from "./journal.ts";
import { purgeSamples } from "./samples.ts";
import type { Script } from "./script.ts";

export type Purge =
  /** Finished jobs, and occurrences of schedules. At most `limit`, so that it never blocks for long. */
  | { readonly of: "jobs"; readonly retention: Retention; readonly limit: number }
  /** Entries, of the `limit` oldest. */
  | { readonly of: "journal"; readonly ageMs: number; readonly limit: number }
  /** Agents that have not been seen, and tombstones that have stood, for so long. */
  | { readonly of: "agents"; readonly ageMs: number }
  | { readonly of: "samples"; readonly ageMs: number };

/** All but jobs, of which each store has tables of its own. */
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
