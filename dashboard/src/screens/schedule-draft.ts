/** A schedule as it is typed, and as it is sent. */

import type { ScheduleBody, ScheduleRequestBody } from "../../../src/api/bodies/schedule-body.ts";
import type { MissedPolicy, OverlapPolicy } from "../../../src/core/schedules/schedule.ts";

export const UNITS = { seconds: 1_000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const;
export type Unit = keyof typeof UNITS;

export interface Draft extends Pick<ScheduleBody, "name" | "task" | "payload" | "missed" | "overlap"> {
  readonly kind: "cron" | "every";
  readonly cron: string;
  readonly zone: string;
  /** Null while nothing is typed. */
  readonly every: number | null;
  readonly unit: Unit;
  readonly options: Pick<ScheduleRequestBody, "queue" | "priority" | "max_attempts" | "timeout_ms">;
  /** Not in the form: kept as it is. */
  readonly missedMax?: number;
}

export const EMPTY: Draft = {
  name: "",
  task: "",
  payload: undefined,
  kind: "cron",
  cron: "0 9 * * MON-FRI",
  zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  every: 10,
  unit: "minutes",
  missed: "run_once",
  overlap: "allow",
  options: {},
};

export function draftOf(schedule: ScheduleBody): Draft {
  const { name, task, payload, cron, zone, every_ms, missed, missed_max, overlap } = schedule;
  const { queue, priority, max_attempts, timeout_ms } = schedule;
  const unit = unitOf(every_ms ?? UNITS.minutes);
  return {
    name,
    task,
    payload,
    kind: cron === null ? "every" : "cron",
    cron: cron ?? EMPTY.cron,
    zone: zone ?? EMPTY.zone,
    every: every_ms === null ? EMPTY.every : every_ms / UNITS[unit],
    unit: every_ms === null ? EMPTY.unit : unit,
    missed,
    overlap,
    missedMax: missed_max,
    options: { queue, priority, max_attempts, ...(timeout_ms !== null && { timeout_ms }) },
  };
}

/** The largest that it is a whole number of; milliseconds are written as parts of a second. */
function unitOf(ms: number): Unit {
  const units: readonly Unit[] = ["days", "hours", "minutes"];
  return units.find((unit) => ms % UNITS[unit] === 0) ?? "seconds";
}

/** Null while there is nothing to send. */
export function timingOf(
  draft: Pick<Draft, "kind" | "cron" | "zone" | "every" | "unit">,
): Pick<ScheduleRequestBody, "cron" | "zone" | "every_ms"> | null {
  if (draft.kind === "every") {
    return draft.every === null ? null : { every_ms: Math.round(draft.every * UNITS[draft.unit]) };
  }
  const cron = draft.cron.trim();
  const zone = draft.zone.trim();
  return cron === "" ? null : { cron, ...(zone !== "" && { zone }) };
}

export function requestOf(draft: Draft): ScheduleRequestBody {
  const { task, payload, missed, missedMax: missed_max, overlap, options } = draft;
  return { task, ...timingOf(draft), payload, ...options, missed, missed_max, overlap };
}

export const MISSED_WORDS: Readonly<Record<MissedPolicy, string>> = {
  run_once: "one job for all of them",
  run_all: "one job for each",
  skip: "skipped",
};

export const DECLARED_WORDS: Readonly<Record<ScheduleBody["origin"], string>> = {
  operator: "no",
  code: "in code",
  changed: "in code, and changed by hand",
  dropped: "no longer",
};

export const OVERLAP_WORDS: Readonly<Record<OverlapPolicy, string>> = {
  allow: "run concurrently",
  skip: "skip the next",
};
