/** Judges clocks. An answer gives the other clock to within half of its round trip; of several, the fastest is the most precise. */

import { span } from "../../core/format-figures.ts";
import type { Clock } from "../../platform/clock.ts";
import { failed, judged, type Judgement, type Rule, skipped, warning } from "./findings.ts";

export interface ClockReading {
  readonly name: string;
  /** Theirs less ours. */
  readonly offsetMs: number;
  readonly uncertainMs: number;
}

/** Where a schedule fires visibly early or late. */
const SKEW_MS_WISHED = 500;
/** Nodes refuse signed calls at 30 s; half-way there something must be done. */
const SKEW_MS_MAX = 10_000;
const REMEDY =
  "let a time service keep it: `timedatectl status` or `chronyc tracking` there tells whether one does";

const HERE: ClockReading = { name: "this machine", offsetMs: 0, uncertainMs: 0 };

/** Who is off, compared with the middle of all; this machine is one of them, with no offset. */
export function judgeClocks(others: readonly ClockReading[]): readonly Judgement[] {
  if (others.length === 0) return [skipped("no other clock could be read")];

  const all = others.length > 1 ? others : [...others, HERE];
  const middle = median(all.map(({ offsetMs }) => offsetMs));
  const offsets = [...all, HERE].map(({ offsetMs }) => offsetMs);
  const widest = Math.max(...offsets) - Math.min(...offsets);
  const uncertain = Math.max(...others.map(({ uncertainMs }) => uncertainMs));
  const names = others.map(({ name }) => name).join(", ");
  return judged(
    // With one other clock it cannot be known which of the two is wrong.
    [...others, ...(others.length > 1 ? [HERE] : [])].map((each) => judgeReading(each, middle)),
    `${names} and this machine agree within ${span(Math.ceil(widest))} (± ${span(Math.ceil(uncertain))})`,
  );
}

function judgeReading(reading: ClockReading, middle: number): Rule {
  const { name, offsetMs, uncertainMs } = reading;
  const off = offsetMs - middle;
  const surely = Math.abs(off) - uncertainMs;
  if (surely < SKEW_MS_WISHED) return false;
  const how = `the clock of ${name} is ${span(Math.abs(off))} ${off > 0 ? "ahead of" : "behind"} the others (± ${span(Math.ceil(uncertainMs))})`;
  if (reading === HERE) return warning(`${how}: "3m ago" means something else here`, REMEDY);
  return surely >= SKEW_MS_MAX
    ? failed(`${how}: nodes refuse calls that are 30 s off, and schedules fire at the wrong time`, REMEDY)
    : warning(`${how}: schedules fire by the clock of whoever leads`, REMEDY);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The first call opens a connection and is slow; of some more, one is quick. */
const SAMPLES = 3;

export async function readClock(
  name: string,
  clock: Pick<Clock, "now" | "monotonic">,
  read: () => Promise<number>,
): Promise<ClockReading> {
  const readings: ClockReading[] = [];
  for (let each = 0; each < SAMPLES; each++) {
    const [sentAt, began] = [clock.now(), clock.monotonic()];
    const theirs = await read();
    const halfMs = (clock.monotonic() - began) / 2;
    readings.push({ name, offsetMs: theirs - (sentAt + halfMs), uncertainMs: Math.max(1, halfMs) });
  }
  return readings.toSorted((a, b) => a.uncertainMs - b.uncertainMs)[0]!;
}
