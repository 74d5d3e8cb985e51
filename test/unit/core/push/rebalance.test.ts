import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { chooseSizes, jobsToGive, MOVE_MAX, takesMore } from "../../../../src/core/push/rebalance.ts";

const RATIO = 2;
const owner = (name: string, jobs: number) => ({ name: name as NodeName, jobs });

describe("who gives jobs away", () => {
  const cases: [string, number, number[], number][] = [
    ["half of the difference", 100, [20], 40],
    ["all have about the same", 52, [50, 48], 0],
    ["less than twice as many", 100, [51], 0],
    ["just twice as many", 100, [50], 25],
    ["somebody has nothing", 100, [0], 50],
    ["the least of several decides", 100, [90, 20], 40],
    ["not the one that has most", 90, [100, 20], 0],
    ["too few to matter", 9, [0], 0],
    ["nobody else", 100, [], 0],
    ["a great many", 1_000_000, [0], MOVE_MAX],
  ];
  for (const [title, jobs, others, expected] of cases) {
    it(title, () => {
      const peers = others.map((count, at) => owner(`n${at}`, count));
      assert.equal(jobsToGive(owner("m", jobs), peers, RATIO), expected);
    });
  }

  it("of two that have most, the first by name", () => {
    assert.equal(jobsToGive(owner("a", 80), [owner("b", 80), owner("c", 0)], RATIO), 40);
    assert.equal(jobsToGive(owner("b", 80), [owner("a", 80), owner("c", 0)], RATIO), 0);
  });

  it("of any number of owners, at most one at a time", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(200), { minLength: 1, maxLength: 8 }), (loads) => {
        const all = loads.map((jobs, at) => owner(`n${at}`, jobs));
        const givers = all.filter(
          (self) =>
            jobsToGive(
              self,
              all.filter((other) => other !== self),
              RATIO,
            ) > 0,
        );
        assert.ok(givers.length <= 1);
      }),
    );
  });

  it("those above the mean take none", () => {
    assert.equal(takesMore(20, [100]), true);
    assert.equal(takesMore(90, [100, 10]), false);
    assert.equal(takesMore(0, []), true);
  });
});

describe("which assignments make up a number of jobs", () => {
  it("takes the exact sum where a greedy choice would not", () => {
    const sizes = [6, 5, 5];
    assert.equal(sum(sizes, chooseSizes(sizes, 10)), 10);
  });

  it("takes nothing when each is too large, or nothing is wanted", () => {
    assert.deepEqual(chooseSizes([250, 250], 100), []);
    assert.deepEqual(chooseSizes([1, 2], 0), []);
  });

  it("comes as near as any choice can, and never exceeds it", () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 10 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 0, max: 60 }), (all, wanted) => {
        const chosen = chooseSizes(all, wanted);
        assert.equal(new Set(chosen).size, chosen.length);
        assert.equal(sum(all, chosen), best(all, wanted));
      }),
    );
  });

  it("finds a sum of ten thousand of them", () => {
    const sizes = Array.from({ length: 10_000 }, (_, at) => 1 + (at % 250));
    assert.equal(sum(sizes, chooseSizes(sizes, MOVE_MAX)), MOVE_MAX);
  });
});

function sum(sizes: readonly number[], places: readonly number[]): number {
  return places.reduce((total, place) => total + sizes[place]!, 0);
}

/** By trying all choices. */
function best(sizes: readonly number[], wanted: number): number {
  let sums = new Set([0]);
  for (const size of sizes) sums = new Set([...sums, ...[...sums].map((before) => before + size)]);
  return Math.max(...[...sums].filter((total) => total <= wanted));
}
