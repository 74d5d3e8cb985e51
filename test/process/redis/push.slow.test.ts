/** What push dispatch has to get through beside single faults: schedules whose leaders die, poison, a storm, a database that was away (S76, S77, S81, S82). */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { assertNothingLost, Callers, QUICK, TestCluster } from "../../support/cluster.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";
import { killLeaders } from "../../support/schedule-failover.ts";

function open(t: Scope, settings: Readonly<Record<string, string>> = {}): Promise<TestCluster> {
  return TestCluster.open(t, {
    settings: { ...QUICK, DISPATCH__TIMEOUT: "1500ms", ...settings },
    redis: {},
    server: { durable: false },
  });
}

async function pushedJobs(cluster: TestCluster): Promise<number> {
  const [row] = await cluster.sql("SELECT last_value::int AS n FROM baton.assignment_seq");
  return row!["n"] as number;
}

describe("nodes that push jobs over Redis", () => {
  it("fire each instant of their schedules once, while one leader after the other is killed", async (t) => {
    const cluster = await open(t, { LOG__LEVEL: "error" });
    await cluster.startAll("ada", "bob", "cyd");
    const { occurrences, lateMs, rerun } = await killLeaders(cluster, { kills: 6, chance: Math.random });
    t.diagnostic(
      `${occurrences} occurrences, ${rerun} jobs ran again, ${Math.max(...lateMs).toFixed(0)} ms late at most`,
    );
    assert.ok(occurrences > 30 && Math.max(...lateMs) < 10_000);
    assert.ok((await pushedJobs(cluster)) > 0, "they were dispatched");
  });

  it("put a job that kills whoever runs it into quarantine, with the list of those that it killed", async (t) => {
    const cluster = await open(t, { JOBS__CRASHES_MAX: "3" });
    await cluster.startAll("ada", "bob", "cyd", "dan");
    const { client } = cluster.node("ada");
    const quick = Array.from({ length: 30 }, () => ({ task: "work", payload: { ms: 5 } }));
    const submitted = await client.submitMany([...quick, { task: "kill-node" }, ...quick]);
    const poison = submitted[30]!.job_id;
    const alive = () => [...cluster.nodes].filter(([, { child }]) => child.signalCode === null);
    await eventually("three nodes to be dead", async () => alive().length === 1 || null, 30_000);
    const [name, node] = alive()[0]!;
    const dead = [...cluster.nodes.keys()].filter((each) => each !== name);
    const job = await node.jobWhen(poison, ({ status }) => status === "failed");
    assert.equal(job.error?.code, "QUARANTINED");
    assert.deepEqual([...job.killed].sort(), dead.sort());
    for (const each of dead) assert.ok(job.error.message.includes(each), job.error.message);
    await node.idle();
    const blamed = (await node.allJobs()).filter(({ status }) => status !== "completed");
    assert.deepEqual(
      blamed.map(({ job_id }) => job_id),
      [poison],
    );
  });

  it("keep their leader and lose nothing under ten times as many submits as they can run", async (t) => {
    const cluster = await open(t, { WORKER__CONCURRENCY: "4" });
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
    const [row] = await cluster.sql("SELECT count(*)::int AS n FROM baton.done");
    t.diagnostic(`${row!["n"] as number} were done meanwhile`);
    // An urgent one does not wait for the backlog, which is in the database and not on its way.
    const urgent = await ada!.client.submit({ task: "work", payload: { ms: 0 }, priority: 100 });
    const askedAt = systemClock.monotonic();
    await ada!.client.wait(urgent.job_id, { timeoutMs: 10_000 });
    const tookMs = systemClock.monotonic() - askedAt;
    t.diagnostic(`an urgent one took ${tookMs.toFixed(0)} ms`);
    assert.ok(tookMs < 3_000, `${tookMs} ms`);
    const [all] = await cluster.sql("SELECT count(*)::int AS n FROM baton.job");
    assert.equal(all!["n"], submitted + 1);
  });

  it("go on by themselves when the database was away, without a storm of queries", async (t) => {
    const cluster = await open(t);
    await cluster.startAll("ada", "bob", "cyd");
    const callers = new Callers(
      () => [...cluster.nodes.values()],
      () => ({ task: "work", payload: { ms: 5 } }),
    );
    atEnd(t, () => callers.abandon());
    callers.start(6, 20);
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
