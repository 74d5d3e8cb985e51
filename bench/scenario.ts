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
  readonly say: (text: string) => void;
  /** A plot for the report. */
  readonly chart: (name: string, chart: Chart) => void;
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

/** What a ratio has to reach. */
export type Goal = (ratio: number) => Target;

export const atLeast =
  (times: number): Goal =>
  (ratio) => ({ text: `≥ ${times} ×`, met: ratio >= times });

export const atMost =
  (times: number): Goal =>
  (ratio) => ({ text: `≤ ${times} ×`, met: ratio <= times });

/** A row beside a floor, or beside what `beside` names. */
export function besideRow(
  figure: string,
  unit: string,
  compared: Pick<Row, "ours" | "ratios"> & { readonly floor: number; readonly ratio?: number },
  { goal, ...more }: Pick<Row, "beside" | "cpuUs"> & { readonly goal?: Goal | null } = {},
): Row {
  const { ratio = compared.ours / compared.floor } = compared;
  return { figure, unit, ...compared, ratio, ...more, target: goal?.(ratio) ?? null };
}

/** A row without a floor. `valid`: whether what was measured went as it should. */
export function absolute(figure: string, unit: string, ours: number, most: number | null, valid = true): Row {
  const target = most === null ? null : { text: `≤ ${most} ${unit}`.trim(), met: valid && ours <= most };
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
export async function interleave<Name extends string, Some, Result>(
  { rounds, say }: Pick<Bench, "rounds" | "say">,
  sides: Readonly<Record<Name, Some>>,
  turn: (side: Some) => Promise<Result>,
): Promise<Record<Name, Result[]>> {
  const names = Object.keys(sides) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<Name, Result[]>;
  // The first round only compiles the code.
  for (let round = -1; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const result = await turn(sides[name]);
      if (round >= 0) results[name].push(result);
    }
    say(round < 0 ? "warmed up" : `round ${round + 1} of ${rounds}`);
  }
  return results;
}

export async function withSides<Sides extends Readonly<Record<string, Pick<Side, "stop">>>, Result>(
  sides: Sides,
  body: (sides: Sides) => Promise<Result>,
): Promise<Result> {
  try {
    return await body(sides);
  } finally {
    await Promise.all(Object.values(sides).map((side) => side.stop()));
  }
}

/** Round by round, because a machine's speed changes from minute to minute and a ratio hardly does. */
export function compare(ours: readonly number[], floor: readonly number[]) {
  const ratios = ours.map((value, round) => value / floor[round]!);
  return {
    ours: median(ours),
    floor: median(floor),
    ratio: median(ratios),
    ratios: [Math.min(...ratios), Math.max(...ratios)] as const,
  };
}

/** The same of one figure of each round. */
export function compareBy<Round>(
  ours: readonly Round[],
  floor: readonly Round[],
  figure: (round: Round) => number,
) {
  return compare(ours.map(figure), floor.map(figure));
}

export function rateRow(
  figure: string,
  ours: readonly Sample[],
  floor: readonly Sample[],
  more: Parameters<typeof besideRow>[3] = {},
  unit = "jobs/s",
): Row {
  const cpuUs = { ours: cpuOf(ours), floor: cpuOf(floor) };
  const rates = compareBy(ours, floor, ({ perSecond }) => perSecond);
  return besideRow(figure, unit, rates, { cpuUs, ...more });
}

export function cpuOf(samples: readonly Sample[]): CpuUs {
  const server = samples.flatMap(({ serverUsPerJob }) => serverUsPerJob ?? []);
  return {
    own: median(samples.map(({ cpuUsPerJob }) => cpuUsPerJob)),
    server: server.length === 0 ? null : median(server),
  };
}
