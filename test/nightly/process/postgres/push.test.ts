/**
 * Nodes that push jobs without a Redis, over the database's own channels: each of them may lead, owns events of jobs and runs
 * jobs (S59, S65, S78, S79).
 */

import assert from "node:assert/strict";
import { afterEach, before, describe, it } from "node:test";
import type { JobBody } from "../../../../src/client/baton-client.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK, TestCluster } from "../../../support/cluster.ts";
import { suiteScope } from "../../../support/node-cleanup.ts";
import type { NodeProcess } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";

/** A node that dies is missed by its connection, long before this; a busy machine must not end a lease. */
const LONG_MS = 30_000;
const LONG = { LEADER__LEASE: "30s", NODE__DEAD_AFTER: "30s", WORKER__LEASE: "30s" };
const SETTINGS = {
  ...QUICK,
  ...LONG,
  DISPATCH__MODE: "push",
  DISPATCH__TIMEOUT: "1500ms",
  REBALANCE__ENABLED: "false",
  HANDOFF__ACK_TIMEOUT: "500ms",
  WORKER__CONCURRENCY: "40",
  DRAIN__TIMEOUT: "30s",
  DRAIN__CLEANUP: "1s",
};

/** Of 120 places: more than two nodes have, so that each of the three runs some. */
const MOST = 100;

describe("three nodes that push jobs over the database alone", () => {
  const suite = suiteScope();
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.open(suite, { settings: SETTINGS });
    await cluster.startAll("ada", "bob", "cyd");
  });

  afterEach(async () => {
    const node = anybody();
    for (const { job_id, status } of await node.allJobs())
      if (status === "processing" || status === "queued") await node.client.cancel(job_id).catch(() => null); // it may have ended
    await node.idle();
  });

  function anybody(but?: string): NodeProcess {
    return [...cluster.nodes].find(([name]) => name !== but)![1];
  }

  async function submit(count: number, payload: unknown, task = "work"): Promise<string[]> {
    const node = anybody();
    const jobs = Array.from({ length: count }, () => ({ task, payload, max_attempts: 1 }));
    return (await node.client.submitMany(jobs)).map(({ job_id }) => job_id);
  }

  /** Each runs, and a node owns it. */
  function running(ids: readonly string[], node = anybody()): Promise<JobBody[]> {
    return Promise.all(
      ids.map((id) =>
        node.jobWhen(id, ({ status, owner_epoch }) => status === "processing" && owner_epoch > 0),
      ),
    );
  }

  async function ownedRows(): Promise<number> {
    const [row] = await cluster.sql("SELECT count(*)::int AS n FROM baton.assignment");
    return row!["n"] as number;
  }

  it("all of them own and run jobs, and nothing is left behind in the tables", async () => {
    const ids = await submit(MOST, { ms: 700 });
    const jobs = await running(ids);
    assert.equal(new Set(jobs.map(({ worker }) => worker)).size, 3, "all of them run jobs");
    for (const id of ids) {
      const { job } = await anybody().client.wait(id, { timeoutMs: 10_000 });
      assert.deepEqual([job.status, job.attempts, job.job_epoch], ["completed", 1, 1]);
    }
    await eventually("assignments to be forgotten", async () => (await ownedRows()) === 0);
    const [left] = await cluster.sql(
      "SELECT (SELECT count(*)::int FROM baton.live) AS live, (SELECT count(*)::int FROM baton.message) AS messages",
    );
    assert.deepEqual(left, { live: 0, messages: 0 });
  });

  it("kill -9 of a node that leads, owns and runs jobs: others own and run them, with one crash", async (t) => {
    const { name } = await cluster.leader();
    const through = anybody(name);
    const ids = await submit(70, {}, "hold");
    const jobs = await running(ids);
    const killedAt = systemClock.monotonic();
    await cluster.kill(name);
    for (const before of jobs) {
      const ran = before.worker === name;
      const after = await through.jobWhen(
        before.job_id,
        ({ status, owner, job_epoch }) =>
          status === "processing" && owner !== name && job_epoch === (ran ? 3 : 1),
      );
      assert.deepEqual(
        [after.crashes, after.attempts, after.worker !== name],
        [ran ? 1 : 0, ran ? 2 : 1, true],
      );
    }
    const tookMs = systemClock.monotonic() - killedAt;
    t.diagnostic(`all were owned and ran ${tookMs.toFixed(0)} ms later`);
    assert.ok(tookMs < LONG_MS, `${tookMs} ms`);
    await cluster.start(name);
  });
});
