/** What tests of several connections to one PostgreSQL share: the server of the test file, stores, and sessions of somebody else. */

import assert from "node:assert/strict";
import { after } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../../src/platform/clock.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/store/postgres/store.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { eventually } from "../../support/wait.ts";

export const server = await PostgresServer.shared();
after(() => server.stop());

/** Stores with a pool each, on a database without rows. */
export async function withStores(
  count: number,
  proof: (stores: readonly PostgresStore[], url: string) => Promise<void>,
  fields: { readonly statementMs?: number } = {},
): Promise<void> {
  const url = await server.databaseWithTables();
  await withStoresOn(url, count, (stores) => proof(stores, url), fields);
  await server.clear(url);
}

export async function withStoresOn(
  url: string,
  count: number,
  proof: (stores: readonly PostgresStore[]) => Promise<void>,
  fields: { readonly statementMs?: number; readonly schema?: string } = {},
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

/** A session of somebody else. What it has open at the end is rolled back. */
export async function withSession(
  url: string,
  work: (session: Client) => Promise<void>,
  name?: string,
): Promise<void> {
  const session = new Client({ connectionString: url, application_name: name });
  session.on("error", () => {});
  await session.connect();
  try {
    await work(session);
  } finally {
    await session.end();
  }
}

/** Ends all sessions of Baton on that database. */
export function endSessions(url: string): Promise<unknown> {
  return server.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'baton' AND datname = current_database()",
    url,
  );
}

const WAITING = `SELECT 1 FROM pg_stat_activity
  WHERE application_name = 'baton' AND wait_event_type = 'Lock' AND datname = current_database()`;

/** Until so many statements of Baton wait for a lock. */
export async function waiting(url: string, count: number): Promise<void> {
  const found = await eventually("statements to wait for a lock", async () => {
    const rows = await server.query(WAITING, url);
    return rows.length >= count && rows.length;
  });
  assert.equal(found, count);
}
