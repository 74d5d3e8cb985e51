/** Checks once at the start whether the server can be used. */

import { BatonError } from "../../core/errors.ts";
import { read } from "../../platform/drivers/postgres/postgres.ts";
import type { PostgresSession } from "../../platform/drivers/postgres/session.ts";

const STATE = read(
  "server-state",
  `SELECT pg_is_in_recovery() AS in_recovery, to_regclass('baton.node') IS NOT NULL AS has_tables,
     inet_server_addr()::text AS address`,
);

export async function checkServer(session: PostgresSession): Promise<void> {
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
}
