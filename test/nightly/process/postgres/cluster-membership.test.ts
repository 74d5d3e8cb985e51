/** Nodes that fall silent and come back, or die while they drain. The rules are in test/contract/coordination, two of one name in controller/namesakes. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK, TestCluster } from "../../../support/cluster.ts";
import { suiteScope } from "../../../support/node-cleanup.ts";
import { eventually } from "../../../support/wait.ts";

describe("the members of a cluster", () => {
  const suite = suiteScope();
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.open(suite, { settings: QUICK });
    await cluster.startWithQueues("ada", "bob", "cyd");
  });

  /** Of the living node of that name, or of the last that had it. */
  async function rowOf(name: string): Promise<Record<string, unknown> | undefined> {
    const [row] = await cluster.sql(
      `SELECT status, recovered, incarnation FROM baton.node WHERE name = '${name}'
       ORDER BY status = 'dead', started_at DESC LIMIT 1`,
    );
    return row;
  }

  function becomes(name: string, status: string, withinMs = 10_000): Promise<unknown> {
    const look = async () => (await rowOf(name))?.["status"] === status;
    return eventually(`${name} to be ${status}`, look, withinMs);
  }

  /** Dead, and its work taken back. */
  function laidToRest(name: string): Promise<unknown> {
    return eventually(`${name} to be laid to rest`, async () => {
      const row = await rowOf(name);
      return row?.["status"] === "dead" && row["recovered"] === true;
    });
  }

  /** A job of its own queue is run by it. */
  async function works(name: string): Promise<void> {
    const { client } = [...cluster.nodes.values()][0]!;
    const { job_id } = await client.submit({ task: "work", queue: name, payload: { ms: 0 } });
    const { job } = await client.wait(job_id, { timeoutMs: 10_000 });
    assert.deepEqual([job.status, job.worker], ["completed", name]);
  }

  it("silent for longer than a death takes, it has its jobs run elsewhere, comes back, and nothing late is accepted", async (t) => {
    const bob = cluster.node("bob");
    const id = await cluster.begunBy("bob", { task: "work", payload: { ms: 700 } });
    bob.signal("SIGSTOP");
    const stoppedAt = systemClock.monotonic();
    const ada = cluster.node("ada");
    const again = await ada.jobWhen(id, ({ status, job_epoch }) => status === "completed" && job_epoch > 1);
    t.diagnostic(`done elsewhere after ${(systemClock.monotonic() - stoppedAt).toFixed(0)} ms`);
    assert.notEqual(again.worker, "bob");
    await becomes("bob", "dead");
    assert.deepEqual((await ada.client.job(id)).killed, ["bob"]);

    bob.signal("SIGCONT");
    const resumedAt = systemClock.monotonic();
    await becomes("bob", "active");
    t.diagnostic(`active again after ${(systemClock.monotonic() - resumedAt).toFixed(0)} ms`);
    const told = /a result was refused|the lease on running jobs is lost/;
    await eventually("it to notice what it lost", async () => told.test(bob.stdout));
    const job = await bob.client.job(id);
    assert.deepEqual(
      [job.status, job.worker, job.job_epoch, job.attempts, job.crashes],
      ["completed", again.worker, again.job_epoch, 2, 1],
    );
    assert.deepEqual((await bob.client.result(id)).result, { epoch: again.job_epoch });
    await works("bob");
  });

  it("killed while it drains, it is cleaned up and its jobs run elsewhere", async () => {
    const id = await cluster.begunBy("cyd", { task: "hold" });
    await cluster.node("ada").client.cluster.drain("cyd");
    await becomes("cyd", "draining");
    await cluster.kill("cyd");
    const ada = cluster.node("ada");
    const job = await ada.jobWhen(id, ({ status, job_epoch }) => status === "processing" && job_epoch > 1);
    assert.deepEqual([job.crashes, job.failures, job.killed], [1, 0, ["cyd"]]);
    await laidToRest("cyd");
    await ada.client.cancel(id);
    await eventually("everybody to know of it", async () => {
      const { nodes } = await ada.client.cluster.nodes();
      return nodes.find(({ name }) => name === "cyd")?.status === "dead";
    });
  });
});
