/** Whole nodes behind PgBouncer in transaction mode, with fewer sessions than a single node has connections. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { QUICK, roleOf, TestCluster } from "../../support/cluster.ts";
import { atEnd, suiteScope } from "../../support/node-cleanup.ts";
import { inEverySession, noPgBouncer, PgBouncer, withClients } from "../../support/pgbouncer.ts";
import type { NodeProcess } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";

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

  it("say in the cluster's notes what is different, and what to do about it", async () => {
    for (const node of cluster.nodes.values()) {
      const { notes } = await node.client.cluster.info();
      assert.equal(notes.length, 1);
      assert.match(notes[0]!, /pooler.*lease runs out.*direct URL.*session mode/);
    }
    const locks = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'";
    const listens =
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'";
    assert.deepEqual(await cluster.sql(`${locks} UNION ${listens}`), []);
  });

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
    await eventually(
      "all of them",
      async () => (await ada.allJobs({ task: "work" })).every(({ status }) => status === "completed") || null,
    );

    const { job_id } = await ada.client.submit({ task: "hold", queue: "bob" });
    t.diagnostic(`noticed after ${(await took(bob.processing(job_id))).toFixed(0)} ms`);
    const lines: string[] = [];
    const following = (async () => {
      for await (const event of ada.client.followLogs(job_id)) {
        if (event.event === "log") lines.push(event.line.message);
        else if (event.event === "end") lines.push(`end: ${event.status}`);
      }
    })();
    const firstMs = await took(eventually("the first line", async () => lines.includes("holding") || null));
    const cancelMs = await took(ada.client.cancel(job_id, "seen enough").then(() => following));
    t.diagnostic(`the first line after ${firstMs.toFixed(0)} ms, cancelled after ${cancelMs.toFixed(0)} ms`);
    assert.deepEqual(lines, ["holding", "told: cancel", "end: cancelled"]);
    assert.ok(firstMs < LOOK_MS && cancelMs < LOOK_MS);

    await eventually("the schedule to fire", async () => {
      const ticks = await ada.allJobs({ task: "tick" });
      return ticks.some(({ status }) => status === "completed") || null;
    });
  });

  it("survive a kill -9 of the leader: another leads when its lease has run out, and what it ran is run again", async (t) => {
    const { name, node, epoch } = await cluster.leader();
    const [other] = [...cluster.nodes.values()].filter((each) => each !== node);
    const job = await cluster.begunBy(name, { task: "work", payload: { ms: 700 } });
    node.signal("SIGKILL");
    cluster.forget(name);
    const tookMs = await took(
      eventually("another leader", async () => {
        const role = await roleOf(other!);
        return (role?.role === "LEADER" && role.leader_epoch! > epoch) || null;
      }),
    );
    t.diagnostic(`another leader after ${tookMs.toFixed(0)} ms with a lease of ${LEASE_MS} ms`);
    assert.ok(tookMs < LEASE_MS + 1_000, `led again after ${tookMs} ms`);
    const again = await other!.client.wait(job, { timeoutMs: 10_000 });
    assert.deepEqual([again.job.status, again.job.crashes], ["completed", 1]);
    await start(name);
  });

  it("wait while others have taken all sessions of the pooler, lose nothing, and recover by themselves", async (t) => {
    const [ada, bob] = [cluster.node("ada"), cluster.node("bob")];
    const submits: Promise<{ status: number; body: { job_id?: string; error?: string } }>[] = [];
    await withClients(url, SESSIONS, async (hogs) => {
      await Promise.all(hogs.map((hog) => hog.query("BEGIN")));
      for (const node of [ada, bob]) submits.push(node.post("/jobs", { task: "work", payload: { ms: 0 } }));
      await systemClock.sleep(LEASE_MS + 300); // so that every lease has run out
      for (const node of [ada, bob]) assert.equal((await node.call("/livez")).status, 200);
      await Promise.all(hogs.map((hog) => hog.query("COMMIT")));
    });
    for (const { status, body } of await Promise.all(submits)) {
      t.diagnostic(`a submit was answered with ${status}`);
      assert.ok(
        status === 200 || (status === 503 && body.error === "STORE_UNAVAILABLE"),
        JSON.stringify(body),
      );
      if (status === 200) await ada.client.wait(body.job_id!, { timeoutMs: 10_000 });
    }
    await cluster.leader();
    const { job_id } = await bob.client.submit({ task: "work", queue: "ada", payload: { ms: 0 } });
    assert.equal((await bob.client.wait(job_id, { timeoutMs: 10_000 })).job.status, "completed");
  });

  it("have left nothing in the sessions that other programs get", async () => {
    const settings = [
      "enable_seqscan",
      "enable_hashjoin",
      "jit",
      "plan_cache_mode",
      "synchronous_commit",
      "statement_timeout",
    ];
    const sql = `SELECT ${settings.map((name) => `current_setting('${name}') AS ${name}`).join(", ")},
      (SELECT count(*)::int FROM pg_prepared_statements) AS prepared`;
    const [fresh] = await cluster.sql(sql);
    assert.equal(fresh!["enable_seqscan"], "on");
    for (const found of await inEverySession(url, SESSIONS, sql)) assert.deepEqual(found, fresh);
    for (const node of cluster.nodes.values()) {
      assert.equal((await node.terminate()).code, 0);
      assert.doesNotMatch(node.stderr, /warning/i);
    }
  });
});
