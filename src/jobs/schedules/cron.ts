/**
 * When a schedule fires: a pure function from one instant to the first occurrence after it. croner finds matching local times. What they
 * mean on the day the clocks change is decided here, by one rule with two sides:
 *
 *   - An expression that names *every* hour follows elapsed time: hourly stays every 60 minutes. A local time that does not
 *     exist is no occurrence, one that comes twice is two.
 *   - Any other expression names local times, and each fires once: the first time when it comes twice, and at the first
 *     instant that exists when it does not (02:30 in the missing hour: at 03:00), together with others of the same gap.
 *
 * croner's own rule treats only single values as local times: `30 2,14 * * *` would be lost in spring and doubled in autumn, and it
 * drops a run whose gap ends on the next day (America/Nuuk, 23:00).
 */

import { CronDate, CronPattern } from "croner";
import { BatonError, reasonOf } from "../../core/errors.ts";
import type { Timing } from "../../core/schedules/schedule.ts";
import { parseCron, refuse } from "./cron-syntax.ts";
import { type TimeZone, findZone, suggestZone } from "./time-zone.ts";

export interface CompiledTiming {
  /** The first occurrence strictly after the instant; null when there is none any more. */
  readonly following: (instant: number) => number | null;
}

/** Below a second a schedule is a loop; a leader's turn is no place for it. */
export const EVERY_MS_MIN = 1_000;
/** Rarer things want a date: cron. */
export const EVERY_MS_MAX = 366 * 86_400_000;

const HOUR_MS = 3_600_000;
/** More than any offset from UTC (they lie between -12 and +14 hours), and than any change of one. */
const OFFSET_MS_MAX = 16 * HOUR_MS;
/** Some instant: whether dates such as 30 February ever come does not depend on where one starts to look. */
const SOME_INSTANT = Date.UTC(2024, 0, 1);
/** About 2 kB each. Full, the one that was compiled first goes. */
const COMPILED_MAX = 10_000;

const compiled = new Map<string, CompiledTiming>();

/** Throws BAD_SCHEDULE with the field at fault and the remedy. */
export function compileTiming(timing: Timing): CompiledTiming {
  const key =
    timing.kind === "cron"
      ? `${timing.zone} ${timing.expression}`
      : `every ${timing.everyMs} from ${timing.anchor}`;
  let found = compiled.get(key);
  if (!found) {
    found = timing.kind === "cron" ? compileCron(timing.expression, timing.zone) : compileEvery(timing);
    if (compiled.size >= COMPILED_MAX) compiled.delete(compiled.keys().next().value!);
    compiled.set(key, found);
  }
  return found;
}

function compileEvery({ everyMs, anchor }: { everyMs: number; anchor: number }): CompiledTiming {
  if (!Number.isSafeInteger(everyMs) || everyMs < EVERY_MS_MIN || everyMs > EVERY_MS_MAX) {
    const message = `every_ms is ${everyMs}: an interval is a whole number of ms from ${EVERY_MS_MIN} (a second) to ${EVERY_MS_MAX} (366 days)`;
    throw new BatonError("BAD_SCHEDULE", message, { field: "every_ms" });
  }
  return { following: (instant) => anchor + (Math.floor((instant - anchor) / everyMs) + 1) * everyMs };
}

function compileCron(expression: string, zoneName: string): CompiledTiming {
  const { pattern, everyHour } = parseCron(expression);
  const zone = findZone(zoneName);
  if (!zone) {
    const near = suggestZone(zoneName);
    const remedy = near ? `did you mean ${near}?` : "give an IANA name such as Europe/Berlin, or UTC";
    throw new BatonError("BAD_SCHEDULE", `zone "${zoneName}" is not known; ${remedy}`, { field: "zone" });
  }
  const calendar = compileCalendar(expression, pattern);
  if (calendar(SOME_INSTANT) === null) {
    throw refuse(expression, "no such date ever comes; look at the day of month and the month");
  }
  return {
    following: everyHour
      ? (instant) => nextElapsed(instant, zone, calendar)
      : (instant) => nextLocal(instant, zone, calendar),
  };
}

/** The first matching local time strictly after one, both written as if they were UTC. */
type Calendar = (local: number) => number | null;

/** A croner pattern keeps a list of 10,000 years, 80 kB; ours name none, so they all share this one. */
const everyYear = new CronPattern("* * * * *").year;

function compileCalendar(expression: string, text: string): Calendar {
  let pattern: CronPattern;
  try {
    pattern = new CronPattern(text, undefined, { mode: "5-or-6-parts" });
  } catch (error) {
    throw refuse(expression, reasonOf(error));
  }
  pattern.year = everyYear;
  // Day of month and weekday, both given: either will do, as in every cron.
  const options = { domAndDow: false };
  // The offset 0 makes it a pure calendar: a named zone costs croner ten times as much.
  return (local) => new CronDate(new Date(local), 0).increment(pattern, options, false)?.getTime() ?? null;
}

function nextLocal(instant: number, zone: TimeZone, calendar: Calendar): number | null {
  let local: number | null = instant + zone.offsetAt(instant);
  while ((local = calendar(local)) !== null) {
    const at = firstInstantOf(local, zone);
    // Times of a repeated hour belong to its first pass, which may be over.
    if (at > instant) return at;
  }
  return null;
}

/** When a local time first comes; the end of the gap if it never does. */
function firstInstantOf(local: number, zone: TimeZone): number {
  const before = zone.offsetAt(local - OFFSET_MS_MAX);
  const after = zone.offsetAt(local + OFFSET_MS_MAX);
  if (before === after) return local - before;
  const change = zone.changeWithin(local - OFFSET_MS_MAX, local + OFFSET_MS_MAX)!;
  if (local - before < change) return local - before;
  return Math.max(local - after, change);
}

function nextElapsed(instant: number, zone: TimeZone, calendar: Calendar): number | null {
  // Whole seconds from here on; `from` itself may be the answer.
  let from = Math.floor(instant / 1_000) * 1_000 + 1_000;
  for (;;) {
    const offset = zone.offsetAt(from);
    const local = calendar(from + offset - 1_000);
    if (local === null) return null;
    const candidate = local - offset;
    const horizon = from + 2 * OFFSET_MS_MAX;
    const change = zone.changeWithin(from, Math.min(candidate, horizon));
    if (change !== null) from = change;
    else if (candidate <= horizon) return candidate;
    // Nothing matches in between, wherever the offset goes: look again shortly before the candidate.
    else from = Math.max(horizon, candidate - 2 * OFFSET_MS_MAX);
  }
}
