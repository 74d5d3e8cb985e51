/** Who leads when the leader is busy or has a wrong clock (S05, S07, S08). A leader that stands still: test/conformance, `npm run proof:leadership`. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK, roleOf, TestCluster } from "../../../support/cluster.ts";
import { assertNothingStale, COMMIT_ORDER_SETTINGS, watchGrants } from "../../../support/commit-order.ts";
import { dataDirectory } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";
import { wallClocks } from "../../../support/wall-clock.ts";

const NAMES = ["ada", "bob", "cyd"];
const LEASE_MS = 2_000;

async function epochOf(cluster: TestCluster): Promise<number> {
  const [row] = await cluster.sql("SELECT epoch::int FROM baton.term WHERE role = 'scheduler'");
  return row!["epoch"] as number;
}

/** From its first answer on it says that it stands by; it never says again that it leads under its old term. */
async function standsBy(cluster: TestCluster, name: string): Promise<number> {
  const from = systemClock.monotonic();
  await eventually(`${name} to stand by`, async () => {
    const role = await roleOf(cluster.node(name));
    assert.notEqual(role?.role, "LEADER", `${name} believes in its old term`);
    return role?.role === "STANDBY";
  });
  return systemClock.monotonic() - from;
}

it("a leader whose event loop a job keeps busy for two leases loses its term, and nothing it writes later is accepted", async (t) => {
  const cluster = await TestCluster.open(t, {
    settings: { ...QUICK, LEADER__LEASE: "2s" },
    server: { durable: false, settings: COMMIT_ORDER_SETTINGS },
  });
  await cluster.startWithQueues(...NAMES);
  await watchGrants(cluster);
  // Something is fired every 50 ms: wherever the leader is held up, a write is not far.
  const ada = cluster.node("ada").client;
  for (let n = 0; n < 20; n++) {
    await ada.putSchedule({ name: `often-${n}`, task: "tick", every_ms: 1_000, missed: "run_all" });
    await systemClock.sleep(50);
  }
  const leader = await cluster.leader();
  const { name } = leader;
  const other = [...cluster.nodes.keys()].find((each) => each !== name)!;
  const { client } = cluster.node(other);
  const { job_id } = await client.submit({ task: "block", queue: name, payload: { ms: 2 * LEASE_MS } });
  await cluster.node(other).processing(job_id);
  const next = await cluster.successor(leader);
  t.diagnostic(`replaced after ${next.tookMs.toFixed(0)} ms`);
  await client.wait(job_id, { timeoutMs: 10_000 });
  await standsBy(cluster, name);
  await systemClock.sleep(300);
  await assertNothingStale(cluster);
  const job = await client.job(job_id);
  t.diagnostic(`the job took ${job.attempts} runs`);
  // Evicted from the database, its node may have looked dead: the job then ran again, and the first result was refused.
  assert.deepEqual([job.status, job.failures, job.worker], ["completed", 0, name]);
  assert.deepEqual((await client.result(job_id)).result, { epoch: job.job_epoch });
  assert.equal(await epochOf(cluster), next.epoch, "nobody else took a term");
});

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
