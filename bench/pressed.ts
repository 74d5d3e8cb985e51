/** Servers under the load of a generator, side by side: http, hop and peers. */

import type { Actor } from "./actor.ts";
import type { HttpSide } from "./http-side.ts";
import type { Generator, Load, Press } from "./load.ts";
import { besideRow, compareBy, type Row } from "./scenario.ts";
import { median } from "./statistics.ts";

/** What one turn gave: the load generator's view, and the CPU time of all servers, for each job if a request has several. */
export type Turn = Pick<Load, "perSecond" | "p50Ms"> & { readonly cpuUs: number };

export interface Pressed extends Omit<Press, "seconds"> {
  /** Those that work for these requests. */
  readonly servers: readonly Actor<HttpSide>[];
}

/** For a second. */
export async function press(load: Actor<Generator>, { servers, ...what }: Pressed): Promise<Turn> {
  await Promise.all(servers.map((server) => server.call("startMeter")));
  const { perSecond, p50Ms, requests } = await load.call("press", { ...what, seconds: 1 });
  const us = await Promise.all(servers.map((server) => server.call("readMeter")));
  const batch = what.batch ?? 1;
  const usedUs = us.reduce((sum, each) => sum + each, 0);
  return { perSecond: perSecond * batch, p50Ms, cpuUs: usedUs / requests / batch };
}

/** A row of rates, with the CPU time of each request. */
export function pressRow(
  figure: string,
  unit: string,
  ours: readonly Turn[],
  floor: readonly Turn[],
  more: Parameters<typeof besideRow>[3] = {},
): Row {
  const rates = compareBy(ours, floor, ({ perSecond }) => perSecond);
  return besideRow(figure, unit, rates, { cpuUs: cpuOf(ours, floor), ...more });
}

export function cpuOf(ours: readonly Turn[], floor: readonly Turn[]): NonNullable<Row["cpuUs"]> {
  const own = (turns: readonly Turn[]) => ({ own: median(turns.map(({ cpuUs }) => cpuUs)), server: null });
  return { ours: own(ours), floor: own(floor) };
}
