/**
 * Whole nodes behind PgBouncer in transaction mode, with fewer sessions than a single node has connections. What becomes of a session:
 * test/unit/platform/drivers/postgres/pooler-check.
 */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK, TestCluster } from "../../../support/cluster.ts";
import { atEnd, suiteScope } from "../../../support/node-cleanup.ts";
import { noPgBouncer, PgBouncer } from "../../../support/pgbouncer.ts";
import type { NodeProcess } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";

const SESSIONS = 4;
const LEASE_MS = 3_000; // as in QUICK
/** What looks once a second, on a busy machine. */
const LOOK_MS = 3_000;

describe("nodes behind a pooler of transactions", { skip: noPgBouncer }, () => {
  const suite = suiteScope();
  let cluster: TestCluster;
  let url: string;

  before(async () => {
    cluster = await TestCluster.open(suite, { settings: QUICK });
    const pooler = await PgBouncer.start(cluster.url, { mode: "transaction", sessions: SESSIONS });
    atEnd(suite, () => pooler[Symbol.asyncDispose]());
    url = pooler.through(cluster.url);
    await Promise.all([start("ada"), start("bob")]);
    await cluster.leader();
  });

  const start = (name: string): Promise<NodeProcess> =>
    cluster.start(name, { STORE: url, WORKER__QUEUES: `default,${name}` });

  async function took(work: Promise<unknown>): Promise<number> {
    const from = systemClock.monotonic();
    await work;
    return systemClock.monotonic() - from;
  }

  it("run jobs, fire schedules, and tell each other of cancels and logs by looking", async (t) => {
    const [ada, bob] = [cluster.node("ada"), cluster.node("bob")];
    const { name: leader } = await cluster.leader();
    const standby = leader === "ada" ? bob : ada;
    // Told to the one that does not lead: the other finds it by looking.
    await standby.client.putSchedule({ name: "often", task: "tick", every_ms: 1_000 });

    const many = Array.from({ length: 200 }, (_, n) => ({
      task: "work",
      queue: n % 2 === 0 ? "ada" : "bob",
      payload: { ms: 0, flaky: n % 10 === 0 },
    }));
    await ada.client.submitMany(many);
    await eventually("all of them", async () =>
      (await ada.allJobs({ task: "work" })).every(({ status }) => status === "completed"),
    );

    const { job_id } = await ada.client.submit({ task: "hold", queue: "bob" });
    t.diagnostic(`noticed after ${(await took(bob.processing(job_id))).toFixed(0)} ms`);
    const { lines, ended: following } = ada.follow(job_id);
    const firstMs = await took(eventually("the first line", async () => lines.includes("holding")));
    const cancelMs = await took(ada.client.cancel(job_id, "seen enough").then(() => following));
    t.diagnostic(`the first line after ${firstMs.toFixed(0)} ms, cancelled after ${cancelMs.toFixed(0)} ms`);
    assert.deepEqual(lines, ["holding", "told: cancel", "end: cancelled"]);
    assert.ok(firstMs < LOOK_MS && cancelMs < LOOK_MS);

    await eventually("the schedule to fire", async () => {
      const ticks = await ada.allJobs({ task: "tick" });
      return ticks.some(({ status }) => status === "completed");
    });
  });

  it("survive a kill -9 of the leader: another leads when its lease has run out, and what it ran is run again", async (t) => {
    const leader = await cluster.leader();
    const { name } = leader;
    const [other] = cluster.others(name);
    const job = await cluster.begunBy(name, { task: "work", payload: { ms: 700 } });
    await cluster.kill(name);
    const { tookMs } = await cluster.successor(leader);
    t.diagnostic(`another leader after ${tookMs.toFixed(0)} ms with a lease of ${LEASE_MS} ms`);
    assert.ok(tookMs < LEASE_MS + 1_000, `led again after ${tookMs} ms`);
    const again = await other!.client.wait(job, { timeoutMs: 10_000 });
    assert.deepEqual([again.job.status, again.job.crashes], ["completed", 1]);
  });
});
