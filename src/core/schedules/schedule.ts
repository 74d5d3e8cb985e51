/**
 * Schedules: which occurrences fire, which are skipped, and from which instant the next one is computed.
 *
 * An occurrence is the pair (schedule, instant). The store has one row per occurrence under a unique key and writes its
 * job in the same transaction, so two leaders create one job, not two. The next occurrence is always computed from the
 * previous one, never from now: a late leader neither skips nor repeats.
 */

import type { Declaration } from "./declared-schedules.ts";

export const MISSED_POLICIES = ["skip", "run_once", "run_all"] as const;
export type MissedPolicy = (typeof MISSED_POLICIES)[number];

export const OVERLAP_POLICIES = ["allow", "skip"] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

export type Timing =
  | { readonly kind: "cron"; readonly expression: string; readonly zone: string }
  | { readonly kind: "every"; readonly everyMs: number; readonly anchor: number };

export interface ScheduleDefinition {
  readonly name: string;
  readonly timing: Timing;
  readonly task: string;
  readonly payload: string;
  readonly queue: string;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly timeoutMs: number | null;
  readonly missed: MissedPolicy;
  /** Most occurrences that `run_all` makes up for at once; older ones are recorded as skipped. */
  readonly missedMax: number;
  readonly overlap: OverlapPolicy;
  /** Left out for one that no code declares. */
  readonly declared?: Declaration;
}

export interface Schedule extends ScheduleDefinition {
  readonly paused: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Null if there is none left. */
  readonly nextAt: number | null;
  readonly lastFiredAt: number | null;
  readonly lastJob: string | null;
  readonly leaderEpoch: number;
}

export type SkipReason = "missed" | "overlap" | "over_cap";

export interface Occurrence {
  readonly at: number;
  readonly do: "fire" | "skip";
  readonly reason: SkipReason | null;
}

export interface FiringFacts {
  readonly noted: ReadonlySet<number>;
  readonly overlap: OverlapPolicy;
  /** Whether the job of the last occurrence is unfinished, or may be. */
  readonly predecessorRuns: boolean;
}

export type Decided<Run> =
  | { readonly verdict: "already"; readonly at: number }
  | { readonly verdict: "fired"; readonly at: number; readonly run: Run }
  | { readonly verdict: "skipped"; readonly at: number; readonly reason: SkipReason | null };

/** Each instant is noted once, and with `skip` an occurrence does not overlap the previous one. */
export function decideOccurrences<Run>(
  planned: readonly (Occurrence & { readonly run: Run | null })[],
  { noted, overlap, predecessorRuns }: FiringFacts,
): Decided<Run>[] {
  const known = new Set(noted);
  let blocked = overlap === "skip" && predecessorRuns;
  return planned.map(({ at, do: what, reason, run }) => {
    if (known.has(at)) return { verdict: "already", at };
    known.add(at);
    if (what === "fire" && blocked) return { verdict: "skipped", at, reason: "overlap" };
    if (what === "skip" || run === null) return { verdict: "skipped", at, reason };
    blocked = overlap === "skip";
    return { verdict: "fired", at, run };
  });
}

export interface DuePlan {
  readonly occurrences: readonly Occurrence[];
  /** Too many to note one by one: skipped from `from` until before `before`. */
  readonly passedOver: { readonly from: number; readonly before: number } | null;
  readonly nextAt: number | null;
}

/**
 * A later occurrence is a missed one and falls under the policy. Smaller, and the delays of a busy leader count as
 * misses; larger, and `skip` fires runs that should be dropped.
 */
export const MISSED_AFTER_MS = 5_000;

/**
 * The first and at most this many of the newest skipped occurrences are noted; the rest is passed over in one step. A
 * schedule of every second would otherwise write 2.6 million rows after a month.
 */
const SKIPS_NOTED_MAX = 100;

/**
 * Each occurrence from `nextAt` to `now` is fired, skipped or within `passedOver`. Paused schedules are not planned.
 * `following(instant)`: the first occurrence strictly after an instant.
 */
export function planDue(
  schedule: Pick<Schedule, "nextAt" | "missed" | "missedMax">,
  now: number,
  following: (instant: number) => number | null,
): DuePlan {
  const first = schedule.nextAt;
  if (first === null || first > now) return { occurrences: [], passedOver: null, nextAt: first };
  const madeUpMax = schedule.missed === "run_all" ? schedule.missedMax : 1;
  const { due, nextAt } = newestDue(first, now, following, madeUpMax + SKIPS_NOTED_MAX);
  const occurrences = due.map((at, index) => verdict(schedule, at, due.length - index, now));
  const oldest = due[0]!;
  if (oldest === first) return { occurrences, passedOver: null, nextAt };
  const from = following(first)!;
  return {
    occurrences: [verdict(schedule, first, Infinity, now), ...occurrences],
    passedOver: from < oldest ? { from, before: oldest } : null,
    nextAt,
  };
}

/**
 * The newest `limit` occurrences in [first, now], oldest first, and the one after now. Looks back from now in doubling
 * windows, so that the cost depends on the limit and not on how long nobody looked.
 */
function newestDue(
  first: number,
  now: number,
  following: (instant: number) => number | null,
  limit: number,
): { due: number[]; nextAt: number | null } {
  for (let windowMs = 60_000; ; windowMs *= 2) {
    const whole = now - windowMs <= first;
    const due: number[] = [];
    let cursor: number | null = whole ? first : following(now - windowMs);
    while (cursor !== null && cursor <= now) {
      due.push(cursor);
      const next = following(cursor);
      if (next !== null && next <= cursor) throw new RangeError("following() must move forward");
      cursor = next;
    }
    if (whole || due.length >= limit) return { due: due.slice(-limit), nextAt: cursor };
  }
}

/** `age` is 1 for the newest due occurrence, 2 for the one before it, and so on. */
function verdict(
  schedule: Pick<Schedule, "missed" | "missedMax">,
  at: number,
  age: number,
  now: number,
): Occurrence {
  const skip = (reason: SkipReason): Occurrence => ({ at, do: "skip", reason });
  if (now - at < MISSED_AFTER_MS) return { at, do: "fire", reason: null };
  switch (schedule.missed) {
    case "skip":
      return skip("missed");
    case "run_once":
      return age === 1 ? { at, do: "fire", reason: null } : skip("missed");
    case "run_all":
      return age <= schedule.missedMax ? { at, do: "fire", reason: null } : skip("over_cap");
  }
}
