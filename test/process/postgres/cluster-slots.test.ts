/** Slots of workers in other processes: what happens if hints are lost, or the worker dies before it has heard of its job. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { LONG_LEASES, QUICK, TestCluster } from "../../support/cluster.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";

const RUN = { task: "work", queue: "slots", payload: { ms: 0 } };

describe("a job that is submitted alone at another node than its worker's", () => {
  const suite = suiteScope();
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.open(suite, { settings: { ...QUICK, ...LONG_LEASES } });
    await cluster.start("ada", { WORKER__QUEUES: "default" });
    await cluster.start("bob", { WORKER__QUEUES: "default,slots" });
    await cluster.leader();
    // The kind is new: the slot of bob comes to know it.
    const { job_id } = await cluster.node("ada").client.submit(RUN);
    await cluster.node("ada").client.wait(job_id, { timeoutMs: 30_000 });
  });

  /** The slot of bob, which no other worker could be given jobs of that queue. */
  async function slotOpen(): Promise<void> {
    await eventually("bob's slot to be open for the queue", async () => {
      const [slot] = await cluster.sql(
        `SELECT FROM baton.slot s JOIN baton.lease e ON e.id = s.lease JOIN baton.kind k ON k.id = ANY (s.kinds)
         WHERE k.queue = 'slots' AND e.name LIKE 'bob/%'`,
      );
      return slot !== undefined;
    });
  }

  it("starts without a claim", async () => {
    const ada = cluster.node("ada");
    for (let tries = 1; ; tries++) {
      await slotOpen();
      const { job_id } = await ada.client.submit(RUN);
      const { job } = await ada.client.wait(job_id, { timeoutMs: 30_000 });
      assert.deepEqual([job.status, job.attempts, job.worker], ["completed", 1, "bob"]);
      if (job.started_at === job.created_at) break;
      assert.ok(tries < 20, "no job was given to the slot");
    }
  });

  it("starts within about a second if its hint is lost", async () => {
    const ada = cluster.node("ada");
    for (let round = 0; round < 3; round++) {
      await slotOpen();
      const deaf = cluster.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()",
      );
      const ids = [];
      for (let n = 0; n < 5; n++) ids.push((await ada.client.submit(RUN)).job_id);
      await deaf;
      for (const id of ids) {
        const { job } = await ada.client.wait(id, { timeoutMs: 30_000 });
        assert.deepEqual([job.status, job.attempts, job.job_epoch], ["completed", 1, 1]);
        assert.ok(Date.parse(job.started_at!) - Date.parse(job.created_at) < 5_000);
      }
    }
  });

  it("runs elsewhere if its worker is killed before it has heard of it, at the cost of a crash", async () => {
    const [ada, bob] = [cluster.node("ada"), cluster.node("bob")];
    await slotOpen();
    bob.signal("SIGSTOP");
    const { job_id } = await ada.client.submit(RUN);
    const given = await ada.client.job(job_id);
    assert.deepEqual([given.status, given.worker, given.job_epoch], ["processing", "bob", 1]);
    await cluster.start("cyd", { WORKER__QUEUES: "default,slots" });
    await cluster.kill("bob");
    const { job } = await ada.client.wait(job_id, { timeoutMs: 30_000 });
    assert.deepEqual(
      [job.status, job.worker, job.attempts, job.crashes, job.failures, job.killed],
      ["completed", "cyd", 2, 1, 0, ["bob"]],
    );
  });
});
