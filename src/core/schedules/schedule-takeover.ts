/** How a new leader collects the notes of earlier terms (schedule-register.ts). */

import { type ScheduleNote, compareVersions } from "./schedule-register.ts";
import { majorityOf } from "../leadership/bully.ts";

export interface Witness {
  /** No leader has brought it up to date, as after the loss of its disk. */
  readonly blank: boolean;
  /** Removed and joined again, and not brought up to date since. */
  readonly returned: boolean;
}

export interface ReadSoFar {
  readonly members: number;
  readonly required: number;
  readonly answers: readonly Witness[];
  readonly left: number;
}

/**
 * Whether a new leader has read enough. The answer of a blank or returned node does not count, because what it once
 * stored may be gone or old, unless all members have answered, or all are blank and nobody else will answer: then the
 * cluster is new.
 */
export function readEnough({ members, required, answers, left }: ReadSoFar): boolean {
  if (answers.length === members) return true;
  const sound = answers.filter(({ blank, returned }) => !blank && !returned).length;
  const majority = majorityOf(members);
  if (sound >= Math.max(required, majority)) return true;
  if (left > 0 || answers.length < required) return false;
  const isNew = sound === 0 && !answers.some(({ returned }) => returned);
  return isNew || sound >= required || required < majority;
}

/** The highest version of each schedule and who had it; of equal ones that of `first`, then in alphabetical order. */
export function newestNotes<Name extends string>(
  answers: ReadonlyMap<Name, readonly ScheduleNote[]>,
  first: Name,
): Map<string, { readonly note: ScheduleNote; readonly from: Name }> {
  const order = [...answers.keys()].sort((a, b) => (a === first ? -1 : b === first ? 1 : a < b ? -1 : 1));
  const newest = new Map<string, { note: ScheduleNote; from: Name }>();
  for (const from of order) {
    for (const note of answers.get(from)!) {
      const known = newest.get(note.name);
      if (!known || compareVersions(note.version, known.note.version) > 0)
        newest.set(note.name, { note, from });
    }
  }
  return newest;
}
