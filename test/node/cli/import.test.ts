/** Import from what BullMQ 6.7.0 and pg-boss 12.38.0 have written, recorded by test/adapters/record-import.ts. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { runCli } from "../../unit/cli/run-cli.ts";
import { importSuite, jobsOf, opened } from "../../support/import-suite.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { recordPostgres, recordRedis } from "../../support/recorded-systems.ts";
import { RedisServer } from "../../support/redis-server.ts";

/** A moment before the next time of the schedules. */
const RECORDED_AT = Date.UTC(2026, 10, 20, 1, 45);

function recorded(file: string): unknown {
  return JSON.parse(readFileSync(new URL(file, import.meta.url), "utf8"));
}

async function redisWith(commands: readonly (readonly string[])[]): Promise<RedisServer> {
  const server = await RedisServer.start();
  for (const command of commands) await server.command(...command);
  return server;
}

const BULLMQ = recorded("bullmq-6.7.0.json") as string[][];
const PG_BOSS = recorded("pg-boss-12.38.0.json") as string[];

importSuite("bullmq", "bullmq", async () => {
  const server = await redisWith(BULLMQ);
  const contents = async () => JSON.stringify(await recordRedis(server));
  return { url: server.url(), now: RECORDED_AT, contents, close: () => server.stop() };
});

importSuite("pg-boss", "pg-boss", async () => {
  const server = await PostgresServer.shared();
  const url = await server.createDatabase();
  await server.query(PG_BOSS.join(";\n"), url);
  const contents = async () =>
    JSON.stringify(await recordPostgres((sql) => server.query(sql, url), "pgboss"));
  return { url, now: RECORDED_AT, contents, close: () => server.stop() };
});

async function redisHere(t: TestContext, commands: readonly (readonly string[])[]): Promise<RedisServer> {
  const server = await redisWith(commands);
  t.after(() => server.stop());
  return server;
}

async function postgresHere(t: TestContext, statements: readonly string[]) {
  const server = await PostgresServer.shared();
  t.after(() => server.stop());
  const url = await server.createDatabase();
  await server.query([...statements, "SELECT 1"].join(";\n"), url);
  return { url, query: (sql: string) => server.query(sql, url) };
}

function importing(kind: string, url: string, node: { readonly url: string }, ...args: string[]) {
  const now = (): number => RECORDED_AT;
  return runCli(["import", kind, url, "--url", node.url, ...args], { clock: { ...systemClock, now } });
}

