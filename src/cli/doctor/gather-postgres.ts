/** Gathers facts about the database, on one connection that changes nothing. */

import { Client } from "pg";
import type { Clock } from "../../platform/clock.ts";
import { PoolerCheck } from "../../platform/drivers/postgres/pooler-check.ts";
import { sampleClock } from "./clock-samples.ts";
import type { ClockReading } from "./judge-clocks.ts";
import { readingOf } from "./judge-clocks.ts";
import type { LongTransaction, PostgresFacts } from "./judge-postgres.ts";

export interface PostgresQuestion {
  readonly url: string;
  readonly schema: string;
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** From when on a transaction counts as long. */
  readonly longMs?: number;
}

/** Vacuum comes round about once a minute; what is open for several rounds is felt. */
const LONG_MS = 300_000;

const SETTINGS = `
  SELECT name, setting FROM pg_settings WHERE name IN (
    'fsync', 'full_page_writes', 'synchronous_commit', 'max_connections', 'superuser_reserved_connections',
    'reserved_connections', 'idle_session_timeout', 'statement_timeout', 'transaction_timeout', 'lock_timeout',
    'autovacuum', 'track_counts', 'default_transaction_read_only')`;

const IDENTITY = `
  SELECT current_setting('server_version_num')::int AS version, current_user AS "user", pg_is_in_recovery() AS "inRecovery",
         r.rolsuper AS superuser, r.rolconnlimit AS "roleLimit", d.datconnlimit AS "databaseLimit",
         has_database_privilege(d.oid, 'CREATE') AS "mayCreate",
         (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = $1) AS "schemaOwner",
         (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'
             AND application_name NOT LIKE 'baton%') AS "otherSessions"
    FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()`;

/** Transactions that are open, those that were prepared and left, and slots of replication that hold rows back. */
const LONG = `
  SELECT format('pid %s (%s%s)', pid, coalesce(nullif(application_name, ''), usename),
                CASE WHEN state = 'idle in transaction' THEN ', idle in its transaction' ELSE '' END) AS who,
         extract(epoch FROM now() - xact_start)::float8 * 1000 AS "ageMs",
         format('SELECT pg_terminate_backend(%s), or end it where it was begun', pid) AS remedy
    FROM pg_stat_activity
   WHERE xact_start < now() - $1 * interval '1 millisecond' AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  UNION ALL
  SELECT format('the prepared transaction %s', gid), extract(epoch FROM now() - prepared)::float8 * 1000,
         format('COMMIT PREPARED or ROLLBACK PREPARED %L', gid)
    FROM pg_prepared_xacts WHERE prepared < now() - $1 * interval '1 millisecond'
   ORDER BY 2 DESC LIMIT 5`;

const BLOATED = `
  SELECT format('%I.%I', schemaname, relname) AS "table", n_dead_tup::float8 AS dead, n_live_tup::float8 AS live
    FROM pg_stat_user_tables
   WHERE schemaname = $1 AND n_dead_tup > 50000 AND n_dead_tup > 2 * n_live_tup
   ORDER BY n_dead_tup DESC LIMIT 3`;

export interface PostgresAnswer {
  readonly facts: PostgresFacts;
  readonly clock: ClockReading | null;
}

/** Rejects with what the driver says when there is no answer in time. */
export async function askPostgres({
  url,
  schema,
  clock,
  deadlineMs,
  longMs = LONG_MS,
}: PostgresQuestion): Promise<PostgresAnswer> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: deadlineMs,
    query_timeout: deadlineMs,
    application_name: "baton doctor",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const rows = async <Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
      (await client.query(text, [...values])).rows as Row[];
    const [identity] = await rows<Identity>(IDENTITY, [schema]);
    const settings = await rows<{ name: string; setting: string }>(SETTINGS);
    const longTransactions = await rows<LongTransaction>(LONG, [longMs]);
    const bloated = await rows<PostgresFacts["bloated"][number]>(BLOATED, [schema]);
    const samples = await sampleClock(clock, async () => (await rows<{ at: number }>(NOW))[0]!.at);
    const { roleLimit, databaseLimit, ...rest } = identity!;
    const pooler = new PoolerCheck({ url, clock, applicationName: "baton doctor", deadlineMs });
    const facts: PostgresFacts = {
      ...rest,
      roleLimit: roleLimit < 0 || rest.superuser ? null : roleLimit,
      databaseLimit: databaseLimit < 0 ? null : databaseLimit,
      settings: Object.fromEntries(settings.map(({ name, setting }) => [name, setting])),
      pooled: await pooler.pooled(),
      longTransactions,
      bloated,
    };
    return { facts, clock: readingOf("the database", samples) };
  } finally {
    // Not waited for: a server that has gone silent would not say good-bye either.
    void client.end().catch(() => {});
  }
}

interface Identity extends Omit<
  PostgresFacts,
  "roleLimit" | "databaseLimit" | "settings" | "pooled" | "longTransactions" | "bloated"
> {
  readonly roleLimit: number;
  readonly databaseLimit: number;
}

const NOW = "SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS at";
