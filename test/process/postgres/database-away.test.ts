/** Nodes start, stop and run jobs while their database is away, and start with a URL that will never work. */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { TestCluster } from "../../support/cluster.ts";
import { logged, recovered, SHORT_LEASES } from "../../support/database-faults.ts";
import { dataDirectory, NodeProcess } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";

const DRAIN_MS = 1_000;
const WORKER_LEASE_MS = 3_000;
const SETTINGS = {
  ...SHORT_LEASES,
  WORKER__LEASE: `${WORKER_LEASE_MS}ms`,
  DRAIN__TIMEOUT: `${DRAIN_MS}ms`,
  DRAIN__CLEANUP: "400ms",
};

it("nodes stop, wait and start while their database is away, or was never there", async (t) => {
  const cluster = await TestCluster.open(t, { settings: SETTINGS, server: { durable: true } });
  await cluster.startAll("ada");
  const jobs: string[] = [];

  for (const [how, away, back] of [
    ["refuses", () => cluster.server.halt("fast"), () => cluster.server.relaunch()],
    ["is silent", async () => cluster.server.pause(), async () => cluster.server.resume()],
  ] as const) {
    await t.test(
      `a database that ${how}: work goes on to the end of its lease, and a stop is in time`,
      async (t) => {
        const [name, node] = [...cluster.nodes][0]!;
        const { job_id } = await node.client.submit({ task: "hold" });
        jobs.push(job_id);
        await node.processing(job_id);
        const goesAt = Date.now();
        await away();
        const [lost] = await eventually("the end of the lease", async () => {
          const lines = logged(node, /the lease on running jobs is lost/);
          return lines.length > 0 ? lines : null;
        });
        const lostAt = Date.parse(lost!.time);
        t.diagnostic(
          `${name} went on with its job for ${lostAt - goesAt} ms of a lease of ${WORKER_LEASE_MS} ms`,
        );
        // The last renewal that was answered may be as old as half of the lease on a busy machine.
        assert.ok(lostAt - goesAt > WORKER_LEASE_MS / 4, "it gave up before its lease did");
        assert.ok(lostAt - goesAt < 3 * WORKER_LEASE_MS, `it went on for ${lostAt - goesAt} ms`);
        const { code, tookMs } = await node.terminate();
        cluster.forget(name);
        t.diagnostic(`stopped within ${tookMs.toFixed(0)} ms`);
        assert.equal(code, 0, `a stop that is given up has another code: ${node.stderr}`);
        await back();
        await cluster.start(name === "ada" ? "bob" : "cyd");
        await recovered(cluster);
      },
    );
  }

  await t.test("what was cut off runs again, and lost no attempt", async () => {
    const cyd = cluster.node("cyd");
    for (const id of jobs) {
      const job = await cyd.jobWhen(id, ({ worker, status }) => worker === "cyd" && status === "processing");
      assert.equal(job.failures, 0);
      await cyd.client.cancel(id);
      await cyd.jobWhen(id, ({ status }) => status === "cancelled");
    }
    assert.equal((await cyd.terminate()).code, 0);
    cluster.forget("cyd");
  });

  await t.test(
    "a node that is started waits for its database, can be called off, and then works",
    async (t) => {
      await cluster.server.halt("fast");
      const data = await dataDirectory(t);
      const spawned = (name: string) =>
        NodeProcess.spawn(t, {
          data,
          name,
          settings: { ...SETTINGS, STORE: cluster.url, LOG__LEVEL: "info" },
        });
      const [dan, eve] = [spawned("dan"), spawned("eve")];
      for (const node of [dan, eve]) {
        await eventually("it to wait", async () => logged(node, /store is not available yet/).length || null);
      }
      const { code, tookMs } = await eve.terminate();
      t.diagnostic(`called off within ${tookMs.toFixed(0)} ms`);
      assert.equal(code, 0, eve.stderr);
      assert.doesNotMatch(eve.stderr, /error:/);
      await cluster.server.relaunch();
      await dan.listening();
      await dan.does({ task: "work", payload: { ms: 0 } });
      assert.equal((await dan.terminate()).code, 0);
    },
  );

  await t.test(
    "a URL that does not lead to the database is told in plain words, without its password",
    { concurrency: 2 },
    async (t) => {
      await askForPasswords(cluster, "carl", "right");
      const own = new URL(cluster.url);
      const at = (user: string, host: string, database: string) => `postgres://${user}@${host}${database}`;
      const { host, pathname } = own;
      const cases: Record<string, { url: string; code: number; tells: RegExp }> = {
        password: {
          url: at("carl:s3cr3t-wrong", host, pathname),
          code: 78,
          tells:
            /error: the database refused the connection: password authentication failed for user "carl".*check user, password and database/,
        },
        database: {
          url: at("carl:right", host, "/elsewhere"),
          code: 78,
          tells:
            /error: the database refused the connection: database "elsewhere" does not exist.*check user, password and database/,
        },
        host: {
          url: at("carl:s3cr3t-wrong", "no-such-host.invalid:5432", pathname),
          code: 1,
          tells:
            /error: the database is not available: .*no-such-host\.invalid.*\nhint: does the database run, .*--store/s,
        },
        port: {
          url: at("carl:s3cr3t-wrong", "127.0.0.1:1", pathname),
          code: 1,
          tells: /error: the database is not available: .*ECONNREFUSED.*\nhint: does the database run/s,
        },
      };
      const data = await dataDirectory(t);
      const all = Object.entries(cases).map(([name, { url, code, tells }]) =>
        t.test(`wrong ${name}`, async (t) => {
          const settings = { STORE: url, POSTGRES__WAIT: "300ms" };
          const before = systemClock.monotonic();
          const node = NodeProcess.spawn(t, { data, name, settings });
          const exit = await node.exited;
          t.diagnostic(`told after ${(systemClock.monotonic() - before).toFixed(0)} ms`);
          assert.equal(exit.code, code, node.stderr);
          assert.match(node.stderr, tells);
          assert.doesNotMatch(node.stderr + node.stdout, /s3cr3t/);
          assert.doesNotMatch(node.stderr, /\n\s+at /, "no stack");
        }),
      );
      await Promise.all(all);
    },
  );
});

async function askForPasswords(cluster: TestCluster, user: string, password: string): Promise<void> {
  await cluster.sql(`CREATE ROLE ${user} LOGIN PASSWORD '${password}'`);
  const [row] = await cluster.sql("SHOW hba_file");
  const file = row!["hba_file"] as string;
  await writeFile(
    file,
    `host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n${await readFile(file, "utf8")}`,
  );
  await cluster.sql("SELECT pg_reload_conf()");
}
