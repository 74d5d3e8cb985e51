/** Rebalancing: how many jobs each owner gives to others, and which of its assignments make up that number. */

import type { NodeName } from "../ids.ts";

export interface OwnerLoad {
  readonly name: NodeName;
  readonly jobs: number;
}

/** Smaller, and a few jobs wander about in an idle cluster. */
const DIFFERENCE_MIN = 10;
/** More, and choosing them blocks the event loop for too long. */
export const MOVE_MAX = 5_000;

/**
 * Half of the difference to the least loaded owner, if the most loaded one has `ratio` times its jobs. Only the most loaded one gives (of several the first by name), so
 * that no two give because of the same third.
 */
export function jobsToGive(self: OwnerLoad, others: readonly OwnerLoad[], ratio: number): number {
  if (others.length === 0 || others.some((other) => heavier(other, self))) return 0;
  const least = Math.min(...others.map(({ jobs }) => jobs));
  const difference = self.jobs - least;
  if (difference < DIFFERENCE_MIN || self.jobs < ratio * least) return 0;
  return Math.min(Math.floor(difference / 2), MOVE_MAX);
}

/** Whether it takes more in a move: an owner above the mean would be the next to give. */
export function takesMore(jobs: number, others: readonly number[]): boolean {
  const mean = others.reduce((sum, other) => sum + other, jobs) / (others.length + 1);
  return jobs <= mean;
}

function heavier(a: OwnerLoad, b: OwnerLoad): boolean {
  return a.jobs > b.jobs || (a.jobs === b.jobs && a.name < b.name);
}

/**
 * The indexes of those sizes that come nearest to the wanted sum without exceeding it.
 *
 * Sizes are few (assignments have at most some hundred jobs) and many are equal, so reachable sums are found size by
 * size: `via` is the size by which a sum was reached first.
 */
export function chooseSizes(sizes: readonly number[], wanted: number): number[] {
  const fitting = [...sizes.keys()].filter((place) => sizes[place]! > 0 && sizes[place]! <= wanted);
  const places = Map.groupBy(fitting, (place) => sizes[place]!);
  const via = new Int32Array(wanted + 1);
  let best = 0;
  // Large ones first: as few assignments as possible change hands.
  for (const size of [...places.keys()].sort((a, b) => b - a)) {
    best = Math.max(best, reach(via, size, places.get(size)!.length));
    if (best === wanted) break;
  }
  const chosen: number[] = [];
  for (let sum = best; sum > 0; sum -= via[sum]!) chosen.push(places.get(via[sum]!)!.pop()!);
  return chosen.sort((a, b) => a - b);
}

/** Adds the sums that `count` of this size reach; returns the highest new one. */
function reach(via: Int32Array, size: number, count: number): number {
  const used = new Int32Array(via.length);
  let highest = 0;
  for (let sum = size; sum < via.length; sum++) {
    const before = sum - size;
    if (via[sum] !== 0 || (before > 0 && via[before] === 0) || used[before]! >= count) continue;
    via[sum] = size;
    used[sum] = used[before]! + 1;
    highest = sum;
  }
  return highest;
}
