/** Three nodes on a database and a Redis, while the leader is stopped and Redis is emptied or away for long (S35, S39, S59). */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually } from "../../support/wait.ts";
import { audit, more, nextLeader, openCluster, underLoad } from "../../support/redis-load.ts";

describe("three nodes on a database and a Redis", () => {
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
    const cluster = await openCluster(t);
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
      async () => nodes.find(({ stdout }) => stdout.includes("no leader dispatches jobs")) ?? null,
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
});
