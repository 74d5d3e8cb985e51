/** How a cluster begins: cold, after a crash of all of it, half-way, and beside another version (S17, S18, S107). */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../../src/platform/clock.ts";
import { QUICK, roleOf, TestCluster } from "../../support/cluster.ts";
import { atEnd, suiteScope } from "../../support/node-cleanup.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { eventually, type NodeProcess } from "../../support/process-node.ts";

const MIGRATIONS = "SELECT version, compatible_from FROM baton.migration ORDER BY version";

describe("a cluster begins", () => {
  const suite = suiteScope();
  let server: PostgresServer;

  before(async () => {
    server = await PostgresServer.start({ durable: true, settings: ["max_connections=400"] });
    atEnd(suite, () => server.stop());
  });

  it("cold, with twenty nodes at once on an empty database: the tables are made once, one leads, all work", async (t) => {
    const cluster = await TestCluster.open(t, {
      on: server,
      settings: { POSTGRES__CONNECTIONS: "2", LOG__LEVEL: "warn", WORKER__CONCURRENCY: "2" },
    });
    // The database itself tells who made what, in which transaction.
    await cluster.sql(`
      CREATE TABLE public.made (tag text, object text, by text, transaction xid8);
      CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.made SELECT tg_tag, object_identity, current_setting('application_name'), pg_current_xact_id()
        FROM pg_event_trigger_ddl_commands() WHERE schema_name = 'baton' AND command_tag = 'CREATE TABLE';
      END $$;
      CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION public.note()`);
    const names = Array.from({ length: 20 }, (_, n) => `node-${n}`);
    const startedAt = systemClock.monotonic();
    await Promise.all(names.map((name) => cluster.start(name, { WORKER__QUEUES: `default,${name}` })));
    const upAt = systemClock.monotonic();
    const { epoch } = await cluster.leader(3_000);
    t.diagnostic(
      `20 nodes up after ${(upAt - startedAt).toFixed(0)} ms, led ${(systemClock.monotonic() - upAt).toFixed(0)} ms later`,
    );
    assert.equal(epoch, 1, "nobody else was elected on the way");
    const [made] = await cluster.sql(`
      SELECT count(*)::int AS tables, count(DISTINCT object)::int AS different,
        count(DISTINCT transaction)::int AS transactions,
        (SELECT count(*)::int FROM baton.migration) AS migrations FROM public.made`);
    assert.equal(made!["tables"], made!["different"], "every table was made once");
    assert.ok((made!["transactions"] as number) <= (made!["migrations"] as number), JSON.stringify(made));
    const [first] = cluster.nodes.values();
    await first!.client.submitMany(names.map((queue) => ({ task: "work", queue, payload: { ms: 0 } })));
    await first!.idle();
    const jobs = await first!.allJobs();
    assert.deepEqual(new Set(jobs.map(({ worker }) => worker)), new Set(names), "every node works");
    const { active_nodes, total_nodes } = await first!.client.cluster.info();
    assert.deepEqual([active_nodes, total_nodes], [20, 20]);
    const roles = await Promise.all([...cluster.nodes.values()].map((node) => roleOf(node, 2_000)));
    assert.deepEqual(
      new Set(roles.map((role) => role?.leader_epoch)),
      new Set([1]),
      "and all know who leads",
    );
    // Ended here, for those that come next.
    await Promise.all([...cluster.nodes.values()].map((node) => node.kill()));
  });

  it("again after all of it was killed, in any order: epochs go on, jobs are intact", async (t) => {
    const cluster = await TestCluster.open(t, { on: server, settings: QUICK });
    const names = ["ada", "bob", "cyd"];
    await cluster.startAll(...names);
    const ada = cluster.node("ada");
    const held = await cluster.begunBy("bob", { task: "hold" });
    const { job_id: done } = await ada.client.submit({ task: "work", payload: { ms: 0 } });
    await ada.client.wait(done, { timeoutMs: 10_000 });
    const { job_id: later } = await ada.client.submit({ task: "work", payload: { ms: 0 }, delay_ms: 6_000 });
    await ada.client.pauseQueue("paused");
    const { job_id: waiting } = await ada.client.submit({
      task: "work",
      queue: "paused",
      payload: { ms: 0 },
    });
    const { epoch } = await cluster.leader();
    const running = [...cluster.nodes.values()];
    for (const node of running) node.signal("SIGKILL");
    await Promise.all(running.map((node) => node.exited));
    cluster.nodes.clear();

    const order = names.toSorted(() => Math.random() - 0.5);
    t.diagnostic(`started again as ${order.join(", ")}`);
    const startedAt = systemClock.monotonic();
    const starts = order.map(async (name, n) => {
      await systemClock.sleep(n * 150);
      return cluster.start(name);
    });
    await Promise.race(starts);
    const upAt = systemClock.monotonic();
    const next = await cluster.leader();
    const ledAt = systemClock.monotonic();
    t.diagnostic(
      `first up after ${(upAt - startedAt).toFixed(0)} ms, led ${(ledAt - upAt).toFixed(0)} ms later`,
    );
    assert.ok(ledAt - upAt < 1_500 + 3_000);
    await Promise.all(starts);
    assert.ok(next.epoch > epoch, "epochs are never used again");
    const node = cluster.node("bob");
    const again = await node.jobWhen(
      held,
      ({ status, job_epoch }) => status === "processing" && job_epoch > 1,
    );
    assert.deepEqual([again.crashes, again.killed], [1, ["bob"]]);
    assert.deepEqual((await node.client.result(done)).result, { epoch: 1 });
    assert.equal((await node.client.job(waiting)).status, "queued");
    await node.client.resumeQueue("paused");
    assert.equal((await node.client.wait(waiting, { timeoutMs: 10_000 })).job.attempts, 1);
    assert.equal((await node.client.wait(later, { timeoutMs: 15_000 })).job.attempts, 1);
    await Promise.all([...cluster.nodes.values()].map((each) => each.kill()));
  });

  it("though those who made its tables were killed half-way", async (t) => {
    const cluster = await TestCluster.open(t, {
      on: server,
      settings: { ...QUICK, POSTGRES__CONNECTIONS: "2" },
    });
    // Every step takes a while, so that there is a half-way.
    await cluster.sql(`
      CREATE FUNCTION public.slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.02); END $$;
      CREATE EVENT TRIGGER slow ON ddl_command_end EXECUTE FUNCTION public.slow()`);
    const watch = new Client({ connectionString: cluster.url });
    await watch.connect();
    atEnd(t, () => watch.end());
    // Schemas of their own, so that each of them is a first start.
    const schemas = Array.from({ length: 5 }, (_, n) => `first_${n}`);
    const partly = await Promise.all(
      schemas.map(async (schema, n) => {
        const pair = [`a${n}`, `b${n}`].map((name) => cluster.spawn(name, { POSTGRES__SCHEMA: schema }));
        await eventually(
          `${schema} to be begun`,
          async () => {
            const { rows } = await watch.query(
              "SELECT 1 FROM pg_stat_activity WHERE query LIKE $1 AND state <> 'idle' AND pid <> pg_backend_pid()",
              [`CREATE%${schema}%`],
            );
            return rows.length > 0 || null;
          },
          30_000,
        );
        await systemClock.sleep(Math.random() * 600);
        await Promise.all(pair.map((node) => node.kill()));
        const { rows } = await watch.query("SELECT to_regclass($1) IS NOT NULL AS noted", [
          `${schema}.migration`,
        ]);
        return !(rows[0] as { noted: boolean }).noted;
      }),
    );
    t.diagnostic(
      `${partly.filter(Boolean).length} of ${schemas.length} were killed before anything was made for good`,
    );
    await cluster.sql("DROP EVENT TRIGGER slow");
    await Promise.all(
      schemas.map(async (schema, n) => {
        const node = await cluster.start(`c${n}`, { POSTGRES__SCHEMA: schema });
        const { job_id } = await node.client.submit({ task: "work", payload: { ms: 0 } });
        assert.equal((await node.client.wait(job_id, { timeoutMs: 10_000 })).job.status, "completed");
      }),
    );
    const [whole, ...others] = await Promise.all(
      schemas.map((schema) => cluster.sql(MIGRATIONS.replace("baton", schema))),
    );
    assert.ok(whole!.length >= 2);
    for (const other of others) assert.deepEqual(other, whole);
    await Promise.all([...cluster.nodes.values()].map((node) => node.kill()));
  });

  it("beside a newer version whose tables it can work with, and not beside one whose it cannot", async (t) => {
    const cluster = await TestCluster.open(t, { on: server, settings: QUICK });
    await cluster.startAll("ada");
    const known = (await cluster.sql(MIGRATIONS)).length;
    await cluster.sql(`
      INSERT INTO baton.migration (version, compatible_from) VALUES (${known + 1}, 1);
      ALTER TABLE baton.live ADD COLUMN newer text;
      ALTER TABLE baton.node ADD COLUMN newer jsonb`);
    const bob = await cluster.start("bob");
    const { job_id } = await bob.client.submit({ task: "work", payload: { ms: 0 } });
    assert.equal((await bob.client.wait(job_id, { timeoutMs: 10_000 })).job.status, "completed");
    assert.equal((await cluster.node("ada").client.cluster.info()).active_nodes, 2);

    await cluster.sql(
      `UPDATE baton.migration SET compatible_from = ${known + 1} WHERE version = ${known + 1}`,
    );
    const old: NodeProcess = cluster.spawn("cyd");
    const { code } = await old.exited;
    assert.equal(code, 78);
    assert.match(old.stderr, /belongs to a newer version of Baton/);
    assert.match(old.stderr, new RegExp(`it needs ${known + 1}, this version knows ${known}`));
  });
});
