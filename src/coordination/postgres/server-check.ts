/** What kind of server we talk to, looked at once at the start. */

import { BatonError } from "../../core/errors.ts";
import { read, write, type Queryable } from "../../platform/drivers/postgres.ts";
import { PostgresSession, type PostgresSessionOptions } from "../../platform/drivers/postgres-session.ts";

export interface ServerFacts {
  /** Whether a pooler between us gives each transaction to whichever session is free. */
  readonly pooled: boolean;
}

// Without names: behind a pooler a prepared statement may be gone, or be there already.
const STATE = read(
  "",
  `SELECT pg_is_in_recovery() AS in_recovery, to_regclass('baton.node') IS NOT NULL AS has_tables,
     inet_server_addr()::text AS address`,
);
const PID = read("", "SELECT pg_backend_pid() AS pid");
const BEGIN = write("", "BEGIN");
const COMMIT = write("", "COMMIT");

export async function checkServer(
  session: PostgresSession,
  options: PostgresSessionOptions,
): Promise<ServerFacts> {
  const [state] = await session.query<{ in_recovery: boolean; has_tables: boolean; address: string | null }>(
    STATE,
  );
  if (state!.in_recovery) {
    throw new BatonError(
      "BAD_CONFIG",
      `the database server${state!.address ? ` at ${state!.address}` : ""} is in recovery: a standby takes no writes, so nobody can lead or work on it; give "store" the URL of the primary`,
      { field: "store" },
    );
  }
  if (!state!.has_tables) {
    throw new BatonError(
      "BAD_CONFIG",
      `schema ${session.schema} has no tables of Baton in this database; the store makes them, start it first`,
      { field: "postgres.schema" },
    );
  }
  const other = new PostgresSession(options);
  await other.start();
  try {
    return { pooled: await shared(session, other) };
  } finally {
    await other.stop();
  }
}

/**
 * Two connections of our own have two sessions, always the same ones. A pooler is seen by what it does with sessions that
 * are free: it gives the one that was used last, or the next in its round, or the only one. While one connection keeps a
 * session busy, the other must get a different one, and who comes first then changes.
 */
async function shared(a: Queryable, b: Queryable): Promise<boolean> {
  const [pidA, pidB] = [await pidOf(a), await pidOf(b)];
  if (pidA === pidB) return true;
  for (const [busy, other] of [
    [a, b],
    [b, a],
  ] as const) {
    await busy.query(BEGIN);
    const seen = { busy: await pidOf(busy), other: await pidOf(other) };
    await busy.query(COMMIT);
    const expected = busy === a ? { busy: pidA, other: pidB } : { busy: pidB, other: pidA };
    if (seen.busy !== expected.busy || seen.other !== expected.other) return true;
  }
  return (await pidOf(b)) !== pidB || (await pidOf(a)) !== pidA;
}

async function pidOf(session: Queryable): Promise<number> {
  const [row] = await session.query<{ pid: number }>(PID);
  return row!.pid;
}
