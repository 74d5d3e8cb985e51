/** Leaders that are killed one after the other (S18). */

import assert from "node:assert/strict";
import { it } from "node:test";
import { TestCluster } from "../../../support/cluster.ts";
import { killLeaders } from "../../../support/schedule-failover.ts";

/** `npm run proof:schedules` does the same with 200 kills. */
it("every instant of a schedule fires once while eight leaders are killed", async (t) => {
  const cluster = await TestCluster.open(t, { settings: { LOG__LEVEL: "error" } });
  await cluster.startAll("ada", "bob", "cyd");
  const options = { kills: 8, chance: Math.random };
  const { occurrences, lateMs, leaderlessMs, rerun } = await killLeaders(cluster, options);
  t.diagnostic(`${occurrences} occurrences, ${rerun} jobs ran again`);
  t.diagnostic(`without a leader for ${leaderlessMs.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  t.diagnostic(`the latest occurrence was ${Math.max(...lateMs).toFixed(0)} ms late`);
  assert.ok(occurrences > 40);
  assert.ok(
    Math.max(...lateMs) < 10_000,
    "none waited for longer than a failover and a busy machine explain",
  );
});
