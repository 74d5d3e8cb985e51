/** A change of `dispatch.mode` node by node: some push and some pull, and whoever leads may be either. No job waits for the end of it. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertNothingLost, Callers, QUICK, TestCluster } from "../../../support/cluster.ts";
import { eventually } from "../../../support/wait.ts";

const PUSH = { DISPATCH__MODE: "push" };
const PULL = { DISPATCH__MODE: "pull" };
const SETTINGS = { ...QUICK, DISPATCH__TIMEOUT: "1500ms" };

describe("nodes that push beside nodes that pull", () => {
  it("a leader that pulls: a worker that waits for dispatches helps itself, until somebody pushes", async (t) => {
    const cluster = await TestCluster.open(t, { settings: SETTINGS });
    const ada = await cluster.start("ada", { ...PULL, ROLES: "gateway,scheduler" });
    await cluster.leader();
    const wim = await cluster.start("wim", { ...PUSH, ROLES: "gateway,worker" });
    const job = await ada.does({ task: "work", payload: { ms: 0 } });
    assert.deepEqual([job.status, job.worker], ["completed", "wim"]);
    assert.match(wim.stdout, /no leader dispatches jobs/);

    await ada.terminate();
    cluster.forget("ada");
    await cluster.start("bob", { ...PUSH, ROLES: "gateway,scheduler" });
    await cluster.leader();
    await eventually("jobs to be dispatched", async () => wim.stdout.includes("dispatched again"));
    const held = await wim.client.submit({ task: "hold" });
    const owned = await wim.jobWhen(
      held.job_id,
      ({ status, owner }) => status === "processing" && owner === "bob",
    );
    assert.equal(owned.worker, "wim");
    await wim.client.cancel(held.job_id);
    await wim.idle();
  });

  it("all nodes go from pull to push and back, one after the other, under load: nothing is lost or stands still", async (t) => {
    const cluster = await TestCluster.open(t, { settings: SETTINGS });
    const names = ["ada", "bob", "cyd"];
    for (const name of names) await cluster.start(name, PULL);
    await cluster.leader();
    const callers = Callers.start(t, cluster, { count: 4 });
    for (const mode of [PUSH, PULL]) {
      for (const name of names) {
        const old = cluster.node(name);
        cluster.forget(name);
        assert.equal((await old.terminate()).code, 0, old.stderr);
        const node = await cluster.start(name, mode);
        await node.does({ task: "work", payload: { ms: 0 } });
      }
    }
    await callers.stop();
    const ada = cluster.node("ada");
    await ada.idle();
    assertNothingLost(callers, await ada.allJobs());
    t.diagnostic(`${callers.acknowledged.size} jobs`);
  });
});
