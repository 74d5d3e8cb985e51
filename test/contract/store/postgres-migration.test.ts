/** Migrations of the shared store: in place, while nodes work, in nobody's way, and back again. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Clock, systemClock } from "../../../src/platform/clock.ts";
import { Postgres } from "../../../src/platform/drivers/postgres/postgres.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { type Migration, MIGRATIONS } from "../../../src/store/postgres/schema.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/store/postgres/store.ts";
import { uuidAt, type JobId } from "../../../src/core/ids.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import type { ClaimedJob } from "../../../src/store/store.ts";
import { FirstVersionNode } from "../../support/first-version.ts";
import { claimRequest, newJob } from "../../support/job-builders.ts";
import { blocksOf } from "../../support/markdown.ts";
import { AUTHOR, lease, settleRuns } from "../../support/store-world.ts";
import { eventually } from "../../support/wait.ts";
import { server, waiting, withSession } from "./postgres-world.ts";

const FIRST = MIGRATIONS.slice(0, 1);
/** What a later version may add to the hot tables, and what removes it. */
const LATER: readonly Migration[] = [
  ...MIGRATIONS,
  { compatibleFrom: 1, up: ["ALTER TABLE baton.done ADD COLUMN extra int"] },
  { compatibleFrom: 1, up: ["ALTER TABLE baton.live ADD COLUMN extra int"] },
];
const FROM_LATER = [
  "ALTER TABLE baton.done DROP COLUMN extra",
  "ALTER TABLE baton.live DROP COLUMN extra",
  `DELETE FROM baton.migration WHERE version > ${MIGRATIONS.length}`,
];
const PAGE = "docs/postgres.md";
const BATCH = 20;
const LEASE_MS = 600_000;

async function withDatabase(work: (url: string) => Promise<void>): Promise<void> {
  const url = await server.createDatabase();
  try {
    await work(url);
  } finally {
    await server.giveBack(url);
  }
}

async function migrated(url: string, migrations: readonly Migration[], clock: Clock = systemClock) {
  const db = new Postgres({ url, clock: systemClock, connections: 2 });
  await db.start();
  try {
    await migrate(db, clock, migrations);
  } finally {
    await db.stop();
  }
}

/** What the documentation tells an operator to run. */
function wayBack(): string {
  const page = { path: PAGE, text: readFileSync(join(import.meta.dirname, "../../..", PAGE), "utf8") };
  const block = blocksOf(page).find(({ text }) => text.includes("DELETE FROM baton.migration"));
  assert.ok(block, `${PAGE} says how to go back`);
  return block.text;
}

/** Everything but the rows, and but the settings of the server. */
const SHAPE = `
  SELECT c.relname AS name, c.relkind::text AS kind, c.reloptions::text AS options, pg_get_indexdef(c.oid) AS made_by,
    (SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull), ', ' ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
  FROM pg_class c WHERE c.relnamespace = 'baton'::regnamespace
  UNION ALL SELECT proname, 'function', proconfig::text, prosrc, NULL FROM pg_proc WHERE pronamespace = 'baton'::regnamespace
  UNION ALL SELECT conname, 'constraint', NULL, pg_get_constraintdef(oid), NULL FROM pg_constraint WHERE connamespace = 'baton'::regnamespace
  UNION ALL SELECT tgname, 'trigger', NULL, pg_get_triggerdef(oid), NULL FROM pg_trigger WHERE NOT tgisinternal
  ORDER BY kind, name, made_by`;

/** What happened to each job, by its payload. */
class Ledger {
  readonly submitted = new Set<string>();
  readonly started = new Map<string, number>();
  readonly #completed = new Map<string, number>();
  purged = 0;
  refused = 0;
  /** Of a loop. */
  error: unknown = null;

  payloads(node: string): string[] {
    const from = this.submitted.size;
    return Array.from({ length: BATCH }, (_, at) => `"${node} ${from + at} ${systemRandom.timedUuid()}"`);
  }

