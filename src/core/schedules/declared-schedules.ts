/**
 * Schedules that the code of nodes declares, and the stored schedules that they become. A set of declarations is a version; nodes of
 * several versions run side by side while a deploy is under way.
 *
 *     not stored ──> stored, in force: the newest version that declares it
 *                       |  no node declares it any more        ^  declared again
 *                       '────────────> dropped: paused, with a note
 *
 * - A version that a schedule has not seen is newer than all that it has seen, and takes force at once.
 * - A version that it has seen takes force again only when no node of the one in force is left: a roll back. So a node of the old
 *   version that restarts during a deploy changes nothing.
 * - What a person has changed stays, whatever later versions declare, until the person puts it back.
 * - Nothing is removed.
 */

import { definitionOf } from "./schedule-register.ts";
import type { Schedule, ScheduleDefinition } from "./schedule.ts";

/** Of a stored schedule, what the code says of it. */
export interface Declaration {
  /** Of the definition in the code. The stored one has another if a person has changed it. */
  readonly digest: string;
  /** That have declared it; the last one is in force. */
  readonly versions: readonly string[];
  /** Present while it is paused because no node declares it. */
  readonly dropped?: { readonly at: number; readonly why: string };
}

export interface DeclaredSchedule {
  readonly definition: ScheduleDefinition;
  readonly digest: string;
}

/** The digest is that of the definition without its declaration. */
export interface StoredSchedule {
  readonly schedule: Schedule;
  readonly digest: string;
}

export interface Reconciled {
  /** To be written; null where nothing changes. */
  readonly definition: ScheduleDefinition | null;
  /** It was dropped then: what was due since is due now, under its policy for missed occurrences. */
  readonly droppedAt: number | null;
  /** A person has changed it, and the code says something else. */
  readonly differs: boolean;
}

const NOTHING: Reconciled = { definition: null, droppedAt: null, differs: false };

/** More deploys ago, a version counts as new again. */
const VERSIONS_KEPT = 20;

/** `runs(version)`: whether a node of that version runs. */
export function reconcile(
  stored: StoredSchedule | null,
  declared: DeclaredSchedule,
  version: string,
  runs: (version: string) => boolean,
): Reconciled {
  const { digest } = declared;
  if (!stored) {
    const definition = { ...declared.definition, declared: { digest, versions: [version] } };
    return { ...NOTHING, definition };
  }
  const known = stored.schedule.declared;
  const versions = known?.versions ?? [];
  const inForce = versions.at(-1);
  const isOlder = inForce !== version && versions.includes(version);
  if (isOlder && runs(inForce!)) return NOTHING;
  const differs = stored.digest !== digest && stored.digest !== known?.digest;
  const dropped = known?.dropped ?? null;
  if (inForce === version && known?.digest === digest && !dropped && (differs || stored.digest === digest))
    return { ...NOTHING, differs };
  const seen = [...versions.filter((one) => one !== version), version].slice(-VERSIONS_KEPT);
  const base = differs ? withoutDeclaration(stored.schedule) : declared.definition;
  const definition = { ...base, declared: { digest, versions: seen } };
  return { definition, droppedAt: dropped?.at ?? null, differs };
}

/** Why a stored schedule is to be paused; null unless the code declared it, and no node that runs declares it. */
export function whyDropped(
  { task, paused, declared }: Schedule,
  runs: (version: string) => boolean,
  knows: (task: string) => boolean,
): string | null {
  if (!declared || declared.dropped || paused || declared.versions.some(runs)) return null;
  return knows(task)
    ? "the code declares this schedule no longer: no running node has it"
    : `task ${task} was removed: no running node knows it`;
}

export function dropped(schedule: Schedule, at: number, why: string): ScheduleDefinition {
  const { digest, versions } = schedule.declared!;
  return { ...withoutDeclaration(schedule), declared: { digest, versions, dropped: { at, why } } };
}

/** The definition as a schedule that nobody has declared. */
export function withoutDeclaration(schedule: ScheduleDefinition): ScheduleDefinition {
  const { declared: _code, ...definition } = definitionOf(schedule);
  return definition;
}
