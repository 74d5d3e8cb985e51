/** Three nodes on a database and a Redis, under load, while Redis is killed (S36, S66). */

import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { assertAllDone, Callers } from "../../support/cluster.ts";
import { nextLeader, openCluster } from "../../support/redis-load.ts";

describe("three nodes on a database and a Redis, under load", () => {
  for (const mode of ["push", "pull"] as const)
    it(`kill -9 of Redis, which comes back empty: nothing is lost, and everything goes on (${mode})`, async (t) => {
      const cluster = await openCluster(t, mode);
      await cluster.startAll("ada", "bob", "cyd");
      const callers = Callers.start(t, cluster);
      await callers.more();
      const { epoch } = await cluster.leader();
      await cluster.redis!.halt("kill");
      await systemClock.sleep(1_000);
      await cluster.redis!.relaunch();
      await nextLeader(cluster, epoch);
      await callers.more();
      await assertAllDone(cluster, callers);
    });
});
