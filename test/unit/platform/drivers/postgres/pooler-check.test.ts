/** A pooler of transactions: how it is noticed, and what our connections do and leave undone behind it. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hasCode } from "../../../../../src/core/errors.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { Postgres, read, write } from "../../../../../src/platform/drivers/postgres/postgres.ts";
import { poolerCheck } from "../../../../../src/platform/drivers/postgres/pooler-check.ts";
import { PostgresSession } from "../../../../../src/platform/drivers/postgres/session.ts";
import { systemRandom } from "../../../../../src/platform/random.ts";
import { TransactionPooler } from "../../../../support/lock-pooler.ts";
import { inEverySession, noPgBouncer, PgBouncer, withClients } from "../../../../support/pgbouncer.ts";
import { PostgresServer } from "../../../../support/postgres-server.ts";
import { TcpProxy } from "../../../../support/tcp-proxy.ts";

const SESSIONS = 4;
const SETTINGS = [
  "statement_timeout",
  "idle_in_transaction_session_timeout",
  "jit",
  "enable_seqscan",
  "enable_bitmapscan",
  "enable_mergejoin",
  "enable_hashjoin",
  "plan_cache_mode",
  "lock_timeout",
  "synchronous_commit",
  "tcp_user_timeout",
  "client_connection_check_interval",
];
const SETTINGS_NOW = `SELECT ${SETTINGS.map((name) => `current_setting('${name}') AS ${name}`).join(", ")},
  (SELECT count(*)::int FROM pg_prepared_statements) AS prepared, (SELECT count(*)::int FROM pg_listening_channels()) AS listens`;
const SEEN = read("pooler-test-seen", SETTINGS_NOW);
const PID = read("pooler-test-pid", "SELECT pg_backend_pid() AS pid");
const ADD = write("pooler-test-add", "INSERT INTO added (n) VALUES ($1::int) RETURNING n");
const LOCK = write("pooler-test-lock", "SELECT pg_advisory_xact_lock(7)");
const BROKEN = write("pooler-test-broken", "SELECT 1 / $1::int");

const warnings: Error[] = [];
const warned = (warning: Error): void => void warnings.push(warning);

let server: PostgresServer;
before(async () => {
  process.on("warning", warned);
  server = await PostgresServer.start();
});
after(async () => {
  process.off("warning", warned);
  await server.stop();
});

const clock = systemClock;
const look = (url: string): Promise<boolean> => poolerCheck({ url, clock }).pooled();
const unavailable = (error: unknown): boolean => hasCode(error, "STORE_UNAVAILABLE");

const seenByOthers = (url: string): Promise<unknown[]> => inEverySession(url, SESSIONS, SETTINGS_NOW);

describe("the look for a pooler", () => {
  test("is taken once for all who share it, and again only when it failed", async () => {
    const proxy = await TcpProxy.start(server.url("postgres"));
    try {
      await proxy.refuse();
      const check = poolerCheck({ url: proxy.through(server.url("postgres")), clock });
      await assert.rejects(check.pooled(), unavailable);
      await proxy.forward();
      const answers = await Promise.all([check.pooled(), check.pooled()]);
      await proxy.refuse();
      assert.deepEqual([...answers, await check.pooled()], [false, false, false]);
    } finally {
      await proxy.stop();
    }
  });

  test("gives up in time when nobody answers", async () => {
    const proxy = await TcpProxy.start(server.url("postgres"));
    try {
      await proxy.freeze();
      const from = clock.monotonic();
      const check = poolerCheck({ url: proxy.through(server.url("postgres")), clock, deadlineMs: 200 });
      await assert.rejects(check.pooled(), unavailable);
      assert.ok(clock.monotonic() - from < 5_000);
    } finally {
      await proxy.stop();
    }
  });

  test("tells of a password that is wrong, and where to put it right", async () => {
    const url = new URL(server.url("postgres"));
    url.username = "nobody_we_know";
    await assert.rejects(look(url.href), { code: "BAD_CONFIG", message: /check user/ });
  });

  test(
    "finds the pooler of transactions, and nothing wrong with one of whole sessions",
    { skip: noPgBouncer },
    async () => {
      const url = server.url("postgres");
      for (const sessions of [1, 2, SESSIONS]) {
        await using pooler = await PgBouncer.start(url, { mode: "transaction", sessions });
        assert.equal(await look(pooler.through(url)), true, `${sessions} sessions`);
      }
      await using pooler = await PgBouncer.start(url, { mode: "session", sessions: SESSIONS });
      assert.equal(await look(pooler.through(url)), false);
    },
  );

  test("finds it also while others keep it busy", { skip: noPgBouncer }, async () => {
    const url = server.url("postgres");
    await using pooler = await PgBouncer.start(url, { mode: "transaction", sessions: SESSIONS });
    await withClients(pooler.through(url), 3, async (others) => {
      const over = new AbortController();
      const busy = others.map(async (client) => {
        while (!over.signal.aborted) await client.query("SELECT 1");
      });
      try {
        for (let n = 0; n < 15; n++) assert.equal(await look(pooler.through(url)), true, `look ${n}`);
      } finally {
        over.abort();
        await Promise.all(busy);
      }
    });
  });
});

const poolers: readonly [
  string,
  string | false,
  (url: string) => Promise<AsyncDisposable & { url: string }>,
][] = [
  [
    "PgBouncer",
    noPgBouncer,
    async (url) => {
      const pooler = await PgBouncer.start(url, { mode: "transaction", sessions: SESSIONS });
      return Object.assign(pooler, { url: pooler.through(url) });
    },
  ],
  [
    "a pooler that goes round",
    false,
    (url) => TransactionPooler.start(url, { sessions: SESSIONS, order: "round" }),
  ],
];

for (const [name, skip, startPooler] of poolers) {
  describe(`behind ${name}`, { skip }, () => {
    let pooler: AsyncDisposable & { url: string };
    let untouched: object;
    before(async () => {
      const url = await server.createDatabase();
      await server.query("CREATE TABLE added (n int)", url);
      pooler = await startPooler(url);
      [untouched] = (await seenByOthers(pooler.url)) as [object];
    });
    after(() => pooler[Symbol.asyncDispose]());

    const options = () => ({
      url: pooler.url,
      clock,
      random: systemRandom,
      pooler: poolerCheck({ url: pooler.url, clock }),
    });

    test("transactions have their settings, and no session keeps any of them, nor a statement", async () => {
      await using db = new Postgres({ ...options(), statementMs: 7_000 });
      await using session = new PostgresSession({ ...options(), statementMs: 7_000 });
      await Promise.all([db.start(), session.start()]);
      const [seen] = await db.transaction((tx) => tx.query<Record<string, unknown>>(SEEN));
      const local = {
        ...untouched,
        statement_timeout: "7s",
        idle_in_transaction_session_timeout: "5s",
        jit: "off",
        enable_seqscan: "off",
        enable_bitmapscan: "off",
        enable_mergejoin: "off",
        enable_hashjoin: "off",
      };
      assert.deepEqual(seen, local);
      assert.deepEqual((await session.transaction([[SEEN, []]]))[0], [local]);
      assert.deepEqual(await db.query(SEEN), [untouched], "a single statement does without");
      assert.deepEqual(await session.query(SEEN), [untouched]);
      // In every session, with the connections still open.
      await Promise.all(
        Array.from({ length: 40 }, () => [db.query(ADD, [1]), session.query(ADD, [1])]).flat(),
      );
      for (const found of await seenByOthers(pooler.url)) assert.deepEqual(found, untouched);
    });

    test("statements of a transaction are together, whole or not at all, and those of others do not come between", async () => {
      await using db = new Postgres(options());
      await using session = new PostgresSession(options());
      await Promise.all([db.start(), session.start()]);
      const count = async () =>
        (await db.query<{ n: number }>(read("", "SELECT count(*)::int AS n FROM added")))[0]!.n;
      const before = await count();
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const pids = await db.transaction((tx) =>
            Promise.all([tx.query<{ pid: number }>(PID), tx.query(ADD, [2]), tx.query<{ pid: number }>(PID)]),
          );
          assert.deepEqual(pids[0], pids[2]);
        }),
      );
      const together = await Promise.all(
        Array.from({ length: 20 }, () =>
          session.transaction([
            [PID, []],
            [ADD, [2]],
            [PID, []],
          ]),
        ),
      );
      for (const [first, , last] of together) assert.deepEqual(first, last);
      assert.equal(await count(), before + 40);

      const broken = /division by zero/;
      await assert.rejects(
        db.transaction((tx) => Promise.all([tx.query(ADD, [3]), tx.query(BROKEN, [0]), tx.query(ADD, [3])])),
        broken,
      );
      await assert.rejects(
        session.transaction([
          [ADD, [3]],
          [BROKEN, [0]],
          [ADD, [3]],
        ]),
        broken,
      );
      assert.equal(await count(), before + 40, "nothing of it was kept");
      // The second of a pair runs whatever the first did, and both connections are as good as before.
      assert.deepEqual(await db.pair([BROKEN, [0]], [ADD, [4]]), [null, [{ n: 4 }]], "and is not lost");
      assert.deepEqual(await db.pair([ADD, [5]], [ADD, [6]]), [[{ n: 5 }], [{ n: 6 }]]);
      assert.equal(await count(), before + 43);
    });

    test("a transaction that stands still is ended by the server, and holds nobody up", async () => {
      await using db = new Postgres({ ...options(), statementMs: 300 });
      await db.start();
      const held = db.transaction(async (tx) => {
        await tx.query(LOCK);
        await assert.doesNotReject(db.query(LOCK, [], 5_000), "another has it meanwhile");
        await tx.query(ADD, [3]);
      }, 10_000);
      await assert.rejects(held, unavailable);
      assert.equal((await db.query(PID)).length, 1);
    });

    test("when all sessions are taken, calls wait, and fail within their deadline as unavailable", async () => {
      await using db = new Postgres(options());
      await using session = new PostgresSession(options());
      await Promise.all([db.start(), session.start()]);
      await withClients(pooler.url, SESSIONS, async (hogs) => {
        await Promise.all(hogs.map((client) => client.query("BEGIN")));
        const from = clock.monotonic();
        const patient = [db.query(ADD, [7]), session.query(ADD, [7])];
        await assert.rejects(db.query(ADD, [8], 150), unavailable);
        await assert.rejects(
          db.transaction((tx) => tx.query(ADD, [8]), 150),
          unavailable,
        );
        assert.ok(clock.monotonic() - from < 3_000);
        await Promise.all(hogs.map((client) => client.query("COMMIT")));
        assert.deepEqual(await Promise.all(patient), [[{ n: 7 }], [{ n: 7 }]]);
        assert.deepEqual(await db.query(ADD, [9]), [{ n: 9 }]);

        await Promise.all(hogs.map((client) => client.query("BEGIN")));
        await assert.rejects(session.query(ADD, [8], { deadlineMs: 150 }), unavailable);
        await Promise.all(hogs.map((client) => client.query("COMMIT")));
      });
      // Given up with its deadline, and opened again by itself.
      const until = clock.monotonic() + 5_000;
      while (!session.open && clock.monotonic() < until) await clock.sleep(10);
      assert.deepEqual(await session.query(ADD, [9]), [{ n: 9 }]);
    });
  });
}

test("a pooler that takes no more clients is unavailable, not a crash", { skip: noPgBouncer }, async () => {
  const url = server.url("postgres");
  await using pooler = await PgBouncer.start(url, {
    mode: "transaction",
    sessions: SESSIONS,
    settings: ["max_client_conn = 3", "query_wait_timeout = 1"],
  });
  const through = pooler.through(url);
  await using db = new Postgres({ url: through, clock, pooler: poolerCheck({ url: through, clock }) });
  await db.start();
  await withClients(through, 2, async () => {
    const answers = await Promise.allSettled(Array.from({ length: 8 }, () => db.query(PID)));
    const refused = answers.filter((answer) => answer.status === "rejected");
    assert.ok(refused.length < answers.length, "the connection that it has goes on");
    for (const { reason } of refused) assert.ok(unavailable(reason), String(reason));
  });
  assert.equal((await db.query(PID)).length, 1);
});

test("and all of it was done in no way that the driver warns of", () => assert.deepEqual(warnings, []));
