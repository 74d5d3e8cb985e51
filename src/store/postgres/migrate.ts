/** Brings the schema of a PostgreSQL store up to date, one migration of schema.ts at a time. */

import { BatonError } from "../../core/errors.ts";
import { type Postgres, type Queryable, read, write } from "../../platform/drivers/postgres/postgres.ts";
import { MIGRATIONS } from "./schema.ts";

/** Building an index over years of history takes longer than the statement timeout of a node. */
const MIGRATION_MS = 3_600_000;

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

/** Brings the schema up to date. Many nodes may start at once, and if one dies half-way, the next one continues. */
export async function migrate(db: Postgres): Promise<void> {
  while ((await missing(db)) > 0) await db.transaction((tx) => step(db, tx), MIGRATION_MS);
}

async function missing(db: Postgres): Promise<number> {
  const [table] = await db.query<{ there: boolean }>(IS_THERE, [`${db.schema}.migration`]);
  return MIGRATIONS.length - (table!.there ? await version(db, db.schema) : 0);
}

/** One migration, or nothing if another node was faster. */
async function step(db: Postgres, tx: Queryable): Promise<void> {
  await tx.query(PATIENCE);
  await tx.query(ONE_AT_A_TIME);
  const [found] = await tx.query<{ there: boolean }>(HAS_SCHEMA, [db.schema]);
  if (!found!.there) await tx.query(MAKE_SCHEMA(db.schema));
  await tx.query(MAKE_TABLE);
  const next = (await version(tx, db.schema)) + 1;
  const migration = MIGRATIONS[next - 1];
  if (!migration) return;
  for (const [index, text] of migration.up.entries()) {
    await tx.query(write(`migration-${next}-${index}`, text));
  }
  await tx.query(NOTE, [next, migration.compatibleFrom]);
}

async function version(db: Queryable, schema: string): Promise<number> {
  const [found] = await db.query<{ version: number; compatible_from: number }>(FOUND);
  if (found!.compatible_from > MIGRATIONS.length) {
    throw new BatonError(
      "BAD_CONFIG",
      `schema ${schema} belongs to a newer version of Baton (it needs ${found!.compatible_from}, this version knows ${MIGRATIONS.length}); start that version, or use another schema`,
      { field: "schema" },
    );
  }
  return found!.version;
}
