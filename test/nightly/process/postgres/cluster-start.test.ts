/** How a cluster begins: cold, half-way, and beside another version (S17, S107). */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { BatonClient } from "../../../../src/client/baton-client.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { systemRandom } from "../../../../src/platform/random.ts";
import { openStore } from "../../../../src/store/open-store.ts";
import { QUICK, roleOf, TestCluster } from "../../../support/cluster.ts";
import { atEnd, suiteScope, type Scope } from "../../../support/node-cleanup.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { TASKS } from "../../../support/process-node.ts";
import { environmentOf, script, type TestProcess } from "../../../support/process.ts";
import { eventually } from "../../../support/wait.ts";

const CROWD = fileURLToPath(new URL("../../../support/node-crowd.ts", import.meta.url));
const MIGRATOR = fileURLToPath(new URL("../../../support/migrator.ts", import.meta.url));
const COLUMNS = `SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
  WHERE table_schema = 'baton' ORDER BY 1, 2`;
const INDEXES = "SELECT tablename, indexname FROM pg_indexes WHERE schemaname = 'baton' ORDER BY 1, 2";
const MIGRATIONS = "SELECT version, compatible_from FROM baton.migration ORDER BY version";

/** Nodes that share a process, once all of them answer. */
async function crowd(
  t: Scope,
  url: string,
  names: readonly string[],
): Promise<{ name: string; url: string }[]> {
  const settings = {
    STORE: url,
    TASKS,
    HTTP__PORT: "0",
    POSTGRES__CONNECTIONS: "2",
    WORKER__CONCURRENCY: "2",
  };
  const nodes = script(CROWD, names, { environment: environmentOf(settings) });
  atEnd(t, () => nodes[Symbol.asyncDispose]());
  const [lines] = await nodes.told(new RegExp(`(?:\\{.*\\}\\n){${names.length}}`));
  return lines
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { name: string; url: string });
}

/** A process that has begun to make the tables, and goes on. */
async function migrating(t: Scope, url: string, schema: string): Promise<TestProcess> {
  const migrator = script(MIGRATOR, [url, schema]);
  atEnd(t, () => migrator[Symbol.asyncDispose]());
  const watch = new Client({ connectionString: url });
  await watch.connect();
  try {
    await eventually(
      `${schema} to be begun`,
      async () => {
        const { rows } = await watch.query(
          "SELECT FROM pg_stat_activity WHERE query LIKE $1 AND state <> 'idle' AND pid <> pg_backend_pid()",
          [`CREATE%${schema}%`],
        );
        return rows.length > 0;
      },
      30_000,
    );
  } finally {
    await watch.end();
  }
  return migrator;
}

/** Makes what is missing of the tables, as the start of a node does. */
async function migrated(url: string, schema: string): Promise<void> {
  const parts = { clock: systemClock, random: systemRandom, connections: 2 };
  const store = await openStore({ kind: "postgres", url, schema, ...parts });
  await store.close();
}

