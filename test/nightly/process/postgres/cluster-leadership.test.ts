/** Who leads when a clock is wrong (S08). A leader that is busy or stands still: test/unit/leadership/elector-faults, test/conformance. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK, TestCluster } from "../../../support/cluster.ts";
import { dataDirectory } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";
import { wallClocks } from "../../../support/wall-clock.ts";

const NAMES = ["ada", "bob", "cyd"];

async function epochOf(cluster: TestCluster): Promise<number> {
  const [row] = await cluster.sql("SELECT epoch::int FROM baton.term WHERE role = 'scheduler'");
  return row!["epoch"] as number;
}

it(
  "a wall clock that leaps by an hour, ahead and back, costs no leader its term and gives no standby one",
  { skip: process.platform !== "linux" && "the library that moves the clock is for Linux" },
  async (t) => {
    const clocks = wallClocks(await dataDirectory(t));
    if (!clocks) return t.skip("there is no C compiler for the library that moves the clock");
    // Nothing here waits for the end of a lease, and a busy machine must not end one.
    const settings = { ...QUICK, LEADER__LEASE: "20s", NODE__DEAD_AFTER: "20s" };
    const cluster = await TestCluster.open(t, { settings });
    const byName = new Map(NAMES.map((name) => [name, clocks(name)]));
    await Promise.all(NAMES.map((name) => cluster.start(name, {}, byName.get(name)!.command)));
    const { name: leader, epoch } = await cluster.leader();
    const standby = NAMES.find((name) => name !== leader)!;
    const leaseUntil = async (): Promise<unknown> => {
      const [row] = await cluster.sql("SELECT lease_until FROM baton.leader WHERE role = 'scheduler'");
      return row!["lease_until"];
    };
    for (const [who, ahead] of [
      [leader, 3_600],
      [leader, -3_600],
      [leader, 0],
      [standby, 3_600],
      [standby, -3_600],
    ] as const) {
      byName.get(who)!.set(ahead);
      const { fires } = await cluster.node(who).client.previewSchedule({ every_ms: 1_000, count: 1 });
      const off = (Date.parse(fires[0]!) - systemClock.now()) / 1_000 - ahead;
      assert.ok(Math.abs(off) < 60, `the clock of ${who} is set`);
      for (let renewals = 0; renewals < 3; renewals++) {
        const before = await leaseUntil();
        await eventually("a renewal", async () => (await leaseUntil()) !== before);
      }
      const now = await cluster.leader();
      assert.deepEqual([now.name, now.epoch], [leader, epoch], `${who} ${ahead} s`);
    }
    assert.equal(await epochOf(cluster), epoch);
  },
);
