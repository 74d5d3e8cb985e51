/** Schedules and the outcome of their occurrences in the store. */

import type { JobId, NodeName } from "../core/ids.ts";
import type { Occurrence, Schedule, ScheduleDefinition } from "../core/schedules/schedule.ts";
import type { Term } from "../core/leadership/term.ts";
import type { Author, NewJob } from "./store.ts";

export interface ScheduleStore {
  /** Creates or replaces by name. The same definition again changes nothing, not even `nextAt`. */
  put(
    definition: ScheduleDefinition,
    nextAt: number | null,
  ): Promise<{ schedule: Schedule; outcome: "created" | "replaced" | "unchanged" }>;
  get(name: string): Promise<Schedule | null>;
  list(): Promise<readonly Schedule[]>;
  remove(name: string): Promise<boolean>;
  /** Resuming counts on from `nextAt`. */
  setPaused(name: string, paused: boolean, nextAt: number | null): Promise<Schedule | null>;

  /**
   * Notes occurrences and submits their jobs, each pair in the same transaction, and moves `nextAt` on. An
   * occurrence that is noted already is answered "already" and makes no job.
   */
  fire(firing: Firing, author: Author, fence: Term): Promise<readonly FireVerdict[]>;

  /** Newest first. */
  history(name: string, limit: number): Promise<readonly NotedOccurrence[]>;
}

export interface Firing {
  readonly schedule: string;
  /** With the job to submit, for those that fire. */
  readonly occurrences: readonly (Occurrence & { readonly job: NewJob | null })[];
  /** The schedule's next occurrence afterwards. */
  readonly nextAt: number | null;
  /** Guards against a schedule that was replaced since it was read: fires only if `nextAt` is still this. */
  readonly expectedNextAt: number | null;
  /** With `skip`, an occurrence whose predecessor's job is unfinished is noted as skipped. */
  readonly overlap: "allow" | "skip";
}

export type FireVerdict = "fired" | "skipped" | "already" | "changed";

export interface NotedOccurrence extends Occurrence {
  readonly schedule: string;
  readonly job: JobId | null;
  readonly leaderEpoch: number;
  readonly notedAt: number;
  /** The node that has not confirmed the job yet, where every node has a store of its own. */
  readonly awaits?: NodeName;
}
