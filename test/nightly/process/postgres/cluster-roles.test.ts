/** A cluster that waits until it is complete, and whose nodes each do one thing. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK, roleOf, TestCluster } from "../../../support/cluster.ts";
import { eventually } from "../../../support/wait.ts";

it("a gateway, a worker and a scheduler make a cluster, once all three are there; functions wait for who runs them", async (t) => {
  const cluster = await TestCluster.open(t, {
    // Here nobody dies, and on a busy machine a second is soon over.
    settings: { ...QUICK, CLUSTER__MINIMUM_NODES: "3", NODE__DEAD_AFTER: "5s" },
  });
  const gate = await cluster.start("gate", { ROLES: "gateway" });
  const work = { task: "work", payload: { ms: 0 } };

  async function refusesChanges(gathered: string): Promise<void> {
    const { status, headers, body } = await gate.post("/jobs", work);
    assert.equal(status, 503);
    assert.ok(headers.has("retry-after"));
    const { error, message } = body as { error: string; message: string };
    assert.equal(error, "CLUSTER_FORMING");
    assert.match(message, new RegExp(gathered));
    const ready = await gate.call("/readyz");
    assert.equal(ready.status, 503);
    assert.equal((await gate.call("/livez")).status, 200);
    assert.equal((await gate.client.cluster.info()).formed, false);
  }
  await refusesChanges("1 of 3 nodes");
  const hand = await cluster.start("hand", { ROLES: "worker" });
  await eventually("the gateway to have seen the worker and counted it", async () => {
    const { joining_nodes } = await gate.client.cluster.info();
    const { body } = await gate.post("/jobs", work);
    return joining_nodes === 2 && (body as { message: string }).message.includes("2 of 3");
  });
  await refusesChanges("2 of 3 nodes");

  const shownAs = (status: string) =>
    eventually(`the worker to be ${status}`, async () => {
      const { nodes } = await gate.client.cluster.nodes();
      return nodes.find(({ name }) => name === "hand")?.status === status;
    });
  assert.equal((await gate.post("/cluster/nodes/hand/drain", {})).status, 202);
  await shownAs("draining");
  assert.equal((await gate.post("/cluster/nodes/hand/resume", {})).status, 202);
  await shownAs("joining");

  const head = await cluster.start("head", { ROLES: "scheduler" });
  const completeAt = systemClock.monotonic();
  await eventually("the gateway to be ready", async () => (await gate.call("/readyz")).status === 200);
  t.diagnostic(`ready ${(systemClock.monotonic() - completeAt).toFixed(0)} ms after the third was up`);
  assert.equal((await gate.client.cluster.info()).formed, true);
  const [led] = await cluster.sql("SELECT leader FROM baton.leader WHERE role = 'scheduler'");
  assert.equal(led!["leader"], "head", "the only one that may lead");
  assert.equal((await roleOf(head))?.role, "LEADER");

  const { job_id } = await gate.client.submit(work);
  const { job } = await gate.client.wait(job_id, { timeoutMs: 10_000 });
  assert.deepEqual([job.status, job.worker, job.owner], ["completed", "hand", "hand"]);

  for (const node of [hand, head]) {
    const { status, body } = await node.post("/jobs", work);
    assert.equal(status, 421);
    const { error, message } = body as { error: string; message: string };
    assert.equal(error, "NOT_A_GATEWAY");
    assert.ok(message.includes(gate.url), message);
    assert.equal((await node.call(`/jobs/${job_id}`)).status, 421, "nor does it answer questions about jobs");
    assert.equal((await node.call("/cluster")).status, 200, "those about the cluster it does");
  }

  await gate.client.putSchedule({ name: "tick", task: "tick", every_ms: 1_000 });
  const fired = await eventually("the schedule to fire", async () => {
    const { occurrences } = await gate.client.scheduleHistory("tick", 10);
    return occurrences[0]?.job_id ?? null;
  });
  assert.equal((await gate.client.wait(fired, { timeoutMs: 10_000 })).job.worker, "hand");
  await gate.client.removeSchedule("tick");

  const nobody = await gate.call("/functions/work?timeout_ms=800", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ms: 0 }),
  });
  assert.equal(nobody.status, 202, "a worker runs no functions");
  const { job_id: unanswered } = nobody.body as { job_id: string };
  assert.equal((await gate.client.job(unanswered)).worker, null);
  await cluster.start("func", { ROLES: "function" });
  const called = await gate.client.call("work", { ms: 0 }, { timeoutMs: 10_000 });
  assert.deepEqual(called.result, { epoch: 1 });
  assert.equal((await gate.client.job(called.job_id)).worker, "func");
  const many = await gate.client.submitMany(Array.from({ length: 50 }, () => work));
  await gate.idle();
  for (const one of many) assert.equal((await gate.client.job(one.job_id)).worker, "hand");

  await cluster.kill("hand");
  const after = await gate.client.submit(work);
  assert.equal(after.status, "queued", "a cluster that has formed goes on with fewer nodes");
});