describe("baton import bullmq, besides", () => {
  it("takes the time of a schedule that has come, unless the schedule is here already", async (t) => {
    const { node, client } = await opened(t);
    const server = await redisHere(t, BULLMQ);
    const clock = { ...systemClock, now: () => RECORDED_AT + 86_400_000 };
    const args = ["import", "bullmq", server.url(), "--queue", "mail", "--url", node.url];
    await runCli(args, { clock });
    const reports = async () => (await jobsOf(client)).filter((job) => job.startsWith("report"));
    assert.deepEqual(await reports(), Array(2).fill('report mail -2 3 {"all":true}'));
    // The next ones are due as well, and the schedules here have run them.
    await server.command("DEL", "bull:mail:delayed");
    for (const [id, at] of [
      ["nightly", 1],
      ["local", 2],
    ] as const) {
      const due = RECORDED_AT + at;
      await server.command("ZADD", "bull:mail:delayed", String(due * 4_096), `repeat:${id}:${due}`);
      const job = { name: "report", data: "{}", opts: "{}", timestamp: String(due), rjk: id };
      await server.command("HSET", `bull:mail:repeat:${id}:${due}`, ...Object.entries(job).flat());
    }
    await runCli(args, { clock });
    assert.equal((await reports()).length, 2);
  });

  it("takes the jobs that it can when others are refused, and names those", async (t) => {
    const { node, client } = await opened(t);
    const job = (id: string, name: string, data: unknown) => {
      const fields = { name, data: JSON.stringify(data), opts: "{}", timestamp: "1" };
      return ["HSET", `bull:q:${id}`, ...Object.entries(fields).flat()];
    };
    const ids = Array.from({ length: 1_200 }, (_, n) => String(n));
    const server = await redisHere(t, [
      ["HSET", "bull:q:meta", "version", "bullmq:6.7.0", "paused", "1"],
      ["LPUSH", "bull:q:wait", ...ids, "large", "deep"],
      ...[0, 700].map((n) => job(String(n), "t", { n })),
      job("large", "t", "x".repeat(3_000_000)),
      job("deep", "t", JSON.parse("[".repeat(80) + "]".repeat(80))),
    ]);
    const { code, out, err } = await importing("bullmq", server.url(), node);
    assert.equal(code, 1);
    assert.deepEqual(await jobsOf(client), ['t q 0 1 {"n":0}', 't q 0 1 {"n":700}']);
    assert.match(out, /^FROM +QUEUE +TASK +IMPORTED +EXISTED +REFUSED\nq +q +t +2 +0 +2$/m);
    assert.match(out, /^q large: .*BODY_TOO_LARGE\)$/m);
    assert.match(out, /^q deep: .*64 levels/m);
    assert.match(err, /^error: 2 jobs and 0 schedules cannot be imported$/m);
  });

  it("refuses what it does not understand, and says what to do", async (t) => {
    const { node } = await opened(t);
    const server = await redisHere(t, [["HSET", "bull:old:meta", "version", "bullmq:4.18.0"]]);
    const old = await importing("bullmq", server.url(), node);
    assert.deepEqual([old.code, old.out], [4, ""]);
    assert.match(
      old.err,
      /^error: queue "old" was written by bullmq 4\.18\.0; versions 5 and 6 are understood$/m,
    );
    const none = await importing("bullmq", server.url(), node, "--prefix", "jobs");
    assert.equal(none.code, 3);
    assert.match(none.err, /there is no queue in redis:\S+ under the prefix "jobs"\nhint: .*--prefix/);
    const wrong = await importing("bullmq", "postgres://x", node);
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /^error: the URL of Redis must be/);
    const away = await importing("bullmq", "redis://127.0.0.1:1", node);
    assert.equal(away.code, 5);
    assert.match(away.err, /^error: Redis is not available: .*\nhint: does it run/m);
  });
});

describe("baton import pg-boss, besides", () => {
  it("refuses what it does not understand, and says what to do", async (t) => {
    const { node } = await opened(t);
    const { url, query } = await postgresHere(t, PG_BOSS);
    const elsewhere = await importing("pg-boss", url, node, "--schema", "jobs");
    assert.equal(elsewhere.code, 3);
    assert.match(
      elsewhere.err,
      /no pg-boss in the schema "jobs"\nhint: pg-boss is in the schema pgboss: --schema/,
    );
    await query("UPDATE pgboss.version SET version = 30");
    const old = await importing("pg-boss", url, node);
    assert.equal(old.code, 4);
    assert.match(
      old.err,
      /have version 30; version 46 \(pg-boss 12\.38\) is understood\nhint: upgrade pg-boss/,
    );
    const wrong = await importing("pg-boss", "redis://x", node);
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /^error: the URL must be as postgres:/);
    const away = await importing("pg-boss", "postgres://nobody@127.0.0.1:1/x", node);
    assert.equal(away.code, 5);
    assert.match(away.err, /^error: no connection to the database: /);
  });

  it("warns of programs that may run the same jobs", async (t) => {
    const { node } = await opened(t);
    const { url, query } = await postgresHere(t, PG_BOSS);
    await query("INSERT INTO pgboss.instance (heartbeat_on, heartbeat_seconds) VALUES (now(), 60)");
    const { err } = await importing("pg-boss", url, node, "--queue", "reports", "--dry-run");
    assert.match(err, /^warning: queue reports: 1 running program has pg-boss open and may also run/m);
  });
});
