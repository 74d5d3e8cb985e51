/** What only a store that several nodes share must keep: the same calls at the same moment over different connections. */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { Postgres, read, write } from "../../../src/platform/drivers/postgres/postgres.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/store/postgres/store.ts";
import type { ClaimRequest, NewJob } from "../../../src/store/store.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { AUTHOR, lease, LEASE_MS, NODE, node, settleRuns } from "../../support/store-world.ts";
import { claimRequest, newJob } from "../../support/job-builders.ts";
import { waiting } from "./postgres-world.ts";
import { column } from "../../support/columns.ts";

const server = await PostgresServer.shared();
after(() => server.stop());

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

/** Stores on one database without rows, each with a pool of its own, stopped whatever happens. */
async function withStores(
  count: number,
  proof: (stores: readonly PostgresStore[], url: string) => Promise<void>,
  fields: { readonly statementMs?: number } = {},
): Promise<void> {
  const url = await server.databaseWithTables();
  await withStoresOn(url, count, (stores) => proof(stores, url), fields);
  await server.clear(url);
}

async function withStoresOn(
  url: string,
  count: number,
  proof: (stores: readonly PostgresStore[]) => Promise<void>,
  fields: { readonly statementMs?: number } = {},
): Promise<void> {
  const stores = await Promise.all(
    Array.from({ length: count }, () => openPostgresStore({ url, clock: systemClock, ...fields })),
  );
  try {
    await proof(stores);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

/** A session of somebody else on the same database. */
async function withSession(url: string, work: (session: Client) => Promise<void>): Promise<void> {
  const session = new Client({ connectionString: url });
  session.on("error", () => {});
  await session.connect();
  try {
    await work(session);
  } finally {
    await session.end();
  }
}

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
  void test("two stores that claim at the same time never get the same job, and get them all", () =>
    withStores(2, async ([a, b]) => {
      const rounds = 30;
      for (let round = 0; round < rounds; round++) {
        const jobs = Array.from({ length: 40 }, (_, index) =>
          newJob({ task: index % 3 === 0 ? "other" : "work", priority: index % 2, queue: `q${index % 4}` }),
        );
        await a!.jobs.submit(jobs, AUTHOR);
        const taken: string[] = [];
        const drain = async (store: PostgresStore, name: string): Promise<void> => {
          for (;;) {
            const claimed = await store.jobs.claim(request(name));
            if (claimed.jobs.length === 0) return;
            taken.push(...claimed.jobs.map((job) => job.id));
            const outcome = { kind: "completed", result: "1" } as const;
            const verdicts = await settleRuns(
              store,
              claimed.jobs.map((run) => ({ run, outcome })),
            );
            assert.ok(verdicts.every((verdict) => verdict === "accepted"));
          }
        };
        await Promise.all([drain(a!, "n1"), drain(a!, "n1"), drain(b!, "n2"), drain(b!, "n2")]);
        assert.equal(new Set(taken).size, taken.length, `round ${round}: a job was given out twice`);
        // Whoever found only rows that another held for a moment may have gone home early; nothing is lost.
        await drain(a!, "n1");
        assert.deepEqual([...taken].sort(), jobs.map((job) => job.id).sort(), `round ${round}`);
      }
      const done = (await b!.queues.list()).reduce((sum, queue) => sum + queue.counts.completed, 0);
      assert.equal(done, rounds * 40);
    }));

  void test("the same idempotency key submitted over two connections at once is one job", () =>
    withStores(2, async (stores) => {
      for (let round = 0; round < 30; round++) {
        const keys = [`a${round}`, `b${round}`, `c${round}`];
        const batch = (order: readonly string[]): NewJob[] =>
          order.map((idempotencyKey) => newJob({ idempotencyKey }));
        const answers = await Promise.all([
          stores[0]!.jobs.submit(batch(keys), AUTHOR),
          stores[1]!.jobs.submit(batch([...keys].reverse()), AUTHOR),
        ]);
        const [first, second] = [answers[0], [...answers[1]].reverse()];
        for (const [index, answer] of first.entries()) {
          assert.equal(answer.id, second[index]!.id);
          assert.equal([answer, second[index]!].filter((one) => !one.existed).length, 1);
        }
      }
      const counts = (await stores[0]!.queues.list())[0]!.counts;
      assert.equal(counts.queued, 90);
    }));

  void test("the same job submitted over two connections at once is one job", () =>
    withStores(2, async (stores) => {
      for (let round = 0; round < 20; round++) {
        const jobs = Array.from({ length: 5 }, () => newJob());
        const answers = await Promise.all(stores.map((store) => store.jobs.submit(jobs, AUTHOR)));
        for (const [index, job] of jobs.entries()) {
          const both = answers.map((answer) => answer[index]!);
          assert.deepEqual(column(both, "id"), [job.id, job.id]);
          assert.equal(both.filter((one) => !one.existed).length, 1);
        }
      }
      assert.equal((await stores[0]!.queues.list())[0]!.counts.queued, 100);
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

  void test("a term is not granted while a write of the term before it is under way", () =>
    withStores(2, async ([a, b], url) => {
      const old = await a!.terms.grant("scheduler", { name: NODE, incarnation: "1" });
      await a!.jobs.submit([newJob()], AUTHOR);
      await a!.jobs.claim(request("n1", { leaseMs: 1 }));
      await withSession(url, async (session) => {
        // The old leader's write has passed its fence, and then has to wait for a row.
        await session.query("BEGIN");
        await session.query("SELECT FROM baton.live FOR UPDATE");
        const order: string[] = [];
        const writing = a!.jobs.recover({ by: "incarnations", incarnations: ["1"] }, DEFAULT_BUDGETS, old);
        const written = writing.then(() => order.push("written"));
        await waiting(server, url, 1);
        const granting = b!.terms.grant("scheduler", { name: node("node-b"), incarnation: "1" });
        const granted = granting.then(() => order.push("granted"));
        await sleep(50); // a grant that does not wait would be through by now
        assert.deepEqual(order, []);
        await session.query("COMMIT");
        await Promise.all([written, granted]);
        // Two connections: which answer is read first does not tell which commit was.
        assert.deepEqual(new Set(order), new Set(["written", "granted"]));
      });
      await assert.rejects(a!.jobs.recover({ by: "expiry" }, DEFAULT_BUDGETS, old), { code: "STALE_EPOCH" });
    }));

  void test("a write that meets a grant under way waits for it and is refused", () =>
    withStores(1, async ([a], url) => {
      const old = await a!.terms.grant("scheduler", { name: NODE, incarnation: "1" });
      await a!.jobs.submit([newJob()], AUTHOR);
      const { jobs } = await a!.jobs.claim(request("n1"));
      await withSession(url, async (session) => {
        await session.query("BEGIN");
        await session.query(
          "UPDATE baton.term SET epoch = epoch + 1, leader = 'node-b' WHERE role = 'scheduler'",
        );
        const refused = assert.rejects(
          a!.jobs.recover({ by: "incarnations", incarnations: ["1"] }, DEFAULT_BUDGETS, old),
          { code: "STALE_EPOCH" },
        );
        await waiting(server, url, 1);
        await session.query("COMMIT");
        await refused;
      });
      assert.equal((await a!.jobs.get(jobs[0]!.id))!.status, "processing");
    }));

  void test("a claim and the recovery of its lease do not leave a job that nobody holds", () =>
    withStores(2, async ([a, b]) => {
      const term = await a!.terms.grant("scheduler", { name: NODE, incarnation: "1" });
      for (let round = 0; round < 30; round++) {
        await a!.jobs.submit([newJob(), newJob()], AUTHOR);
        const dead = { by: "incarnations", incarnations: ["1"] } as const;
        await a!.jobs.claim(request("n1", { limit: 1 }));
        await Promise.all([
          a!.jobs.claim(request("n1")),
          b!.jobs.recover(dead, { ...DEFAULT_BUDGETS, crashesMax: 1_000 }, term),
        ]);
        await b!.jobs.recover(dead, { ...DEFAULT_BUDGETS, crashesMax: 1_000 }, term);
        const counts = (await b!.queues.list())[0]!.counts;
        assert.deepEqual([counts.queued, counts.processing], [(round + 1) * 2, 0], `round ${round}`);
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
        await waiting(server, url, 1);
        await server.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'baton' AND datname = current_database()",
          url,
        );
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
    const stores = await Promise.all(
      ["baton", "other"].map((schema) => openPostgresStore({ url, schema, clock: systemClock })),
    );
    try {
      await stores[0]!.jobs.submit([newJob()], AUTHOR);
      assert.deepEqual((await stores[1]!.jobs.list({ limit: 5 })).jobs, []);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
      await server.giveBack(url);
    }
  });

  void test("a write whose backend is killed is unavailable, and the next one works", () =>
    withStores(1, async ([store], url) => {
      await store!.jobs.submit([newJob()], AUTHOR);
      await withSession(url, async (session) => {
        await session.query("BEGIN; LOCK TABLE baton.job IN EXCLUSIVE MODE");
        const lost = assert.rejects(store!.jobs.submit([newJob()], AUTHOR), { code: "STORE_UNAVAILABLE" });
        await waiting(server, url, 1);
        await session.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'baton' AND datname = current_database()",
        );
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
        await server.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'baton' AND datname = current_database()",
          url,
        );
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
