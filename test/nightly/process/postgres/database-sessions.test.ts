/** The database works, and its sessions do not: all of a node are ended, or all are taken (S24, S30). Of the leader alone (S23): test/contract/coordination/postgres-leadership. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../../../src/platform/clock.ts";
import { TestCluster } from "../../../support/cluster.ts";
import {
  assertCalm,
  audit,
  logged,
  recovered,
  SHORT_LEASES,
  underLoad,
} from "../../../support/database-faults.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { dataDirectory } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";

const endSessionsOf = (name: string) =>
  `SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'baton/%/${name}'`;

it("a cluster lives through the loss of its sessions", async (t) => {
  const cluster = await TestCluster.open(t, {
    settings: { ...SHORT_LEASES, WORKER__LEASE: "2s", POSTGRES__CONNECTIONS: "4" },
    server: { durable: true },
  });
  await cluster.startAll("ada", "bob");

  await t.test(
    "all sessions of a node are ended for seconds: it backs off, crashes never, and is back at once",
    async (t) => {
      const callers = await underLoad(t, cluster);
      const { name, node } = await cluster.leader();
      const logBefore = node.stdout.length;
      const pids = new Set<unknown>();
      const until = systemClock.monotonic() + 2_000;
      for (let rounds = 0; systemClock.monotonic() < until; rounds++) {
        for (const { pid } of await cluster.sql(endSessionsOf(name))) pids.add(pid);
      }
      t.diagnostic(`${pids.size} sessions were ended, ${node.stdout.length - logBefore} bytes of log`);
      assert.ok(pids.size > 20, "it goes on trying");
      assert.ok(pids.size < 800, `${pids.size} sessions in two seconds are no back-off`);
      assertCalm(node);
      const from = systemClock.monotonic();
      await recovered(cluster);
      await node.does({ task: "work", payload: { ms: 0 } });
      t.diagnostic(`it worked again after ${(systemClock.monotonic() - from).toFixed(0)} ms`);
      await audit(cluster, callers);
      const lines = node.stdout.slice(logBefore).split("\n").length;
      assert.ok(lines < 600, `${lines} lines of log about one cause`);
    },
  );

  await t.test("the pool is used up by statements that hang: leases and heartbeats go on", async (t) => {
    const ledger = join(await dataDirectory(t), "runs");
    const startedAt = new Date().toISOString();
    const { epoch, node, name } = await cluster.leader();
    const running = await node.begins({ task: "work", payload: { ms: 3_500, ledger } });
    const other = await session(t, cluster);
    await other.query("BEGIN; LOCK TABLE baton.log IN ACCESS EXCLUSIVE MODE");
    // Each waits for the lock with a connection of the pool, or for such a connection.
    const reads = Array.from({ length: 40 }, () => node.call(`/jobs/${running}/logs`));
    await eventually("the pool to be used up", async () => {
      const [row] = await cluster.sql(
        `SELECT count(*)::int AS n FROM pg_locks JOIN pg_stat_activity USING (pid)
         WHERE NOT granted AND relation = 'baton.log'::regclass AND application_name LIKE 'baton/%/${name}'`,
      );
      return row!["n"] === 4;
    });
    // Longer than the leases of leader and worker.
    await systemClock.sleep(2_800);
    const after = await cluster.leader();
    assert.deepEqual([after.name, after.epoch], [name, epoch], "the leader did not change");
    const [row] = await cluster.sql(
      `SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - last_heartbeat)::int AS age
       FROM baton.node WHERE name = '${name}' AND status = 'active'`,
    );
    t.diagnostic(`the last heartbeat is ${String(row?.["age"])} ms old`);
    assert.ok((row!["age"] as number) < 1_000);
    await other.query("ROLLBACK");
    const statuses = new Set((await Promise.all(reads)).map(({ status }) => status));
    assert.deepEqual(
      [...statuses].filter((status) => status !== 200 && status !== 503),
      [],
    );
    const job = await node.jobWhen(running, ({ status }) => status === "completed");
    assert.deepEqual([job.attempts, job.crashes], [1, 0], "its lease was renewed all the time");
    assert.equal((await readFile(ledger, "utf8")).trim().split("\n").length, 1);
    assert.deepEqual(
      logged(node, /lease on running jobs is lost.*/).filter(({ time }) => time > startedAt),
      [],
    );
  });
});

/** A session of somebody else, closed with the test. */
async function session(t: TestContext, cluster: TestCluster): Promise<Client> {
  const client = new Client({ connectionString: cluster.url });
  client.on("error", () => {});
  await client.connect();
  atEnd(t, () => client.end());
  return client;
}
