/** Three nodes on a database and a Redis, under load, while Redis is killed (S36, S66). */

import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { assertAllDone } from "../../support/cluster.ts";
import { more, nextLeader, underLoad } from "../../support/redis-load.ts";

describe("three nodes on a database and a Redis, under load", () => {
  it("kill -9 of Redis, which comes back empty: nothing is lost, and everything goes on", async (t) => {
    const { cluster, callers } = await underLoad(t);
    const { epoch } = await cluster.leader();
    await cluster.redis!.halt("kill");
    await systemClock.sleep(1_000);
    await cluster.redis!.relaunch();
    await nextLeader(cluster, epoch);
    await more(callers);
    await assertAllDone(cluster, callers);
  });
});
