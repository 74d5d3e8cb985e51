import assert from "node:assert/strict";
import { Socket } from "node:net";
import { after, test } from "node:test";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { Postgres, read } from "../../../../../src/platform/drivers/postgres/postgres.ts";
import { PostgresServer } from "../../../../support/postgres-server.ts";

const SHORT = read("postgres-test-short", "SELECT pg_sleep(0.05)");
const LONG = read("postgres-test-long", "SELECT pg_sleep(60)");

const server = await PostgresServer.shared();
after(() => server.stop());

/** Connections to the server that this process has open. */
function sockets(): number {
  const handles = (process as unknown as { _getActiveHandles(): unknown[] })._getActiveHandles();
  return handles.filter((handle) => handle instanceof Socket && handle.remotePort === server.port).length;
}

test("a stop returns when every connection of the pool is closed", async () => {
  const before = sockets();
  const db = new Postgres({ url: server.url("postgres"), clock: systemClock, connections: 5 });
  await db.start();
  await Promise.all(Array.from({ length: 5 }, () => db.query(SHORT)));
  assert.equal(sockets(), before + 5);
  await db.stop();
  assert.equal(sockets(), before);
});

test("a stop also closes a connection whose statement is not answered", async () => {
  const before = sockets();
  const db = new Postgres({ url: server.url("postgres"), clock: systemClock, connections: 2 });
  await db.start();
  const unanswered = assert.rejects(db.query(LONG));
  await db.query(SHORT);
  await db.stop();
  assert.equal(sockets(), before);
  await unanswered;
});
