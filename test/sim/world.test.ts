/**
 * Whole clusters in a simulated world: ten seeds of each fabric in every run of the tests, the same each time. A seed that
 * fails is repeated with `BATON_SIM_SEED=<seed>`; `test/nightly/sim/world.test.ts` tries random ones.
 */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { BUGS } from "./bugs.ts";
import { runSeed, tally } from "./run-seed.ts";
import { WorldThread, type SeedReport } from "./world-thread.ts";

const given = process.env["BATON_SIM_SEED"];
const SEEDS = given === undefined ? Array.from({ length: 10 }, (_, at) => at + 1) : [Number(given)];
/** Faults between nodes, which a database does not have. */
const PEERS_ONLY: ReadonlySet<string> = new Set([
  "diskLosses",
  "duplicates",
  "forgottenVotes",
  "joins",
  "removals",
  "lateMessages",
]);
/** More than any planted bug needs; a bug that is found later is found too rarely. */
const BUG_SEEDS_MAX = 12;

const thread = new WorldThread();
after(() => thread.end());

for (const fabric of ["peers", "shared"] as const) {
  describe(`nodes ${fabric === "peers" ? "with a store each" : "on one database"}`, () => {
    const reports: SeedReport[] = [];
    for (const seed of SEEDS) {
      test(`keep their promises through the faults of seed ${seed}`, async () => {
        reports.push(await runSeed(thread, { seed, fabric }));
      });
    }

    test("met every fault and did work; otherwise nothing was proved", { skip: given !== undefined }, () => {
      const counts = tally(reports);
      const { acknowledged, occurrences } = counts;
      for (const [what, count] of Object.entries(counts))
        assert.ok(count > 0 || (fabric === "shared" && PEERS_ONLY.has(what)), `${what}: ${count}`);
      assert.ok(acknowledged >= 20 * SEEDS.length && occurrences >= 10 * SEEDS.length);
    });

    test("a seed repeats exactly", async () => {
      const [first] = reports;
      const second = await thread.run({ seed: SEEDS[0]!, fabric });
      assert.deepEqual(second.lines, first!.lines);
      assert.equal(second.digest, first!.digest);
    });
  });
}

describe("a simulated world finds a planted bug", { skip: given !== undefined }, () => {
  for (const [name, bug] of Object.entries(BUGS)) {
    test(name, async () => {
      const seen = new Set<string>();
      const others = Array.from({ length: BUG_SEEDS_MAX }, (_, at) => at + 1);
      for (const seed of new Set([bug.seed ?? 1, ...others])) {
        const { violations } = await thread.run({ seed, fabric: bug.fabric, bug: name });
        if (violations.some((each) => bug.found.test(each))) return;
        for (const each of violations) seen.add(each);
      }
      assert.fail(`not found in ${BUG_SEEDS_MAX} seeds; seen: ${[...seen].join("; ") || "nothing"}`);
    });
  }
});
