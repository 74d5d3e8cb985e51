/** Nodes that die at awkward moments, that are taken for dead by mistake, that share a name, or that fall silent and come back. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { QUICK, TestCluster } from "../../support/cluster.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";

const DEAD_AFTER_MS = 1_500;

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
    const look = async () => ((await rowOf(name))?.["status"] === status ? true : null);
    return eventually(`${name} to be ${status}`, look, withinMs);
  }

  /** Dead, and its work taken back. */
  function laidToRest(name: string): Promise<unknown> {
    return eventually(`${name} to be laid to rest`, async () => {
      const row = await rowOf(name);
      return row?.["status"] === "dead" && row["recovered"] === true ? true : null;
    });
  }

  /** A job of its own queue is run by it. */
  async function works(name: string): Promise<void> {
    const { client } = [...cluster.nodes.values()][0]!;
    const { job_id } = await client.submit({ task: "work", queue: name, payload: { ms: 0 } });
    const { job } = await client.wait(job_id, { timeoutMs: 10_000 });
    assert.deepEqual([job.status, job.worker], ["completed", name]);
  }

  it("taken for dead by mistake, a node is back with its next heartbeat, and works", async () => {
    const { client } = cluster.node("ada");
    const { job_id } = await client.submit({ task: "work", queue: "bob", payload: { ms: 600 } });
    await cluster.node("ada").processing(job_id);
    const life = (await rowOf("bob"))!["incarnation"];
    await cluster.sql("UPDATE baton.node SET status = 'dead', recovered = false WHERE name = 'bob'");
    await becomes("bob", "active");
    assert.equal((await rowOf("bob"))!["incarnation"], life, "the same life");
    const { job, result } = await client.wait(job_id, { timeoutMs: 10_000 });
    assert.deepEqual([job.status, result], ["completed", { epoch: job.job_epoch }], "one accepted result");
    await works("bob");
    const rows = await cluster.sql("SELECT name FROM baton.node WHERE status = 'active' ORDER BY name");
    assert.deepEqual(
      rows.map((row) => row["name"]),
      ["ada", "bob", "cyd"],
    );
  });

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
    await eventually("it to notice what it lost", async () => told.test(bob.stdout) || null);
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
    await cluster.node("cyd").kill();
    cluster.forget("cyd");
    const ada = cluster.node("ada");
    const job = await ada.jobWhen(id, ({ status, job_epoch }) => status === "processing" && job_epoch > 1);
    assert.deepEqual([job.crashes, job.failures, job.killed], [1, 0, ["cyd"]]);
    await laidToRest("cyd");
    await ada.client.cancel(id);
    await eventually("everybody to know of it", async () => {
      const { nodes } = await ada.client.cluster.nodes();
      return nodes.find(({ name }) => name === "cyd")?.status === "dead" || null;
    });
  });

  it("killed while it joins, it is cleaned up", async () => {
    const waiting = await cluster.start("dan", { CLUSTER__MINIMUM_NODES: "50" });
    await becomes("dan", "joining");
    await waiting.kill();
    cluster.forget("dan");
    await laidToRest("dan");
  });

  it("of two with one name the second is refused while the first lives, with words that help", async () => {
    const second = cluster.spawn("bob");
    const { code } = await second.exited;
    assert.equal(code, 1);
    assert.match(second.stderr, /another living node is called bob/);
    assert.match(second.stderr, /on host \S+, version \S+, running since \d{4}-/);
    assert.match(second.stderr, /--name/);
    assert.match(second.stdout, /waiting for its end/);
    await works("bob");
    const rows = await cluster.sql("SELECT status FROM baton.node WHERE name = 'bob'");
    assert.deepEqual(rows, [{ status: "active" }], "the first was never touched");
  });

  it("and the second is admitted at once when the first is killed", async (t) => {
    const second = cluster.spawn("bob", { WORKER__QUEUES: "default,bob" });
    await eventually("it to wait", async () => second.stdout.includes("waiting for its end") || null);
    const first = (await rowOf("bob"))!;
    await cluster.node("bob").kill();
    const killedAt = systemClock.monotonic();
    const life = first["incarnation"] as string;
    await eventually("it to be in the list", async () =>
      (await rowOf("bob"))!["incarnation"] !== life ? true : null,
    );
    const tookMs = systemClock.monotonic() - killedAt;
    t.diagnostic(`admitted after ${tookMs.toFixed(0)} ms`);
    assert.ok(tookMs < DEAD_AFTER_MS, "it waited for no missed heartbeat");
    await second.listening();
    cluster.nodes.set("bob", second);
    await works("bob");
  });
});
