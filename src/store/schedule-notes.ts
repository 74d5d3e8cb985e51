/**
 * Replicated schedules and pauses of queues in the store of one node, for clusters without a shared store: the notes of
 * leaders (core/schedules/schedule-register.ts). The node's own `ScheduleStore` and `QueueStore` show what these notes
 * say.
 *
 * Every call but a plain read names the term of the leader that makes it. The term is admitted in the same transaction,
 * so that no older term can write afterwards; a term older than the highest known one is refused with STALE_EPOCH.
 */

import { BatonError } from "../core/errors.ts";
import type { NodeName } from "../core/ids.ts";
import type { ScheduleNote, Version } from "../core/schedules/schedule-register.ts";
import type { Term } from "../core/leadership/term.ts";
import type { NewJob, NotedOccurrence } from "./store.ts";

export interface ScheduleNotes {
  /** Keeps the notes that are newer than what it has, and the occurrences. */
  write(batch: NoteBatch, term: Term): Promise<NoteState>;

  /** In the order of names. A schedule that was put, or a queue that was paused, before there was a cluster comes as a note of version 0. */
  read(page: NotePage, term: Term): Promise<readonly ScheduleNote[]>;

  /**
   * Submits the jobs of runs, each once for all times until a leader's notes say that the run is done with, whatever becomes
   * of the job. With `takes` false nothing is submitted: what is not there yet is answered with "absent", and so is from
   * then on whatever else is asked under that version or a lower one.
   */
  place(runs: readonly Placing[], by: Placer, term: Term): Promise<readonly PlaceVerdict[]>;

  /** Removes tombstones of exactly these versions. */
  forget(names: readonly { readonly name: string; readonly version: Version }[], term: Term): Promise<void>;

  /** Whether no leader has brought this node up to date since its store was made. */
  blank(): Promise<boolean>;
  get(name: string): Promise<ScheduleNote | null>;
  /** The notes of queues, also of those that were resumed. */
  pauses(): Promise<readonly ScheduleNote[]>;
  /** Keeps those notes of queues that are newer than what it has. Another member has them from a leader. */
  learn(pauses: readonly ScheduleNote[]): Promise<void>;
  /** Those of these occurrences that are noted here. */
  noted(schedule: string, instants: readonly number[]): Promise<readonly NotedOccurrence[]>;
}

export interface NoteBatch {
  readonly notes: readonly ScheduleNote[];
  readonly occurrences: readonly NotedOccurrence[];
  /** With this batch the node has all that the leader has. */
  readonly complete: boolean;
}

export interface NoteState {
  readonly blank: boolean;
}

export interface NotePage {
  /** Names behind this one; null from the first. */
  readonly after: string | null;
  readonly limit: number;
}

export interface Placing {
  readonly schedule: string;
  readonly at: number;
  readonly job: NewJob;
  /** Of the note in which the run is open. */
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
