/** The tables of Baton's store from outside, for what a benchmark does with them and no user would. */

import { Client } from "pg";

/** Jobs and schedules. The rest has numbers in it that living nodes remember. */
const FORGOTTEN = ["job", "live", "done", "tally", "log", "schedule", "occurrence"];

/** Also while nodes are up. */
export async function emptyTables(url: string, schema = "baton"): Promise<void> {
  await withClient(url, async (client) => {
    const { rows } = await client.query("SELECT to_regclass($1) IS NOT NULL AS there", [`${schema}.live`]);
    if (!(rows[0] as { there: boolean }).there) return;
    const truncate = `TRUNCATE ${FORGOTTEN.map((table) => `${schema}.${table}`).join(", ")}`;
    for (let tries = 1; ; tries++) {
      try {
        return void (await client.query(truncate));
      } catch (error) {
        // A node that claims takes the same locks in another order.
        if ((error as { code?: string }).code !== "40P01" || tries === 5) throw error;
      }
    }
  });
}

export function storeBytes(url: string): Promise<number> {
  return withClient(url, async (client) => {
    const { rows } = await client.query(
      `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 AS bytes FROM pg_class c
       JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'baton' AND c.relkind IN ('r', 't')`,
    );
    return (rows[0] as { bytes: number }).bytes;
  });
}

/** A time and chance, as the ids of real jobs have them, on any version of the server. */
const NEW_ID = `(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
  || '7' || right(replace(gen_random_uuid()::text, '-', ''), 19))::uuid`;
const PIECE = 50_000;
/** A batch of settlements adds one row to the counts. */
const PER_TALLY = 500;

/** As many as a worker settles in a few batches. */
const TEMPLATES = 1_000;

/** Finished jobs until there are so many: copies of those that ran, whatever columns they have. */
export async function multiplyHistory(url: string, count: number): Promise<void> {
  await withClient(url, async (client) => {
    const had = await client.query<{ n: number }>("SELECT coalesce(sum(n), 0)::int AS n FROM baton.done");
    const missing = count - had.rows[0]!.n;
    await client.query(
      `CREATE TEMP TABLE old_done AS SELECT * FROM baton.done ORDER BY seq LIMIT ${TEMPLATES};
       CREATE TEMP TABLE old_job AS SELECT j.* FROM baton.job j JOIN old_done d USING (id);
       CREATE TEMP TABLE old AS SELECT seq, row_number() OVER () - 1 AS n FROM old_done`,
    );
    const [jobs, ends] = [await copies(client, "job"), await copies(client, "done")];
    for (let left = missing; left > 0; left -= PIECE) {
      await client.query(
        `WITH fresh AS MATERIALIZED (
           SELECT nextval('baton.job_seq') AS seq, ${NEW_ID} AS id, old.seq AS template
           FROM generate_series(1, ${Math.min(left, PIECE)}) AS i
           JOIN old ON old.n = i % (SELECT count(*) FROM old)
         ), jobs AS (${jobs}) ${ends}`,
      );
    }
    await client.query(
      `INSERT INTO baton.tally (kind, status, n)
       SELECT kind, 3, ${PER_TALLY} FROM generate_series(1, $1::int) CROSS JOIN (SELECT min(kind) AS kind FROM old_job) AS k`,
      [Math.round(missing / PER_TALLY)],
    );
    for (const table of ["job", "done"]) await client.query(`VACUUM (ANALYZE) baton.${table}`);
  });
}

/** The statement that copies what `fresh` asks for. */
async function copies(client: Client, table: "job" | "done"): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'baton' AND table_name = $1",
    [table],
  );
  const names = rows.map(({ name }) => name);
  const single: Readonly<Record<string, string>> = { seq: "fresh.seq", id: "fresh.id", n: "1" };
  const values = names.map((name) => single[name] ?? `old.${name}`);
  return `INSERT INTO baton.${table} (${names.join(", ")})
    SELECT ${values.join(", ")} FROM fresh JOIN old_${table} AS old ON old.seq = fresh.template ORDER BY fresh.seq`;
}

async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
