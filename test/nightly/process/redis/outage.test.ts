/** Nodes on a database and a Redis that is away for long (S39). Leaders that die or stand still, and FLUSHALL: nightly/process/redis/chaos.test.ts. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { eventually } from "../../../support/wait.ts";
import { nextLeader, openCluster } from "../../../support/redis-load.ts";

it("while Redis is away for long workers take jobs from the database by themselves, and are given them again afterwards", async (t) => {
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
  await nextLeader(cluster, epoch);
  await eventually("jobs to be dispatched", async () => helper.stdout.includes("jobs are dispatched again"));
  const { job_id } = await ada!.client.submit({ task: "hold" });
  await ada!.jobWhen(job_id, ({ status }) => status === "processing");
  const owned = await eventually("an owner", async () => {
    const [row] = await cluster.sql(
      "SELECT count(*)::int AS n FROM baton.assignment WHERE owner IS NOT NULL",
    );
    return row!["n"] === 1;
  });
  assert.ok(owned);
  await ada!.client.cancel(job_id);
});
