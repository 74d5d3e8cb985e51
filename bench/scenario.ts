/** The shape of a measurement: a scenario runs its rounds and gives rows for the one table. */

import type { Actor } from "./actor.ts";
import type { Actions, Sample } from "./actions.ts";
import type { Chart } from "./chart.ts";
import type { Engine, EngineName } from "./engine.ts";
import { median } from "./statistics.ts";

export interface Bench {
  readonly quick: boolean;
  readonly rounds: number;
  /** Multiplies how many jobs wait or are kept; 10 has the sizes of the table. */
  readonly scale: number;
  /** A checkout of an earlier version, to measure beside this one. */
  readonly before: string | null;
  readonly engine: Engine;
  /** Progress, for people. */
  say(text: string): void;
  /** A plot for the report. */
  chart(name: string, chart: Chart): void;
}

export interface Scenario {
  readonly name: string;
  readonly about: string;
  /** The one store on which it is measured. */
  readonly only?: EngineName;
  /** The stores on which it gives rows of the table of goals. */
  readonly goals?: readonly EngineName[];
  run(bench: Bench): Promise<readonly Row[]>;
}

export interface Row {
  readonly figure: string;
  readonly unit: string;
  readonly ours: number;
  /** Null where nothing can be compared. */
  readonly floor: number | null;
  /** What stands in place of a hand-written floor. */
  readonly beside?: string;
  /** Of the floor; the median over the rounds, each of which compares neighbours in time. */
  readonly ratio: number | null;
  /** Smallest and largest of the rounds. */
  readonly ratios?: readonly [number, number];
  readonly cpuUs?: { readonly ours: CpuUs; readonly floor: CpuUs | null };
  readonly target: Target | null;
}

/** For each job, of the measured process and of the database server, which an embedded store has not. */
export interface CpuUs {
  readonly own: number;
  readonly server: number | null;
}

export interface Target {
  readonly text: string;
  readonly met: boolean;
}

export function atLeast(times: number, ratio: number): Target {
  return { text: `≥ ${times} ×`, met: ratio >= times };
}

export function atMost(times: number, ratio: number): Target {
  return { text: `≤ ${times} ×`, met: ratio <= times };
}

/** A row without a floor. */
export function absolute(figure: string, unit: string, ours: number, most: number | null): Row {
  const target = most === null ? null : { text: `≤ ${most} ${unit}`.trim(), met: ours <= most };
  return { figure, unit, ours, floor: null, ratio: null, target };
}

/** Of a figure in this unit, more is better. */
export function moreIsBetter(unit: string): boolean {
  return unit.endsWith("/s");
}

/** Until connections are open and statements prepared, which a reset undoes. */
export const WARM_MS = 60;

export type Side = Actor<Actions>;

/** Rounds in which each side has its turn, so that a noisy minute hits all alike; who is first changes. */
export async function interleave<Name extends string, Some extends Side, Result>(
  bench: Bench,
  sides: Readonly<Record<Name, Some>>,
  turn: (side: Some, round: number) => Promise<Result>,
): Promise<Record<Name, Result[]>> {
  const names = Object.keys(sides) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<Name, Result[]>;
  // The first round only compiles the code.
  for (let round = -1; round < bench.rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const result = await turn(sides[name], round);
      if (round >= 0) results[name].push(result);
    }
    bench.say(round < 0 ? "warmed up" : `round ${round + 1} of ${bench.rounds}`);
  }
  return results;
}

export async function withSides<Name extends string, Some extends Side, Result>(
  sides: Readonly<Record<Name, Some>>,
  body: (sides: Readonly<Record<Name, Some>>) => Promise<Result>,
): Promise<Result> {
  try {
    return await body(sides);
  } finally {
    await Promise.all(Object.values<Side>(sides).map((side) => side.stop()));
  }
}

export interface Compared {
  readonly ours: number;
  readonly floor: number;
  readonly ratio: number;
  readonly ratios: readonly [number, number];
}

/** Round by round, because a machine's speed changes from minute to minute and a ratio hardly does. */
export function compare(ours: readonly number[], floor: readonly number[]): Compared {
  const ratios = ours.map((value, round) => value / floor[round]!);
  return {
    ours: median(ours),
    floor: median(floor),
    ratio: median(ratios),
    ratios: [Math.min(...ratios), Math.max(...ratios)],
  };
}

export function rateRow(
  figure: string,
  ours: readonly Sample[],
  floor: readonly Sample[],
  share: number | null,
): Row {
  const rates = compare(
    ours.map(({ perSecond }) => perSecond),
    floor.map(({ perSecond }) => perSecond),
  );
  return {
    figure,
    unit: "jobs/s",
    ...rates,
    cpuUs: { ours: cpuOf(ours), floor: cpuOf(floor) },
    target: share === null ? null : atLeast(share, rates.ratio),
  };
}

export function cpuOf(samples: readonly Sample[]): CpuUs {
  const server = samples.flatMap(({ serverUsPerJob }) => serverUsPerJob ?? []);
  return {
    own: median(samples.map(({ cpuUsPerJob }) => cpuUsPerJob)),
    server: server.length === 0 ? null : median(server),
  };
}
