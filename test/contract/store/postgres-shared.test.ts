/** What only a store that several nodes share must keep: the same calls at the same moment over different connections. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { Postgres, read, write } from "../../../src/platform/drivers/postgres/postgres.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/store/postgres/store.ts";
import type { ClaimRequest } from "../../../src/store/store.ts";
import { AUTHOR, lease, LEASE_MS, node, settleRuns } from "../../support/store-world.ts";
import { claimRequest, newJob } from "../../support/job-builders.ts";
import { endSessions, server, waiting, withSession, withStores, withStoresOn } from "./postgres-world.ts";
import { column } from "../../support/columns.ts";

const request = (name: string, fields: Partial<ClaimRequest> = {}): ClaimRequest =>
  claimRequest({
    author: { ...AUTHOR, node: node(name) },
    worker: name,
    lease: lease(`${name}/1`),
    leaseMs: LEASE_MS,
    limit: 7,
    tasks: new Set(["work", "other"]),
    suspect: false,
    ...fields,
  });

void describe("a claim that goes the quick way", () => {
  /** Each has claimed, so that it knows the kinds of before and holds a lease. */
  async function warm(stores: readonly PostgresStore[]): Promise<void> {
    for (const [at, store] of stores.entries()) {
      await store.jobs.submit([newJob()], AUTHOR);
      assert.equal((await store.jobs.claim(request(`node-${at}`))).jobs.length, 1);
    }
  }

  void test("sees a kind that another node has just made, in its place in line", () =>
    withStores(2, async ([mine, other]) => {
      await warm([mine!, other!]);
      const plain = newJob();
      const urgent = newJob({ task: "other", priority: 5 });
      await mine!.jobs.submit([plain], AUTHOR);
      await other!.jobs.submit([urgent], AUTHOR);
      const { jobs } = await mine!.jobs.claim(request("node-0"));
      assert.deepEqual(column(jobs, "id"), [urgent.id, plain.id]);
    }));

  void test("takes nothing from a queue that another node has just paused", () =>
    withStores(2, async ([mine, other]) => {
      await warm([mine!, other!]);
      await mine!.jobs.submit([newJob()], AUTHOR);
      await other!.queues.setPaused("default", true);
      assert.deepEqual((await mine!.jobs.claim(request("node-0"))).jobs, []);
      await other!.queues.setPaused("default", false);
      assert.equal((await mine!.jobs.claim(request("node-0"))).jobs.length, 1);
    }));

  void test("keeps the lease as long as it promises", () =>
    withStores(1, async ([store], url) => {
      await warm([store!]);
      await withSession(url, async (session) => {
        await session.query("UPDATE baton.lease SET expires_at = expires_at - 5000");
        await store!.jobs.submit([newJob()], AUTHOR);
        assert.equal((await store!.jobs.claim(request("node-0"))).jobs.length, 1);
        const { rows } = await session.query<{ ms: string }>(
          "SELECT expires_at - (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms FROM baton.lease",
        );
        assert.ok(Number(rows[0]!.ms) > LEASE_MS - 1_000, `${rows[0]!.ms} ms are left of the lease`);
      });
    }));
});

