/**
 * How many dead rows the hot tables hold, and which session keeps PostgreSQL from removing them. Every change of a row
 * leaves a dead version. VACUUM removes it once no transaction can still see it, so a single transaction that stays open
 * (a report, a backup, a forgotten psql) makes the tables grow and claims slower.
 *
 * Sessions of other roles are shown only to members of pg_read_all_stats; without it they are missing here.
 */

import { read } from "../../platform/drivers/postgres/postgres.ts";
import type { DeadRows } from "../store.ts";
import type { StoreCache } from "./jobs/store-cache.ts";

/** Those that change with every job. */
const TABLES = ["assignment", "done", "job", "lease", "live", "message", "tally"];

const DEAD = read(
  "dead-rows",
  `SELECT relname AS name, n_live_tup::float8 AS live, n_dead_tup::float8 AS dead, pg_total_relation_size(relid)::float8 AS bytes
   FROM pg_stat_user_tables WHERE relid = ANY (ARRAY[${TABLES.map((name) => `'baton.${name}'::regclass`).join(", ")}])
   ORDER BY relname`,
);

/** A snapshot (xmin) or an own number (xid) holds rows back. VACUUM itself does neither. */
const OLDEST = read(
  "dead-rows-oldest",
  `SELECT holder, remedy, (extract(epoch FROM clock_timestamp() - since) * 1000)::float8 AS "ageMs" FROM (
     SELECT format('session %s of user %s (%s, %s)', pid, usename, coalesce(nullif(application_name, ''), 'no application name'),
         coalesce(state, backend_type)) AS holder,
       format('SELECT pg_terminate_backend(%s)', pid) AS remedy, xact_start AS since
     FROM pg_stat_activity
     WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND xact_start IS NOT NULL AND datname = current_database()
       AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'
     UNION ALL
     SELECT format('prepared transaction %L of user %s', gid, owner), format('ROLLBACK PREPARED %L', gid), prepared
     FROM pg_prepared_xacts WHERE database = current_database()
   ) AS holders ORDER BY since LIMIT 1`,
);

export async function deadRows({ db }: StoreCache): Promise<DeadRows> {
  const [tables, [oldest]] = await Promise.all([
    db.query<DeadRows["tables"][number]>(DEAD),
    db.query<NonNullable<DeadRows["oldestSnapshot"]>>(OLDEST),
  ]);
  return { tables, oldestSnapshot: oldest ?? null };
}
