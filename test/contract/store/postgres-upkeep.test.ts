/** What keeps the shared store fast for years: how it purges, adds up and finds things, and that nothing of it gets in the way. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JobId } from "../../../src/core/ids.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { AUTHOR, HOUR_MS, lease, LEASE_MS, settleRuns, StoreWorld } from "../../support/store-world.ts";
import { columns } from "../../support/columns.ts";
import { server, withSession } from "./postgres-world.ts";

type Query = (sql: string) => Promise<Record<string, unknown>[]>;

async function inWorld(
  proof: (world: StoreWorld, query: Query, url: string) => Promise<void>,
): Promise<void> {
  const url = await server.createDatabase();
  try {
    await StoreWorld.with(
      ({ clock }) => openPostgresStore({ url, clock: systemClock, time: clock }),
      (world) => proof(world, (sql) => server.query(sql, url), url),
    );
  } finally {
    await server.giveBack(url);
  }
}

const RANGE = 20;

/** Jobs that have ended as one range, and are old. */
async function completedRange(world: StoreWorld): Promise<readonly JobId[]> {
  const ids = await world.submitMany(RANGE);
  const runs = await world.claim();
  await settleRuns(
    world.store,
    runs.map((run) => ({ run, outcome: { kind: "completed", result: "null" } })),
  );
  await world.clock.advance(2 * HOUR_MS);
  return ids;
}

async function purge(world: StoreWorld, limit = 100): Promise<number> {
  const retention = { completedMs: HOUR_MS, failedMs: 100 * HOUR_MS, cancelledMs: HOUR_MS };
  return world.store.purge({ of: "jobs", retention, limit }, await world.term());
}

