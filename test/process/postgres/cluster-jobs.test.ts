/** Jobs of a cluster: any node answers for them, and what becomes of them when the node that runs them dies, hangs or is poisoned. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { LONG_LEASES, QUICK, TestCluster } from "../../support/cluster.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { dataDirectory } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";
import { column } from "../../support/columns.ts";

describe("any node answers for any job", () => {
  const suite = suiteScope();
  let cluster: TestCluster;
  let deaf: string;
  let longer: string;

  before(async () => {
    const settings = {
      ...QUICK,
      ...LONG_LEASES,
      WORKER__LEASE: "8s",
      JOBS__CRASHES_MAX: "3",
      // A worker gives its handlers so long to end that the leader loses its patience first.
      JOBS__OVERDUE_GRACE: "1s",
      DRAIN__TIMEOUT: "90s",
      DRAIN__CLEANUP: "60s",
    };
    cluster = await TestCluster.open(suite, { settings });
    await cluster.startWithQueues("ada", "bob", "cyd");
    // Both are looked at later: the leader looks for overdue jobs every five seconds.
    const stuck = { task: "work", queue: "bob", payload: { ms: 9_000 }, timeout_ms: 300, max_attempts: 1 };
    deaf = (await cluster.node("ada").client.submit(stuck)).job_id;
    const long = { task: "work", queue: "bob", payload: { ms: 9_000 } };
    longer = (await cluster.node("ada").client.submit(long)).job_id;
  });

  it("submitted at one that is gone, run by another, asked for at a third: state, result, logs as they come, lists", async () => {
    const ada = cluster.node("ada");
    const [bob, cyd] = [cluster.node("bob"), cluster.node("cyd")];
    const { job_id: quick } = await ada.client.submit({ task: "work", queue: "cyd", payload: { ms: 0 } });
    const { job_id: long } = await ada.client.submit({ task: "hold", queue: "cyd" });
    const { lines, ended: following } = bob.follow(long);
    await eventually("the first line", async () => lines.includes("holding"));
    await ada.client.wait(quick, { timeoutMs: 30_000 });
    await cluster.kill("ada");

    for (const node of [bob, cyd]) {
      const job = await node.client.job(quick);
      assert.deepEqual([job.status, job.worker, job.job_id.startsWith("ada-")], ["completed", "cyd", true]);
      assert.deepEqual((await node.client.result(quick)).result, { epoch: 1 });
      assert.equal((await node.client.job(long)).status, "processing");
      assert.deepEqual(await node.lines(long), ["holding"]);
    }
    await bob.client.cancel(long, "seen enough");
    await following;
    assert.deepEqual(lines, ["holding", "told: cancel", "end: cancelled"], "as they came, and once");
    assert.equal((await cyd.client.job(long)).error?.message, "seen enough");

    await bob.client.retry(long);
    assert.deepEqual([(await cyd.processing(long)).worker], ["cyd"]);
    await cyd.client.cancel(long);
    await bob.jobWhen(long, ({ status }) => status === "cancelled");
    await bob.client.remove(long);
    for (const node of [bob, cyd]) {
      assert.equal((await node.call(`/jobs/${long}`)).status, 404);
      assert.equal((await node.call(`/jobs/${quick}`)).status, 200);
    }
    await cluster.start("ada", { WORKER__QUEUES: "default,ada" });
  });

  it("a job longer than its lease is renewed, and taken for nobody's", async () => {
    const { job } = await cluster.node("ada").client.wait(longer, { timeoutMs: 30_000 });
    assert.deepEqual([job.status, job.attempts, job.crashes, job.worker], ["completed", 1, 0, "bob"]);
  });

  it("a handler that is deaf to its timeout has its job taken away by the leader, and what it says later is refused", async (t) => {
    const [ada, bob] = [cluster.node("ada"), cluster.node("bob")];
    const taken = await ada.jobWhen(deaf, ({ status }) => status === "failed");
    t.diagnostic(
      `taken after ${Date.parse(taken.finished_at!) - Date.parse(taken.started_at!)} ms of running`,
    );
    assert.deepEqual([taken.error?.code, taken.failures, taken.crashes], ["TIMEOUT", 1, 0]);
    assert.match(taken.error!.message, /timeout of 300 ms, and its worker bob did not end it/);
    const refused = new RegExp(`"jobId":"${deaf}".*a result was refused`);
    await eventually("the handler to come to its end", async () => refused.test(bob.stdout));
    assert.deepEqual(await ada.client.job(deaf), taken, "nothing has changed by it");
  });

  it("killed between an effect and its result a job runs again, under the same id and a higher epoch; killed behind it, not", async (t) => {
    const directory = await dataDirectory(t);
    const [ledger, until] = [join(directory, "ledger"), join(directory, "killed")];
    const ada = cluster.node("ada");
    const { job_id: before } = await ada.client.submit({
      task: "work",
      queue: "cyd",
      payload: { ms: 0, ledger },
    });
    await ada.client.wait(before, { timeoutMs: 30_000 });
    const between = await cluster.begunBy("cyd", { task: "work", payload: { until, ledger } });
    await eventually("the effect", () => readFileSync(ledger, "utf8").includes(between));
    await cluster.kill("cyd");
    writeFileSync(until, "");
    const { job, result } = await ada.client.wait(between, { timeoutMs: 30_000 });
    assert.deepEqual([job.status, job.attempts, job.crashes, job.killed], ["completed", 2, 1, ["cyd"]]);
    assert.ok(job.job_epoch > 1);
    assert.deepEqual(result, { epoch: job.job_epoch });
    const finished = await ada.client.job(before);
    assert.deepEqual([finished.status, finished.attempts, finished.crashes], ["completed", 1, 0]);
    assert.deepEqual((await ada.client.result(before)).result, { epoch: 1 });
    const effects = readFileSync(ledger, "utf8").trim().split("\n");
    assert.deepEqual(
      effects.filter((line) => line.startsWith(before) || line.startsWith(between)),
      [`${before}:1`, `${between}:1`, `${between}:${job.job_epoch}`],
    );
  });

  it("a job that kills whoever runs it costs three nodes and ends in quarantine; the rest goes on", async () => {
    await Promise.all(["cyd", "dan"].map((name) => cluster.start(name)));
    await cluster.leader();
    const { client } = cluster.node("ada");
    const quick = Array.from({ length: 30 }, () => ({ task: "work", payload: { ms: 5 } }));
    const submitted = await client.submitMany([...quick, { task: "kill-node" }, ...quick]);
    const poison = submitted[30]!.job_id;
    const alive = () => [...cluster.nodes].filter(([, { child }]) => child.signalCode === null);
    await eventually("three nodes to be dead", async () => alive().length === 1, 60_000);
    const [name, node] = alive()[0]!;
    const dead = [...cluster.nodes.keys()].filter((each) => each !== name);
    const job = await node.jobWhen(poison, ({ status }) => status === "failed");
    assert.equal(job.error?.code, "QUARANTINED");
    assert.deepEqual([...job.killed].sort(), dead.sort());
    for (const each of dead) assert.ok(job.error.message.includes(each), job.error.message);
    await node.idle();
    const jobs = await node.allJobs();
    const ids = new Set(submitted.map(({ job_id }) => job_id));
    const blamed = jobs.filter(({ job_id, status }) => ids.has(job_id) && status !== "completed");
    assert.deepEqual(column(blamed, "job_id"), [poison]);
    await node.does({ task: "work", payload: { ms: 0 } });
    assert.equal((await node.call("/readyz")).status, 200);
  });
});