void describe("the postgres store, shared", () => {
  for (const same of ["idempotency key", "id"] as const) {
    void test(`the same ${same} submitted over two connections at once is one job`, () =>
      withStores(2, async ([here, there]) => {
        for (let round = 0; round < 30; round++) {
          const jobs = Array.from({ length: 3 }, (_, n) =>
            newJob(same === "id" ? {} : { idempotencyKey: `${round}/${n}` }),
          );
          const others = jobs.map((job) => ({ ...job, id: same === "id" ? job.id : newJob().id })).reverse();
          const [first, second] = await Promise.all([
            here!.jobs.submit(jobs, AUTHOR),
            there!.jobs.submit(others, AUTHOR),
          ]);
          for (const [index, answer] of first.entries()) {
            const other = second.at(-1 - index)!;
            assert.equal(answer.id, other.id);
            assert.equal([answer, other].filter((one) => !one.existed).length, 1);
          }
        }
        assert.equal((await here!.queues.list())[0]!.counts.queued, 90);
      }));
  }

  void test("of a retry of a failed job and a job with its key, at the same time, one is refused", () =>
    withStores(2, async ([here, there]) => {
      for (let round = 0; round < 30; round++) {
        const job = newJob({ idempotencyKey: `${round}` });
        await here!.jobs.submit([job], AUTHOR);
        const { jobs } = await here!.jobs.claim(request("node-0"));
        const outcome = { kind: "failed", error: { code: "E", message: "" }, spends: "failure" } as const;
        await settleRuns(here!, [{ run: jobs[0]!, outcome }]);
        const [retried, [answer]] = await Promise.all([
          here!.jobs.retry(job.id),
          there!.jobs.submit([{ ...job, id: newJob().id }], AUTHOR),
        ]);
        assert.equal(answer!.existed, retried === "retried", retried);
        assert.ok(answer!.existed || retried === "superseded");
        assert.equal((await here!.queues.list())[0]!.counts.queued, 1);
        for (const { id } of (await here!.jobs.list({ limit: 10 })).jobs) {
          await here!.jobs.cancel(id, null);
          await here!.jobs.remove(id);
        }
      }
    }));

  void test("many claims at once open a lease that none of them has had yet, and all of them hold it", () =>
    withStores(1, async ([store]) => {
      for (let round = 1; round <= 20; round++) {
        await store!.jobs.submit([newJob(), newJob(), newJob(), newJob()], AUTHOR);
        const fresh = request("n1", { lease: lease(`n1/${round}`), limit: 1 });
        const claims = await Promise.all(Array.from({ length: 4 }, () => store!.jobs.claim(fresh)));
        assert.deepEqual(column(claims, "held"), [true, true, true, true]);
      }
    }));

  void test("ten stores that start on an empty database at once all find their tables", async () => {
    const url = await server.createDatabase();
    await withStoresOn(url, 10, async (stores) => {
      const [ran] = await server.query(
        "SELECT count(*)::int AS n, max(version) AS version FROM baton.migration",
        url,
      );
      assert.equal(ran!["n"], ran!["version"]);
      const answers = await Promise.all(stores.map((store) => store.jobs.submit([newJob()], AUTHOR)));
      assert.ok(answers.flat().every((answer) => !answer.existed));
    });
  });

  void test("a migration that is killed half-way leaves nothing, and the next start makes up for it", async () => {
    const url = await server.createDatabase();
    try {
      await withSession(url, async (session) => {
        // In the way of the migration's last note, so that it stands there with all tables made.
        await session.query("CREATE SCHEMA baton");
        await session.query(
          "CREATE TABLE baton.migration (version int PRIMARY KEY, compatible_from int NOT NULL, ran_at timestamptz DEFAULT now())",
        );
        await session.query("BEGIN; LOCK TABLE baton.migration IN SHARE MODE");
        const failed = assert.rejects(openPostgresStore({ url, clock: systemClock }), {
          code: "STORE_UNAVAILABLE",
        });
        await waiting(url, 1);
        await endSessions(url);
        await failed;
        const tables = await session.query("SELECT to_regclass('baton.job') IS NOT NULL AS there");
        assert.deepEqual(tables.rows, [{ there: false }]);
        await session.query("COMMIT");
      });
      await using store = await openPostgresStore({ url, clock: systemClock });
      assert.equal((await store.jobs.submit([newJob()], AUTHOR)).length, 1);
    } finally {
      await server.giveBack(url);
    }
  });

  void test("two schemas in one database know nothing of each other", async () => {
    const url = await server.createDatabase();
    await withStoresOn(url, 1, async ([one]) =>
      withStoresOn(
        url,
        1,
        async ([other]) => {
          await one!.jobs.submit([newJob()], AUTHOR);
          assert.deepEqual((await other!.jobs.list({ limit: 5 })).jobs, []);
        },
        { schema: "other" },
      ),
    );
    await server.giveBack(url);
  });

  void test("a write whose backend is killed is unavailable, and the next one works", () =>
    withStores(1, async ([store], url) => {
      await store!.jobs.submit([newJob()], AUTHOR);
      await withSession(url, async (session) => {
        await session.query("BEGIN; LOCK TABLE baton.job IN EXCLUSIVE MODE");
        const lost = assert.rejects(store!.jobs.submit([newJob()], AUTHOR), { code: "STORE_UNAVAILABLE" });
        await waiting(url, 1);
        await endSessions(url);
        await lost;
        await session.query("COMMIT");
      });
      const again = newJob();
      assert.deepEqual(await store!.jobs.submit([again], AUTHOR), [
        { id: again.id, status: "queued", existed: false },
      ]);
      assert.equal((await store!.queues.list())[0]!.counts.queued, 2);
    }));

  void test("idle connections that were killed are replaced without anybody noticing", () =>
    withStores(1, async ([store], url) => {
      for (let round = 0; round < 3; round++) {
        await Promise.all(Array.from({ length: 5 }, () => store!.jobs.submit([newJob()], AUTHOR)));
        await endSessions(url);
        // Reads are sent again when they meet a connection that has just died.
        assert.equal((await store!.queues.list())[0]!.counts.queued, (round + 1) * 5);
      }
    }));

  void test("a statement that does not come back is given up at its deadline", () =>
    withStores(
      1,
      async ([store], url) => {
        await withSession(url, async (session) => {
          await session.query("BEGIN; LOCK TABLE baton.job IN EXCLUSIVE MODE");
          await assert.rejects(store!.jobs.submit([newJob()], AUTHOR), { code: "STORE_UNAVAILABLE" });
          await session.query("COMMIT");
        });
        assert.equal((await store!.jobs.submit([newJob()], AUTHOR)).length, 1);
      },
      { statementMs: 500 },
    ));

  void test("a database that is not there is unavailable, a wrong name is a mistake in the settings", async () => {
    const nowhere = openPostgresStore({ url: "postgres://postgres@127.0.0.1:1/x", clock: systemClock });
    await assert.rejects(nowhere, { code: "STORE_UNAVAILABLE" });
    const wrong = openPostgresStore({ url: server.url("no_such_database"), clock: systemClock });
    await assert.rejects(wrong, { code: "BAD_CONFIG" });
  });

  void test("a transaction that was chosen as the victim of a deadlock is run again", async () => {
    const url = await server.createDatabase();
    const db = new Postgres({ url, clock: systemClock });
    await db.start();
    try {
      await db.query(
        write("t-make", "CREATE TABLE pair AS SELECT n, 0 AS hits FROM generate_series(1, 2) AS n"),
      );
      const hit = write("t-hit", "UPDATE pair SET hits = hits + 1 WHERE n = $1");
      let reached = 0;
      let open = (): void => {};
      const bothReached = new Promise<void>((resolve) => (open = resolve));
      const cross = (first: number, second: number): Promise<void> =>
        db.transaction(async (tx) => {
          await tx.query(hit, [first]);
          if (++reached === 2) open();
          await bothReached;
          await tx.query(hit, [second]);
        });
      await Promise.all([cross(1, 2), cross(2, 1)]);
      assert.ok(reached > 2, "nobody had to try again");
      const rows = await db.query<{ hits: number }>(read("t-read", "SELECT hits FROM pair"));
      assert.deepEqual(column(rows, "hits"), [2, 2]);
    } finally {
      await db.stop();
      await server.giveBack(url);
    }
  });
});