void describe("a purge of the postgres store", () => {
  void test("finds what is to be removed behind tens of thousands that are kept for longer", () =>
    inWorld(async (world, query) => {
      await world.fail(await world.running());
      await query(
        `WITH more AS (
           INSERT INTO baton.job (seq, id, created_at, birthplace, kind, author, max_attempts, priority, payload)
           SELECT 1 + n, gen_random_uuid(), created_at, birthplace, kind, author, 1, 0, '1'
           FROM baton.job, generate_series(1, 25000) AS n RETURNING seq, id
         )
         INSERT INTO baton.done (seq, id, finished_at, run_at, kind, author, job_epoch, attempts, failures, interruptions, crashes, logs, status, cancel_requested)
         SELECT m.seq, m.id, d.finished_at, d.run_at, d.kind, d.author, 1, 1, 1, 0, 0, 0, d.status, false FROM more m, baton.done d`,
      );
      await query("SELECT setval('baton.job_seq', 25001)");
      const old = await world.submitMany(5);
      for (const run of await world.claim()) await world.finish(run);
      await world.clock.advance(2 * HOUR_MS);
      const removed: number[] = [];
      for (let piece = 0; piece < 4; piece++) removed.push(await purge(world));
      assert.deepEqual(removed, [0, 0, 5, 0]);
      for (const id of old) assert.equal(await world.store.jobs.get(id), null);
      assert.deepEqual(await query("SELECT count(*)::int AS n FROM baton.done"), [{ n: 25_001 }]);
    }));

  void test("begins again when it has come to the young ones", () =>
    inWorld(async (world) => {
      const slow = await world.running();
      const done = await world.running();
      await world.finish(done);
      await world.clock.advance(2 * HOUR_MS);
      assert.equal(await purge(world), 1);
      await world.finish(slow); // it arrived before the one that is gone
      await world.clock.advance(2 * HOUR_MS);
      assert.equal(await purge(world), 1);
    }));

  void test("neither waits for a job that somebody steers, nor takes its logs away", () =>
    inWorld(async (world, query, url) => {
      const run = await world.running();
      await world.log(run, "a line");
      await world.finish(run);
      const other = await world.running();
      await world.finish(other);
      await world.clock.advance(2 * HOUR_MS);
      await withSession(url, async (session) => {
        await session.query("BEGIN; SELECT FROM baton.job WHERE seq = 1 FOR UPDATE");
        assert.equal(await purge(world), 1);
        assert.equal((await world.logs(run.id)).length, 1);
      });
      assert.equal(await world.store.jobs.get(other.id), null);
      assert.equal(await purge(world), 1);
      assert.deepEqual(await query("SELECT FROM baton.log"), []);
    }));

  void test("and a retry at the same moment: the job is in its queue again with its logs, or it is gone", () =>
    inWorld(async (world, query) => {
      const answers = new Set<string>();
      for (let round = 0; round < 30; round++) {
        const run = await world.running();
        await world.log(run, "a line");
        await world.fail(run);
        await world.clock.advance(200 * HOUR_MS);
        const [answer, removed] = await Promise.all([world.store.jobs.retry(run.id), purge(world)]);
        answers.add(answer);
        const job = await world.store.jobs.get(run.id);
        if (answer === "retried") {
          assert.deepEqual([removed, job?.status], [0, "queued"], `round ${round}`);
          assert.equal((await world.logs(run.id)).length, 1);
          await world.finish(await world.again(run.id));
          await world.clock.advance(2 * HOUR_MS);
          assert.equal(await purge(world), 1);
        } else {
          assert.deepEqual([answer, removed, job], ["missing", 1, null], `round ${round}`);
        }
      }
      assert.ok([...answers].every((answer) => answer === "retried" || answer === "missing"));
      for (const table of ["job", "live", "done", "log", "past_run"]) {
        assert.deepEqual(await query(`SELECT FROM baton.${table}`), [], table);
      }
    }));

  void test("leaves a range as a whole while somebody steers one of its jobs", () =>
    inWorld(async (world, query, url) => {
      await completedRange(world);
      await withSession(url, async (session) => {
        await session.query(
          "BEGIN; SELECT FROM baton.job WHERE seq = (SELECT max(seq) FROM baton.job) FOR UPDATE",
        );
        assert.equal(await purge(world), 0);
      });
      assert.deepEqual(
        await query("SELECT n, (SELECT count(*)::int FROM baton.job) AS jobs FROM baton.done"),
        [{ n: RANGE, jobs: RANGE }],
      );
      assert.equal(await purge(world), RANGE);
    }));

  void test("and a removal of one job of a range at the same moment: nothing of either is left", () =>
    inWorld(async (world, query) => {
      for (let round = 0; round < 10; round++) {
        const ids = await completedRange(world);
        assert.deepEqual(await query("SELECT n FROM baton.done"), [{ n: RANGE }]);
        await Promise.all([world.store.jobs.remove(ids[7]!), purge(world)]);
        while ((await purge(world)) > 0);
        for (const table of ["job", "done"]) {
          assert.deepEqual(await query(`SELECT FROM baton.${table}`), [], `round ${round}: ${table}`);
        }
        assert.deepEqual(await world.counts(), {}, `round ${round}`);
      }
    }));

  void test("adds the counts up, and writes nothing when there is nothing to add", () =>
    inWorld(async (world, query) => {
      for (const queue of ["a", "a", "a", "b"]) await world.finish(await world.running({ queue }));
      await world.fail(await world.running({ queue: "a" }));
      const rows = "SELECT kind, status, n::int, xmin::text FROM baton.tally ORDER BY kind, status";
      assert.equal((await query(rows)).length, 5);
      assert.equal(await purge(world), 0);
      const added = await query(rows);
      assert.deepEqual(columns(added, "status", "n"), [
        [3, 3],
        [4, 1],
        [3, 1],
      ]);
      assert.equal(await purge(world), 0);
      assert.deepEqual(await query(rows), added);
      assert.deepEqual(await world.counts("a"), { completed: 3, failed: 1 });
      await world.clock.advance(2 * HOUR_MS);
      assert.equal(await purge(world), 4);
      assert.deepEqual(await world.counts("a"), { failed: 1 });
      assert.equal((await query(rows)).length, 1);
    }));

  void test("forgets occurrences in pieces as well", () =>
    inWorld(async (world) => {
      const at = world.clock.now();
      await world.store.schedules.put(world.definition(), at);
      const firing = {
        schedule: "nightly",
        occurrences: Array.from({ length: 5 }, (_, n) => ({
          at: at + n,
          do: "skip" as const,
          reason: "missed" as const,
          job: null,
        })),
        nextAt: at + HOUR_MS,
        expectedNextAt: at,
        overlap: "allow" as const,
      };
      await world.store.schedules.fire(firing, AUTHOR, await world.term());
      const left = async (): Promise<number> => (await world.store.schedules.history("nightly", 10)).length;
      await world.clock.advance(99 * HOUR_MS);
      await purge(world, 3);
      assert.equal(await left(), 5);
      await world.clock.advance(2 * HOUR_MS);
      await purge(world, 3);
      assert.equal(await left(), 2);
      await purge(world, 3);
      assert.equal(await left(), 0);
    }));
});