  start(payload: string): void {
    this.started.set(payload, (this.started.get(payload) ?? 0) + 1);
  }

  complete(node: string, count: number): void {
    this.#completed.set(node, (this.#completed.get(node) ?? 0) + count);
  }

  completedBy(node: string): number {
    return this.#completed.get(node) ?? 0;
  }
}

/** Turns of a node until `stop`, which waits for the last one. */
class Loop {
  #over = false;
  readonly #ended: Promise<void>;

  constructor(ledger: Ledger, turn: () => Promise<void>) {
    this.#ended = this.#run(turn);
    this.#ended.catch((error: unknown) => (ledger.error = error));
  }

  async #run(turn: () => Promise<void>): Promise<void> {
    while (!this.#over) {
      await turn();
      await systemClock.sleep(1);
    }
  }

  async stop(): Promise<void> {
    this.#over = true;
    await this.#ended;
  }
}

function firstVersionTurn(node: FirstVersionNode, name: string, ledger: Ledger): () => Promise<void> {
  return async () => {
    const payloads = ledger.payloads(name);
    await node.submit(payloads);
    for (const payload of payloads) ledger.submitted.add(payload);
    for (const run of await node.claim(3 * BATCH - 1)) {
      for (const payload of run.payloads) ledger.start(payload);
      if (await node.complete(run)) ledger.complete(name, run.payloads.length);
      else ledger.refused++;
    }
    const purged = await node.purge(20, 5);
    ledger.purged += purged;
  };
}

async function runOnce(store: PostgresStore, name: string, ledger: Ledger): Promise<readonly ClaimedJob[]> {
  const request = claimRequest({ author: AUTHOR, lease: lease(`${name}/1`), leaseMs: LEASE_MS, limit: 37 });
  const { jobs } = await store.jobs.claim(request);
  for (const { payload } of jobs) ledger.start(payload);
  const verdicts = await settleRuns(
    store,
    jobs.map((run) => ({ run, outcome: { kind: "completed", result: "null" } })),
  );
  const accepted = verdicts.filter((verdict) => verdict === "accepted").length;
  ledger.complete(name, accepted);
  ledger.refused += jobs.length - accepted;
  return jobs;
}

async function newVersionTurn(
  store: PostgresStore,
  name: string,
  ledger: Ledger,
): Promise<() => Promise<void>> {
  const term = await store.terms.grant("scheduler", { name: AUTHOR.node, incarnation: name });
  const retention = { completedMs: 20, failedMs: 20, cancelledMs: 20 };
  return async () => {
    const first = systemRandom.timedUuid();
    const payloads = ledger.payloads(name);
    const jobs = payloads.map((payload, at) =>
      newJob({ id: `${name}-${uuidAt(first, at)}` as JobId, payload }),
    );
    await store.jobs.submit(jobs, AUTHOR);
    for (const payload of payloads) ledger.submitted.add(payload);
    const ran = await runOnce(store, name, ledger);
    // They have completed: each is looked at, and stays as it is.
    for (const { id } of ran.slice(0, 3)) assert.notEqual(await store.jobs.retry(id), "retried");
    const purged = await store.purge({ of: "jobs", retention, limit: 5 }, term);
    ledger.purged += purged;
  };
}

async function versionOf(url: string): Promise<unknown> {
  const [row] = await server.query("SELECT max(version) AS version FROM baton.migration", url);
  return row!["version"];
}

/** Until each of these nodes has completed so many more. */
async function more(ledger: Ledger, nodes: readonly string[], count = 150): Promise<void> {
  const from = nodes.map((node) => ledger.completedBy(node));
  await eventually("each node to complete jobs", () => {
    if (ledger.error !== null) throw ledger.error;
    return nodes.every((node, at) => ledger.completedBy(node) >= from[at]! + count);
  });
}

