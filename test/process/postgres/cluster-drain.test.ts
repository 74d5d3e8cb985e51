/** Nodes that are asked to drain, or told to stop. */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { baton } from "../../support/process.ts";
import { LONG_LEASES, QUICK, roleOf, TestCluster } from "../../support/cluster.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { dataDirectory, type NodeProcess } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";

describe("a node of a cluster that leaves work to the others", () => {
  const suite = suiteScope();
  let cluster: TestCluster;

  before(async () => {
    // Nothing here waits for the end of a lease, and a busy machine must not end one.
    const settings = { ...QUICK, ...LONG_LEASES, DRAIN__TIMEOUT: "60s", DRAIN__CLEANUP: "1s" };
    cluster = await TestCluster.open(suite, { settings });
    await cluster.startWithQueues("ada", "bob");
  });

  it("asked to drain through another node: what runs ends there, nothing new begins, leadership moves; resumed, it works again", async (t) => {
    const leader = await cluster.leader();
    const { name, node } = leader;
    const [through] = cluster.others(name) as [NodeProcess];
    const until = join(await dataDirectory(t), "drained");
    const running = await cluster.begunBy(name, { task: "work", payload: { until } });
    const startedAt = systemClock.monotonic();
    const draining = baton(through, "node", "drain", name, "--timeout", "60s");
    const refused = await eventually("it to refuse new work", async () => {
      const answer = await node.post("/jobs", { task: "work", payload: { ms: 0 } });
      return answer.status === 503 ? answer : null;
    });
    assert.equal((refused.body as { error: string }).error, "DRAINING");
    assert.ok(refused.headers.has("retry-after"));
    const led = await cluster.successor(leader);
    t.diagnostic(
      `leadership had moved after ${(systemClock.monotonic() - startedAt).toFixed(0)} ms, with the command`,
    );
    assert.equal(led.epoch, leader.epoch + 1);
    assert.equal((await roleOf(node))?.role, "DRAINING");
    assert.equal((await node.call("/readyz")).status, 503);
    assert.equal((await node.call(`/jobs/${running}`)).status, 200, "it still answers");
    const meanwhile = await through.client.submitMany(
      Array.from({ length: 60 }, () => ({ task: "work", payload: { ms: 5 } })),
    );
    const { job_id: waiting } = await through.client.submit({
      task: "work",
      queue: name,
      payload: { ms: 0 },
    });

    await writeFile(until, "");
    const drained = await draining;
    assert.equal(drained.code, 0, drained.err);
    assert.match(drained.out, new RegExp(`${name} is drained`));
    const ended = await through.client.job(running);
    assert.deepEqual(
      [ended.status, ended.worker, ended.attempts, ended.interruptions],
      ["completed", name, 1, 0],
    );
    for (const { job_id } of meanwhile) {
      const { job } = await through.client.wait(job_id, { timeoutMs: 30_000 });
      assert.equal(job.status, "completed");
      assert.notEqual(job.worker, name);
    }
    assert.equal((await through.client.job(waiting)).status, "queued", "nobody else works on that queue");
    assert.equal(node.child.exitCode, null, "it stays");

    const resumed = await baton(through, "node", "resume", name);
    assert.equal(resumed.code, 0, resumed.err);
    const { job } = await through.client.wait(waiting, { timeoutMs: 30_000 });
    assert.deepEqual([job.status, job.worker], ["completed", name]);
    await eventually("it to be ready", async () => (await node.call("/readyz")).status === 200);
    assert.equal((await node.post("/jobs", { task: "work", payload: { ms: 0 } })).status, 200);
    const [row] = await cluster.sql(`SELECT status FROM baton.node WHERE name = '${name}'`);
    assert.equal(row!["status"], "active");
  });

  it("told to stop: what does not end in time is interrupted and runs elsewhere, with no attempt burnt", async () => {
    const node = await cluster.start("eve", {
      WORKER__QUEUES: "default,eve",
      DRAIN__TIMEOUT: "1200ms",
      DRAIN__CLEANUP: "600ms",
    });
    const long = await cluster.begunBy("eve", { task: "hold", max_attempts: 1 });
    const short = await cluster.begunBy("eve", { task: "work", payload: { ms: 300 }, max_attempts: 1 });
    const { code } = await node.terminate();
    cluster.forget("eve");
    assert.equal(code, 0, node.stderr);
    const [ada] = cluster.nodes.values();
    const job = await ada!.processing(long);
    assert.notEqual(job.worker, "eve");
    assert.deepEqual([job.failures, job.crashes, job.interruptions], [0, 0, 1]);
    await ada!.client.cancel(long);
    const ended = await ada!.client.job(short);
    assert.deepEqual([ended.status, ended.attempts, ended.worker], ["completed", 1, "eve"]);
    assert.deepEqual(await cluster.sql("SELECT status FROM baton.node WHERE name = 'eve'"), []);
  });
});
