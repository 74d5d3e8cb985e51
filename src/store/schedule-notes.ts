/**
 * Replicated schedules and pauses of queues in the store of one node, for clusters without a shared store: the notes of
 * leaders (core/schedules/schedule-register.ts). The node's own `ScheduleStore` and `QueueStore` show the content of
 * these notes.
 *
 * A call of a leader carries its term. The term is admitted in the same transaction, so that no older term can write
 * afterwards; a term older than the highest known one is refused with STALE_EPOCH.
 */

import { BatonError } from "../core/errors.ts";
import type { NodeName } from "../core/ids.ts";
import type { ScheduleNote, Version } from "../core/schedules/schedule-register.ts";
import type { Term } from "../core/leadership/term.ts";
import type { NewJob, NotedOccurrence } from "./store.ts";

export interface ScheduleNotes {
  /** Stores newer notes and the occurrences. */
  write(batch: NoteBatch, term: Term): Promise<NoteState>;

  /** One note, or those of all queues with resumed ones. Needs no term. */
  read(which: { readonly name: string } | "pauses"): Promise<FoundNotes>;
  /** For a leader, in the order of names. A schedule or pause from before there was a cluster has version 0. */
  read(page: NotePage, term: Term): Promise<FoundNotes>;

  /** Stores newer notes of queues, from another member without a term. */
  learn(pauses: readonly ScheduleNote[]): Promise<void>;

  /**
   * Submits the jobs of runs, each once even if its job is removed, until notes of a leader close the run. With `takes`
   * false nothing is submitted: a run without a job is answered "absent", as is every later request for it under the
   * same or a lower version.
   */
  place(runs: readonly Placing[], by: Placer, term: Term): Promise<readonly PlaceVerdict[]>;

  /** Removes tombstones of exactly these versions. */
  forget(names: readonly { readonly name: string; readonly version: Version }[], term: Term): Promise<void>;
}

export interface NoteBatch {
  readonly notes: readonly ScheduleNote[];
  readonly occurrences: readonly NotedOccurrence[];
  /** The batch completes what the leader has. */
  readonly complete: boolean;
}

export interface NoteState {
  /** No leader has brought this node up to date yet. */
  readonly blank: boolean;
}

export interface FoundNotes extends NoteState {
  readonly notes: readonly ScheduleNote[];
}

export interface NotePage {
  /** Names after this one; null for the first page. */
  readonly after: string | null;
  readonly limit: number;
}

export interface Placing {
  readonly schedule: string;
  readonly at: number;
  readonly job: NewJob;
  /** The version of the note in which the run is open. */
  readonly version: Version;
}

export interface Placer {
  /** The node itself: it owns the jobs. */
  readonly self: NodeName;
  readonly takes: boolean;
}

export type PlaceVerdict = "stored" | "already" | "absent";

export function staleTerm({ role, epoch, leader }: Term): BatonError {
  return new BatonError("STALE_EPOCH", `term ${epoch} of ${leader} as ${role} is over; nothing was written`, {
    role,
    epoch,
  });
}
