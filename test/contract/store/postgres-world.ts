/** What tests of several connections to one PostgreSQL share. */

import assert from "node:assert/strict";
import type { SharedPostgres } from "../../support/postgres-server.ts";
import { eventually } from "../../support/wait.ts";

const WAITING = `SELECT 1 FROM pg_stat_activity
  WHERE application_name = 'baton' AND wait_event_type = 'Lock' AND datname = current_database()`;

/** Until so many statements of Baton wait for a lock. */
export async function waiting(server: SharedPostgres, url: string, count: number): Promise<void> {
  const found = await eventually("statements to wait for a lock", async () => {
    const rows = await server.query(WAITING, url);
    return rows.length >= count && rows.length;
  });
  assert.equal(found, count);
}
