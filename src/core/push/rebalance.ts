/** Rebalancing: how many jobs each owner gives to others, and which of its assignments make up that number. */

import type { NodeName } from "../ids.ts";

export interface OwnerLoad {
  readonly name: NodeName;
  readonly jobs: number;
}

export interface RebalanceRules {
  /** How many times the least loaded owner's jobs the most loaded one must have. */
  readonly ratio: number;
}

/** Smaller, and a few jobs wander about in a cluster that has hardly any. */
const DIFFERENCE_MIN = 10;
/** What one move takes at most. More, and choosing it keeps the event loop busy for longer than an event may wait. */
export const MOVE_MAX = 5_000;

/**
 * How many jobs this owner gives away: half of what it has more than the least loaded one. Only the most loaded one gives, of
 * several the first by name, so that no two give at the same time because of the same third.
 */
export function jobsToGive(self: OwnerLoad, others: readonly OwnerLoad[], { ratio }: RebalanceRules): number {
  if (others.length === 0 || others.some((other) => heavier(other, self))) return 0;
  const least = Math.min(...others.map(({ jobs }) => jobs));
  const difference = self.jobs - least;
  if (difference < DIFFERENCE_MIN || self.jobs < ratio * least) return 0;
  return Math.min(Math.floor(difference / 2), MOVE_MAX);
}

/** Whether an owner with so many jobs takes more in a move: one that is above the mean would be the next to give them away. */
export function takesMore(jobs: number, others: readonly number[]): boolean {
  const mean = others.reduce((sum, other) => sum + other, jobs) / (others.length + 1);
  return jobs <= mean;
}

function heavier(a: OwnerLoad, b: OwnerLoad): boolean {
  return a.jobs > b.jobs || (a.jobs === b.jobs && a.name < b.name);
}

/**
 * Which of these sizes come nearest to the sum that is wanted without exceeding it; answers their places.
 *
 * Sizes are few (assignments have at most some hundred jobs) and many assignments have the same, so the sums that can be
 * reached are found size by size: `via` is the size by which a sum was reached first.
 */
export function chooseSizes(sizes: readonly number[], wanted: number): number[] {
  const places = new Map<number, number[]>();
  for (const [place, size] of sizes.entries()) {
    if (size <= 0 || size > wanted) continue;
    const same = places.get(size);
    if (same) same.push(place);
    else places.set(size, [place]);
  }
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

/** Adds the sums that so many of this size reach; answers with the highest new one. */
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
