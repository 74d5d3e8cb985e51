/** What push dispatch has to get through beside single faults: a storm, and a database that was away (S81, S82). */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { assertNothingLost, Callers, QUICK, TestCluster } from "../../../support/cluster.ts";
import type { Scope } from "../../../support/node-cleanup.ts";

function open(t: Scope, settings: Readonly<Record<string, string>> = {}): Promise<TestCluster> {
  return TestCluster.open(t, {
    settings: { ...QUICK, DISPATCH__TIMEOUT: "1500ms", ...settings },
    redis: {},
    server: { durable: false },
  });
}

describe("nodes that push jobs over Redis", () => {
  it("keep their leader and lose nothing under ten times as many submits as they can run", async (t) => {
    // A machine that is busy with ten times the load may take seconds for a renewal; one that waited behind it would take longer.
    const leases = { LEADER__LEASE: "8s", NODE__DEAD_AFTER: "8s", WORKER__LEASE: "8s" };
    const cluster = await open(t, { ...leases, WORKER__CONCURRENCY: "4" });
    const [ada, bob] = await cluster.startAll("ada", "bob");
    const { epoch } = await cluster.leader();
    const until = systemClock.monotonic() + 15_000;
    let submitted = 0;
    let refused = 0;
    const storm = [ada!, bob!, ada!, bob!].map(async ({ client }) => {
      while (systemClock.monotonic() < until) {
        const jobs = Array.from({ length: 200 }, () => ({ task: "work", payload: { ms: 20 } }));
        try {
          const { length } = await client.submitMany(jobs);
          submitted += length;
        } catch (error) {
          assert.equal((error as { status?: number }).status, 429, String(error));
          refused++;
        }
        await systemClock.sleep(200);
      }
    });
    await Promise.all(storm);
    t.diagnostic(`${submitted} submitted, ${refused} requests refused`);
    assert.equal((await cluster.leader()).epoch, epoch, "renewals and heartbeats were not held up");
    const [row] = await cluster.sql("SELECT coalesce(sum(n), 0)::int AS n FROM baton.done");
    t.diagnostic(`${row!["n"] as number} were done meanwhile`);
    // An urgent one does not wait for the backlog, which is in the database and not on its way.
    const urgent = await ada!.client.submit({ task: "work", payload: { ms: 0 }, priority: 100 });
    await ada!.client.wait(urgent.job_id, { timeoutMs: 30_000 });
    const { queues } = await ada!.client.queues();
    const waiting = queues.reduce((sum, { counts }) => sum + counts.queued, 0);
    assert.ok(waiting > submitted / 2, `${waiting} of ${submitted} wait behind it`);
    const [all] = await cluster.sql("SELECT count(*)::int AS n FROM baton.job");
    assert.equal(all!["n"], submitted + 1);
  });

  it("go on by themselves when the database was away, without a storm of queries", async (t) => {
    const cluster = await open(t);
    await cluster.startAll("ada", "bob", "cyd");
    const callers = Callers.start(t, cluster);
    const queries = async (): Promise<number> => {
      const [row] = await cluster.sql(
        "SELECT (xact_commit + xact_rollback)::int AS n FROM pg_stat_database WHERE datname = current_database()",
      );
      return row!["n"] as number;
    };
    const rate = async (): Promise<number> => {
      const before = await queries();
      await systemClock.sleep(3_000);
      return ((await queries()) - before) / 3;
    };
    await systemClock.sleep(2_000);
    const normal = await rate();
    cluster.server.pause();
    await systemClock.sleep(5_000);
    cluster.server.resume();
    const afterwards = await rate();
    t.diagnostic(
      `${normal.toFixed(0)} transactions a second before, ${afterwards.toFixed(0)} after the outage`,
    );
    assert.ok(afterwards < 2 * normal + 200);
    await callers.stop();
    const ada = cluster.node("ada");
    await ada.idle(30_000);
    assertNothingLost(callers, await ada.allJobs());
  });
});
