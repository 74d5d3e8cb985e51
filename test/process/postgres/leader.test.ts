/** Three nodes on one database, under load, while their leader is killed, stopped and told to go (S01, S02, S03). */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { assertNothingLost, Callers, roleOf, TestCluster } from "../../support/cluster.ts";
import { atEnd } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/process-node.ts";

const NAMES = ["ada", "bob", "cyd"];
/** Long enough that a takeover before half of it did not wait for its end. `npm run bench:failover` has the times. */
const LONG = { LEADER__LEASE: "30s", NODE__DEAD_AFTER: "30s", WORKER__LEASE: "60s" };
const LONG_MS = 30_000;
const SHORT = { LEADER__LEASE: "3s", LEADER__RENEW: "500ms", LEADER__MARGIN: "1s" };
const SHORT_MS = 3_000;
const work = () => ({ task: "work", payload: { ms: 5 } });

async function underLoad(t: Parameters<typeof TestCluster.open>[0], settings: Record<string, string>) {
  const cluster = await TestCluster.open(t, { settings });
  await cluster.startAll(...NAMES);
  const callers = new Callers(() => [...cluster.nodes.values()], work);
  atEnd(t, () => callers.abandon());
  callers.start(8, 20);
  // For the first seconds of a server everybody's session is young, and a missing one proves nothing.
  await eventually("the server to be old enough", async () => {
    const [row] = await cluster.sql("SELECT now() - pg_postmaster_start_time() > interval '5.5 s' AS old");
    return row!["old"] === true || null;
  });
  await eventually("some work to be done", async () => callers.acknowledged.size > 50 || null);
  return { cluster, callers };
}

/** The audit behind each fault: all done, all keys once, epochs only grew, nobody is left dead in the registry. */
async function audit(cluster: TestCluster, callers: Callers): Promise<void> {
  await callers.stop();
  const node = [...cluster.nodes.values()][0]!;
  await node.idle(20_000);
  const jobs = await node.allJobs();
  assertNothingLost(callers, jobs);
  const [row] = await cluster.sql(
    `SELECT (SELECT count(*)::int FROM baton.live) AS live,
       (SELECT count(*)::int FROM (SELECT id FROM baton.done GROUP BY id HAVING count(*) > 1) AS twice) AS twice,
       (SELECT count(*)::int FROM baton.node WHERE status = 'active') AS active`,
  );
  assert.deepEqual(row, { live: 0, twice: 0, active: cluster.nodes.size });
}

/** Until another node says that it leads; polled as fast as it answers. */
async function takeover(
  cluster: TestCluster,
  from: string,
  epoch: number,
): Promise<{ ms: number; name: string; epoch: number }> {
  const before = systemClock.monotonic();
  return eventually("a new leader", async () => {
    for (const [name, node] of cluster.nodes) {
      if (name === from) continue;
      const role = await roleOf(node);
      if (role?.role === "LEADER" && role.leader_epoch! > epoch) {
        return { ms: systemClock.monotonic() - before, name, epoch: role.leader_epoch! };
      }
    }
    return null;
  });
}

describe("three nodes on one database, under load", () => {
  it("kill -9 of the leader: another leads and its jobs run elsewhere long before a lease has ended, and nothing is lost", async (t) => {
    const { cluster, callers } = await underLoad(t, LONG);
    const { name, node, epoch } = await cluster.leader();
    // A job that is known to run on the leader when it dies: all other places are taken away from it.
    const held = await holdOn(cluster, name);
    const killedAt = systemClock.monotonic();
    node.signal("SIGKILL");
    cluster.forget(name);
    const next = await takeover(cluster, name, epoch);
    t.diagnostic(`new leader after ${next.ms.toFixed(0)} ms`);
    assert.equal(next.epoch, epoch + 1);
    assert.ok(next.ms < LONG_MS / 2, `a new leader after ${next.ms} ms`);
    const again = await eventually("the dead node's job to run again", async () => {
      const job = await cluster.node(next.name).client.job(held);
      return job.status === "processing" && job.job_epoch > 1 ? systemClock.monotonic() - killedAt : null;
    });
    t.diagnostic(`its job ran again after ${again.toFixed(0)} ms`);
    assert.ok(again < LONG_MS / 2, `run again after ${again} ms`);
    await cluster.node(next.name).client.cancel(held);
    await audit(cluster, callers);
  });

  it("SIGSTOP of the leader for twice its lease: replaced after the lease, and nothing it does later is accepted", async (t) => {
    const { cluster, callers } = await underLoad(t, SHORT);
    const { name, node, epoch } = await cluster.leader();
    node.signal("SIGSTOP");
    cluster.forget(name);
    const next = await takeover(cluster, name, epoch);
    t.diagnostic(`paused leader replaced after ${next.ms.toFixed(0)} ms`);
    assert.equal(next.epoch, epoch + 1);
    await systemClock.sleep(Math.max(0, 2 * SHORT_MS - next.ms));
    node.signal("SIGCONT");
    const resumedAt = systemClock.monotonic();
    await eventually("the old leader to stand by", async () => {
      const role = await roleOf(node);
      assert.notEqual(role?.role, "LEADER", "the old leader believes in its term");
      return role?.role === "STANDBY" && role.leader_epoch === next.epoch ? true : null;
    });
    t.diagnostic(`the old leader stood by after ${(systemClock.monotonic() - resumedAt).toFixed(0)} ms`);
    cluster.nodes.set(name, node);
    await eventually("it to be active again", async () => {
      const [row] = await cluster.sql(
        `SELECT status FROM baton.node WHERE name = '${name}' AND status <> 'dead'`,
      );
      return row?.["status"] === "active" || null;
    });
    await audit(cluster, callers);
    const [terms] = await cluster.sql("SELECT epoch::int FROM baton.term WHERE role = 'scheduler'");
    assert.equal(terms!["epoch"], next.epoch, "nobody else took a term");
  });

  it("SIGTERM of the leader: a successor at once, exit code 0, no attempt burnt", async (t) => {
    const { cluster, callers } = await underLoad(t, LONG);
    const { name, node, epoch } = await cluster.leader();
    const exited = node.terminate();
    cluster.forget(name);
    const next = await takeover(cluster, name, epoch);
    t.diagnostic(`successor after ${next.ms.toFixed(0)} ms`);
    assert.ok(next.ms < LONG_MS / 2, `a successor after ${next.ms} ms`);
    const { code, tookMs } = await exited;
    assert.equal(code, 0);
    t.diagnostic(`exit after ${tookMs.toFixed(0)} ms`);
    const rows = await cluster.sql(`SELECT status FROM baton.node WHERE name = '${name}'`);
    assert.deepEqual(rows, [], "it has deregistered");
    await audit(cluster, callers);
    const jobs = await cluster.node(next.name).allJobs();
    assert.ok(jobs.every(({ failures, crashes }) => failures === 0 && crashes === 0));
  });
});

/** Submits jobs that hold until one of them runs on that node; the others are cancelled. */
async function holdOn(cluster: TestCluster, name: string): Promise<string> {
  const { client } = cluster.node(name);
  for (;;) {
    const { job_id } = await client.submit({ task: "hold", payload: null });
    const job = await cluster.node(name).processing(job_id);
    if (job.worker === name) return job_id;
    await client.cancel(job_id);
  }
}
