/** Three nodes on a database and a Redis, under load, while the leader and Redis are killed, stopped and emptied (S35, S36, S39, S59, S66). */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { assertNothingLost, Callers, QUICK, TestCluster } from "../../support/cluster.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/process-node.ts";

const NAMES = ["ada", "bob", "cyd"];

async function underLoad(t: Scope) {
  const settings = { ...QUICK, DISPATCH__TIMEOUT: "1500ms" };
  const cluster = await TestCluster.open(t, { settings, redis: {}, server: { durable: false } });
  await cluster.startAll(...NAMES);
  const callers = new Callers(
    () => [...cluster.nodes.values()],
    () => ({ task: "work", payload: { ms: 5 } }),
  );
  atEnd(t, () => callers.abandon());
  callers.start(6, 20);
  await more(callers);
  return { cluster, callers };
}

/** The load goes on, and is served. */
async function more(callers: Callers): Promise<void> {
  const before = callers.acknowledged.size;
  await eventually(
    "more work to be taken",
    async () => callers.acknowledged.size > before + 40 || null,
    20_000,
  );
}

async function audit(cluster: TestCluster, callers: Callers): Promise<void> {
  await callers.stop();
  const node = [...cluster.nodes.values()][0]!;
  await node.idle(30_000);
  assertNothingLost(callers, await node.allJobs());
  const [row] = await cluster.sql(
    `SELECT (SELECT count(*)::int FROM baton.live) AS live,
       (SELECT count(*)::int FROM (SELECT id FROM baton.done GROUP BY id HAVING count(*) > 1) AS twice) AS twice`,
  );
  assert.deepEqual(row, { live: 0, twice: 0 });
}

/** The next term, and that jobs submitted now are run under it. */
async function nextLeader(cluster: TestCluster, epoch: number, withinMs: number): Promise<number> {
  const before = systemClock.monotonic();
  const next = await eventually("a new leader", async () => {
    const found = await cluster.leader();
    return found.epoch > epoch ? found : null;
  });
  const tookMs = systemClock.monotonic() - before;
  assert.ok(tookMs < withinMs, `a new leader after ${tookMs} ms`);
  const { job_id } = await next.node.client.submit({ task: "work", payload: { ms: 0 } });
  const { job } = await next.node.client.wait(job_id, { timeoutMs: 10_000 });
  assert.equal(job.status, "completed");
  return tookMs;
}

describe("three nodes on a database and a Redis, under load", () => {
  it("kill -9 of the leader, which dispatches, owns and works: another one goes on, nothing is lost", async (t) => {
    const { cluster, callers } = await underLoad(t);
    const { name, node, epoch } = await cluster.leader();
    node.signal("SIGKILL");
    cluster.forget(name);
    const tookMs = await nextLeader(cluster, epoch, 2_000);
    t.diagnostic(`new leader after ${tookMs.toFixed(0)} ms`);
    await more(callers);
    await audit(cluster, callers);
  });

  it("SIGSTOP of the leader past its lease: another one leads, and the first changes nothing when it wakes", async (t) => {
    const { cluster, callers } = await underLoad(t);
    const { name, node, epoch } = await cluster.leader();
    node.signal("SIGSTOP");
    cluster.forget(name);
    await nextLeader(cluster, epoch, 5_000);
    await more(callers);
    node.signal("SIGCONT");
    await more(callers);
    await audit(cluster, callers);
  });

  it("FLUSHALL: whoever led steps down, the next epoch is higher, what was on its way is sent again", async (t) => {
    const { cluster, callers } = await underLoad(t);
    const { epoch } = await cluster.leader();
    await cluster.redis!.command("FLUSHALL");
    const tookMs = await nextLeader(cluster, epoch, 5_000);
    t.diagnostic(`new term after ${tookMs.toFixed(0)} ms`);
    await more(callers);
    await audit(cluster, callers);
  });

  it("Redis is away for long: workers take jobs from the database by themselves, and are given them again afterwards", async (t) => {
    const settings = { ...QUICK, DISPATCH__TIMEOUT: "1500ms" };
    const cluster = await TestCluster.open(t, { settings, redis: {}, server: { durable: false } });
    const nodes = await cluster.startAll("ada", "bob");
    const [ada] = nodes;
    const { epoch } = await cluster.leader();
    await cluster.redis!.halt("kill");
    const submitted = await ada!.client.submitMany(
      Array.from({ length: 20 }, () => ({ task: "work", payload: { ms: 5 } })),
    );
    for (const { job_id } of submitted) {
      const { job } = await ada!.client.wait(job_id, { timeoutMs: 15_000 });
      assert.deepEqual([job.status, job.attempts], ["completed", 1]);
    }
    // Either may have run all of them before the other noticed.
    const helper = await eventually(
      "a worker that helps itself",
      async () => nodes.find(({ stdout }) => stdout.includes("nobody dispatches jobs")) ?? null,
    );
    await cluster.redis!.relaunch();
    await nextLeader(cluster, epoch, 10_000);
    await eventually("jobs to be dispatched", async () =>
      helper.stdout.includes("jobs are dispatched again") ? true : null,
    );
    const { job_id } = await ada!.client.submit({ task: "hold" });
    await ada!.jobWhen(job_id, ({ status }) => status === "processing");
    const owned = await eventually("an owner", async () => {
      const [row] = await cluster.sql(
        "SELECT count(*)::int AS n FROM baton.assignment WHERE owner IS NOT NULL",
      );
      return row!["n"] === 1 || null;
    });
    assert.ok(owned);
    await ada!.client.cancel(job_id);
  });

  it("kill -9 of Redis, which comes back empty: nothing is lost, and everything goes on", async (t) => {
    const { cluster, callers } = await underLoad(t);
    const { epoch } = await cluster.leader();
    await cluster.redis!.halt("kill");
    await systemClock.sleep(1_000);
    await cluster.redis!.relaunch();
    await nextLeader(cluster, epoch, 10_000);
    await more(callers);
    await audit(cluster, callers);
  });
});