void describe("a migration of the postgres store", () => {
  void test("brings a database of the first version to this one and a later one, back and here again while nodes submit and run: nothing is lost, nothing runs twice", () =>
    withDatabase(async (url) => {
      await migrated(url, FIRST);
      const before = await server.query(SHAPE, url);
      const ledger = new Ledger();
      const old = ["old-1", "old-2"];
      const nodes = old.map((name) => new FirstVersionNode(url, name));
      const open = (): Promise<PostgresStore> => openPostgresStore({ url, clock: systemClock });
      try {
        await Promise.all(nodes.map((node) => node.start()));
        const oldLoops = nodes.map((node, at) => new Loop(ledger, firstVersionTurn(node, old[at]!, ledger)));
        await more(ledger, old);
        assert.equal(await versionOf(url), 1);

        const fresh = await Promise.all([open(), open()]);
        assert.equal(await versionOf(url), MIGRATIONS.length);
        const turn = await newVersionTurn(fresh[0], "new-1", ledger);
        const newLoop = new Loop(ledger, turn);
        await more(ledger, [...old, "new-1"]);

        await migrated(url, LATER);
        assert.equal(await versionOf(url), LATER.length);
        await more(ledger, [...old, "new-1"]);
        for (const statement of FROM_LATER) await server.query(statement, url);
        await more(ledger, [...old, "new-1"]);

        await newLoop.stop();
        await Promise.all(fresh.map((store) => store.close()));
        await server.query(wayBack(), url);
        assert.equal(await versionOf(url), 1);
        assert.deepEqual(await server.query(SHAPE, url), before, "the way back leaves nothing");
        await more(ledger, old);

        await using again = await open();
        assert.equal(await versionOf(url), MIGRATIONS.length);
        const lastLoop = new Loop(ledger, await newVersionTurn(again, "new-2", ledger));
        await more(ledger, [...old, "new-2"]);
        await Promise.all([...oldLoops, lastLoop].map((loop) => loop.stop()));
        while ((await runOnce(again, "new-2", ledger)).length > 0);

        assert.deepEqual(
          new Set(ledger.started.keys()),
          ledger.submitted,
          "jobs that ran are those submitted",
        );
        assert.ok(
          [...ledger.started.values()].every((times) => times === 1),
          "each job ran once",
        );
        assert.equal(ledger.refused, 0);
        const [left] = await server.query(
          `SELECT (SELECT count(*)::int FROM baton.live) AS live, (SELECT sum(n)::int FROM baton.done) AS done,
             (SELECT count(*)::int FROM baton.job) AS jobs, (SELECT sum(n)::int FROM baton.tally) AS counted`,
          url,
        );
        const kept = ledger.submitted.size - ledger.purged;
        assert.deepEqual(left, { live: 0, done: kept, jobs: kept, counted: kept });
      } finally {
        await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
      }
    }));

  void test("that waits for a table lets others read it meanwhile, and goes on when it is free", () =>
    withDatabase(async (url) => {
      await migrated(url, MIGRATIONS);
      await withSession(url, async (session) => {
        await session.query("BEGIN; SELECT FROM baton.done");
        const migrating = migrated(url, LATER);
        await waiting(url, 1);
        // Comes behind the migration, and would wait for the session as well if that did not give way.
        await server.query("SELECT FROM baton.done", url);
        assert.equal(await versionOf(url), MIGRATIONS.length);
        await session.query("COMMIT");
        await migrating;
      });
      assert.equal(await versionOf(url), LATER.length);
    }));

  void test("tells whose transaction is in the way when it lasts", () =>
    withDatabase(async (url) => {
      await migrated(url, MIGRATIONS);
      let minutes = 0;
      const fast: Clock = { ...systemClock, monotonic: () => 60_000 * minutes++ };
      await withSession(
        url,
        async (session) => {
          await session.query("BEGIN; SELECT FROM baton.done");
          await assert.rejects(migrated(url, LATER, fast), {
            code: "STORE_UNAVAILABLE",
            message: /cannot be brought up to date: session \d+ of user postgres \(a report\) has locked/,
          });
        },
        "a report",
      );
      assert.equal(await versionOf(url), MIGRATIONS.length);
    }));
});
