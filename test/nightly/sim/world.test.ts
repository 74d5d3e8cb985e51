/** Many seeds of simulated worlds, longer and with more nodes. Nightly runs draw the first seed and print it. */

import { randomInt } from "node:crypto";
import { after, test } from "node:test";
import { runSeed } from "../../sim/run-seed.ts";
import { WorldThread } from "../../sim/world-thread.ts";

const first = Number(process.env["BATON_TEST_SEED"] ?? randomInt(2 ** 31));
const SEEDS = 150;
const thread = new WorldThread();
after(() => thread.end());

for (const fabric of ["peers", "shared"] as const) {
  test(`${SEEDS} seeds of the fabric ${fabric} from ${first}`, async (t) => {
    t.diagnostic(`BATON_TEST_SEED=${first}`);
    for (let seed = first; seed < first + SEEDS; seed++) {
      const long = seed % 5 === 0 ? { faultsMs: 120_000, nodes: 5 } : {};
      await runSeed(thread, { seed, fabric, ...long });
    }
  });
}
