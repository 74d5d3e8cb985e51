/** Three nodes on one database, under load, while their leader is told to go and killed (S01, S02). A leader that stands still (S03): test/conformance. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { assertAllDone, Callers, TestCluster } from "../../support/cluster.ts";
import { suiteScope, type Scope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";

const NAMES = ["ada", "bob", "cyd"];
/** Long enough that a takeover before half of it did not wait for its end. `npm run bench:failover` has the times. */
const LONG = { LEADER__LEASE: "30s", NODE__DEAD_AFTER: "30s", WORKER__LEASE: "60s" };
const LONG_MS = 30_000;

async function underLoad(t: Scope) {
  const cluster = await TestCluster.open(t, { settings: LONG });
  await cluster.startAll(...NAMES);
  const callers = Callers.start(t, cluster, { count: 8 });
  // For the first seconds of a server everybody's session is young, and a missing one proves nothing.
  await eventually("the server to be old enough", async () => {
    const [row] = await cluster.sql("SELECT now() - pg_postmaster_start_time() > interval '5.5 s' AS old");
    return row!["old"] === true;
  });
  await callers.more();
  return { cluster, callers };
}

describe("three nodes on one database, under load", () => {
  const suite = suiteScope();
  let cluster: TestCluster;
  let callers: Callers;

  before(async () => {
    ({ cluster, callers } = await underLoad(suite));
  });

  it("SIGTERM of the leader: a successor at once, exit code 0, no attempt burnt", async (t) => {
    const leader = await cluster.leader();
    const { name, node } = leader;
    const exited = node.terminate();
    cluster.forget(name);
    const next = await cluster.successor(leader);
    t.diagnostic(`successor after ${next.tookMs.toFixed(0)} ms`);
    assert.ok(next.tookMs < LONG_MS / 2, `a successor after ${next.tookMs} ms`);
    const { code, tookMs } = await exited;
    assert.equal(code, 0);
    t.diagnostic(`exit after ${tookMs.toFixed(0)} ms`);
    const rows = await cluster.sql(`SELECT status FROM baton.node WHERE name = '${name}'`);
    assert.deepEqual(rows, [], "it has deregistered");
    const jobs = await cluster.node(next.name).allJobs();
    assert.ok(jobs.every(({ failures, crashes }) => failures === 0 && crashes === 0));
  });

  it("kill -9 of the leader: another leads and its jobs run elsewhere long before a lease has ended, and nothing is lost", async (t) => {
    const leader = await cluster.leader();
    const { name, epoch } = leader;
    // A job that is known to run on the leader when it dies: all other places are taken away from it.
    const held = await cluster.begunBy(name, { task: "hold" });
    const killedAt = systemClock.monotonic();
    await cluster.kill(name);
    const next = await cluster.successor(leader);
    t.diagnostic(`new leader after ${next.tookMs.toFixed(0)} ms`);
    assert.equal(next.epoch, epoch + 1);
    assert.ok(next.tookMs < LONG_MS / 2, `a new leader after ${next.tookMs} ms`);
    const again = await eventually("the dead node's job to run again", async () => {
      const job = await cluster.node(next.name).client.job(held);
      return job.status === "processing" && job.job_epoch > 1 ? systemClock.monotonic() - killedAt : null;
    });
    t.diagnostic(`its job ran again after ${again.toFixed(0)} ms`);
    assert.ok(again < LONG_MS / 2, `run again after ${again} ms`);
    await cluster.node(next.name).client.cancel(held);
    await assertAllDone(cluster, callers);
    const [row] = await cluster.sql("SELECT count(*)::int AS n FROM baton.node WHERE status = 'active'");
    assert.equal(row!["n"], cluster.nodes.size, "nobody is left dead in the registry");
  });
});
