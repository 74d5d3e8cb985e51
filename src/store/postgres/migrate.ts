/**
 * Brings the schema of a PostgreSQL store up to date, one migration of schema.ts at a time, while nodes of the version
 * before run on it.
 *
 * A statement that waits for the lock of a table makes everybody wait who comes after it. So a migration waits only
 * briefly, is rolled back, and begins again after a pause.
 */

import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { isLockTimeout } from "../../platform/drivers/postgres/errors.ts";
import { type Postgres, type Queryable, read, write } from "../../platform/drivers/postgres/postgres.ts";
import { type Migration, MIGRATIONS } from "./schema.ts";

/** Building an index over years of history takes longer than the statement timeout of a node. */
const MIGRATION_MS = 3_600_000;
/**
 * So long others wait behind a migration that waits. Shorter than `deadlock_timeout` (1 s), and PostgreSQL does not end an
 * autovacuum that is in the way.
 */
const LOCK_MS = 1_500;
/** In which those who waited are served. */
const PAUSE_MS = 1_000;
/** Transactions of nodes end sooner. Who is still in the way then has to be told to somebody. */
const IN_THE_WAY_MS = 60_000;

const IS_THERE = read("migrations-there", "SELECT to_regclass($1) IS NOT NULL AS there");
const FOUND = read(
  "migrations-found",
  "SELECT coalesce(max(version), 0) AS version, coalesce(max(compatible_from), 0) AS compatible_from FROM baton.migration",
);
const PATIENCE = write("migrations-patience", "SET LOCAL statement_timeout = 0");
/** An advisory lock, because there is no table before the first start. It ends with the transaction. */
const ONE_AT_A_TIME = write(
  "migrations-lock",
  "SELECT pg_advisory_xact_lock(hashtextextended('baton.migration', 0))",
);
const BRIEFLY = write("migrations-briefly", `SET LOCAL lock_timeout = '${LOCK_MS}ms'`);
const NO_LONGER = write("migrations-no-longer", "SET LOCAL lock_timeout = 0");
/** Checked first: CREATE SCHEMA IF NOT EXISTS needs the right to create even if the schema exists. */
const HAS_SCHEMA = write("migrations-has-schema", "SELECT to_regnamespace($1) IS NOT NULL AS there");
const MAKE_SCHEMA = (schema: string) => write("migrations-schema", `CREATE SCHEMA IF NOT EXISTS ${schema}`);
const MAKE_TABLE = write(
  "migrations-table",
  `CREATE TABLE IF NOT EXISTS baton.migration (
    version int PRIMARY KEY, compatible_from int NOT NULL, ran_at timestamptz NOT NULL DEFAULT now()
  )`,
);
const NOTE = write(
  "migrations-note",
  "INSERT INTO baton.migration (version, compatible_from) VALUES ($1, $2)",
);
/** The oldest transaction that has locked one of our tables. Sessions of other roles have no name without pg_read_all_stats. */
const IN_THE_WAY = read(
  "migrations-in-the-way",
  `SELECT format('session %s of user %s (%s)', pid, usename, coalesce(nullif(application_name, ''), 'no application name')) AS holder
   FROM pg_stat_activity a WHERE pid <> pg_backend_pid() AND EXISTS (
     SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
     WHERE l.pid = a.pid AND l.granted AND c.relnamespace = to_regnamespace($1)
   ) ORDER BY xact_start LIMIT 1`,
);

/** Many nodes may start at once, and if one dies half-way, the next one continues. */
export async function migrate(
  db: Postgres,
  clock: Clock,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const startedAt = clock.monotonic();
  while ((await missing(db, migrations)) > 0) {
    try {
      await db.transaction((tx) => step(db, tx, migrations), MIGRATION_MS);
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (clock.monotonic() >= startedAt + IN_THE_WAY_MS) throw await inTheWay(db, error);
      await clock.sleep(PAUSE_MS);
    }
  }
}

async function missing(db: Postgres, migrations: readonly Migration[]): Promise<number> {
  const [table] = await db.query<{ there: boolean }>(IS_THERE, [`${db.schema}.migration`]);
  return migrations.length - (table!.there ? await version(db, db.schema, migrations) : 0);
}

/** One migration, or nothing if another node was faster. */
async function step(db: Postgres, tx: Queryable, migrations: readonly Migration[]): Promise<void> {
  await tx.query(PATIENCE);
  await tx.query(ONE_AT_A_TIME);
  const [found] = await tx.query<{ there: boolean }>(HAS_SCHEMA, [db.schema]);
  if (!found!.there) await tx.query(MAKE_SCHEMA(db.schema));
  await tx.query(MAKE_TABLE);
  const next = (await version(tx, db.schema, migrations)) + 1;
  const migration = migrations[next - 1];
  if (!migration) return;
  await tx.query(BRIEFLY);
  for (const [index, text] of migration.up.entries()) {
    await tx.query(write(`migration-${next}-${index}`, text));
  }
  await tx.query(NO_LONGER);
  await tx.query(NOTE, [next, migration.compatibleFrom]);
}

async function version(db: Queryable, schema: string, migrations: readonly Migration[]): Promise<number> {
  const [found] = await db.query<{ version: number; compatible_from: number }>(FOUND);
  if (found!.compatible_from > migrations.length) {
    throw new BatonError(
      "BAD_CONFIG",
      `schema ${schema} belongs to a newer version of Baton (it needs ${found!.compatible_from}, this version knows ${migrations.length}); start that version, or use another schema`,
      { field: "schema" },
    );
  }
  return found!.version;
}

async function inTheWay(db: Postgres, cause: unknown): Promise<BatonError> {
  const [found] = await db.query<{ holder: string }>(IN_THE_WAY, [db.schema]);
  const holder = found?.holder ?? "a transaction";
  return new BatonError(
    "STORE_UNAVAILABLE",
    `the tables of schema ${db.schema} cannot be brought up to date: ${holder} has locked one of them for a minute; end it and start again`,
    {},
    { cause },
  );
}