describe("a cluster begins", () => {
  const suite = suiteScope();
  let server: PostgresServer;

  before(async () => {
    server = await PostgresServer.start({ settings: ["max_connections=400"] });
    atEnd(suite, () => server.stop());
  });

  it("cold, with twenty nodes at once on an empty database: the tables are made once, one leads, all work", async (t) => {
    const cluster = await TestCluster.open(t, { on: server });
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
    const crowds = [0, 5, 10, 15].map((from) => crowd(t, cluster.url, names.slice(from, from + 5)));
    const nodes = (await Promise.all(crowds)).flat();
    const upAt = systemClock.monotonic();
    const led = await eventually("one leader", async () => {
      const roles = await Promise.all(nodes.map((node) => roleOf(node, 2_000)));
      const leading = roles.filter((role) => role?.role === "LEADER");
      const epochs = new Set(roles.map((role) => role?.leader_epoch));
      return leading.length === 1 && epochs.size === 1 ? leading[0]! : null;
    });
    const ledMs = systemClock.monotonic() - upAt;
    t.diagnostic(
      `20 nodes up after ${(upAt - startedAt).toFixed(0)} ms; all knew their leader, of epoch ${led.leader_epoch}, ${ledMs.toFixed(0)} ms later`,
    );
    assert.ok(ledMs < 3_000, `${ledMs} ms`);
    const [made] = await cluster.sql(`
      SELECT count(*)::int AS tables, count(DISTINCT object)::int AS different,
        count(DISTINCT transaction)::int AS transactions,
        (SELECT count(*)::int FROM baton.migration) AS migrations FROM public.made`);
    assert.ok((made!["tables"] as number) > 10);
    assert.equal(made!["tables"], made!["different"], "every table was made once");
    assert.ok((made!["transactions"] as number) <= (made!["migrations"] as number), JSON.stringify(made));
    const { url } = nodes[0]!;
    await using client = new BatonClient({ url });
    await client.submitMany(names.map((queue) => ({ task: "work", queue, payload: { ms: 0 } })));
    await eventually("every node to have worked", async () => {
      const { jobs } = await client.jobs({ status: "completed", limit: 100 });
      if (jobs.length < names.length) return null;
      assert.deepEqual(new Set(jobs.map(({ worker }) => worker)), new Set(names));
      return true;
    });
    await eventually("all to be active, as each of them sees it", async () => {
      const { active_nodes, total_nodes } = await client.cluster.info();
      return active_nodes === names.length && total_nodes === names.length;
    });
  });

  it("though those who made its tables were killed half-way, ten times", async (t) => {
    const cluster = await TestCluster.open(t, { on: server, settings: QUICK });
    // Every step takes a while, so that there is a half-way.
    await cluster.sql(`
      CREATE FUNCTION public.slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); END $$;
      CREATE EVENT TRIGGER slow ON ddl_command_end EXECUTE FUNCTION public.slow()`);
    // Schemas of their own, so that each of them is a first start.
    const schemas = Array.from({ length: 10 }, (_, n) => `first_${n}`);
    const made = await Promise.all(
      schemas.map(async (schema, n) => {
        const migrator = await migrating(t, cluster.url, schema);
        await systemClock.sleep((n + Math.random()) * 150);
        await migrator.kill();
        const [found] = await cluster.sql(`SELECT to_regclass('${schema}.migration') IS NOT NULL AS there`);
        return found!["there"] === true ? (await cluster.sql(MIGRATIONS.replace("baton", schema))).length : 0;
      }),
    );
    t.diagnostic(`migrations that were made for good before the kill: ${made.join(", ")}`);
    await cluster.sql("DROP EVENT TRIGGER slow");
    await Promise.all(["whole", ...schemas].map((schema) => migrated(cluster.url, schema)));
    const [whole, ...others] = await Promise.all(
      ["whole", ...schemas].map(async (schema) => ({
        migrations: await cluster.sql(MIGRATIONS.replace("baton", schema)),
        columns: await cluster.sql(COLUMNS.replace("baton", schema)),
        indexes: await cluster.sql(INDEXES.replace("baton", schema)),
      })),
    );
    const half = made.filter((count) => count < whole!.migrations.length);
    assert.ok(half.length > 0, "some were killed half-way");
    assert.ok(whole!.columns.length > 50 && whole!.indexes.length > 10);
    for (const other of others) assert.deepEqual(other, whole, "and none of them shows it");
  });

  it("beside a newer version whose tables it can work with, and not beside one whose it cannot", async (t) => {
    const cluster = await TestCluster.open(t, { on: server, settings: QUICK });
    await migrated(cluster.url, "baton");
    const known = (await cluster.sql(MIGRATIONS)).length;
    await cluster.sql(`
      INSERT INTO baton.migration (version, compatible_from) VALUES (${known + 1}, 1);
      ALTER TABLE baton.live ADD COLUMN newer text;
      ALTER TABLE baton.node ADD COLUMN newer jsonb`);
    const ada = await cluster.start("ada");
    await ada.does({ task: "work", payload: { ms: 0 } });

    await cluster.sql(
      `UPDATE baton.migration SET compatible_from = ${known + 1} WHERE version = ${known + 1}`,
    );
    const old = cluster.spawn("bob");
    const { code } = await old.exited;
    assert.equal(code, 78);
    assert.match(old.stderr, /belongs to a newer version of Baton/);
    assert.match(old.stderr, new RegExp(`it needs ${known + 1}, this version knows ${known}`));
  });
});