void describe("leases of the postgres store", () => {
  void test("of ended lives, and the jobs under them, are found by an index and one walk through what waits", () =>
    inWorld(async (world, query) => {
      await world.running();
      await world.crash();
      await world.store.close(); // sessions tell their counts when they end
      // Making an index walks through its table as well.
      const scans = async (): Promise<Record<string, unknown>> => {
        const rows = await query(`SELECT relname AS name,
            seq_scan::int - (SELECT count(*)::int FROM pg_index WHERE indrelid = relid) AS n FROM pg_stat_user_tables
          UNION ALL SELECT indexrelname, idx_scan::int FROM pg_stat_user_indexes`);
        return Object.fromEntries(rows.map(({ name, n }) => [name, n]));
      };
      let seen = await scans();
      for (let tries = 0; tries < 100 && seen["lease_life"] === 0; tries++) seen = await scans();
      assert.equal(seen["lease_life"], 1);
      assert.deepEqual([seen["live"], seen["job"], seen["lease"]], [1, 0, 0]);
    }));

  void test("and what runs under them are written in place: no index is touched by a claim or a renewal", () =>
    inWorld(async (world, query) => {
      await world.submitMany(40);
      for (let n = 0; n < 20; n++) {
        assert.equal((await world.claim({ limit: 2, opens: n === 0 })).length, 2);
        await world.clock.advance(1_000);
        await world.store.jobs.renew(lease("node-a/1"), LEASE_MS);
      }
      await world.store.close(); // sessions tell their counts when they end
      for (const table of ["live", "lease"]) {
        let counts: Record<string, unknown> = {};
        for (let tries = 0; tries < 100 && !(Number(counts["updates"]) >= 20); tries++) {
          [counts = {}] = await query(
            `SELECT n_tup_upd::int AS updates, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = '${table}'`,
          );
        }
        assert.ok(Number(counts["updates"]) >= 20, `${table}: ${JSON.stringify(counts)}`);
        assert.equal(counts["hot"], counts["updates"], table);
      }
    }));

  void test("that were ended stay so for a claim that crosses with their end", () =>
    inWorld(async (world) => {
      const budgets = { interruptionsMax: 50, crashesMax: 1_000 };
      for (let round = 0; round < 30; round++) {
        await world.submitMany(2);
        await world.claim({ limit: 1, suspect: true });
        const [claimed] = await Promise.all([
          world.store.jobs.claim(world.request({ opens: false })),
          world.crash(budgets),
        ]);
        const counts = await world.counts();
        assert.equal(
          counts.processing,
          undefined,
          `round ${round}, held ${claimed.held}: what it gave was taken`,
        );
        const after = await world.store.jobs.claim(world.request({ opens: false }));
        assert.deepEqual([after.held, after.jobs], [false, []], `round ${round}`);
      }
    }));
});
