import type { Queue } from "bullmq";
import type { Pool, PoolClient } from "pg";

/** Redis is no part of a transaction of PostgreSQL, so jobs are stored there first and moved to the queue afterwards. */
export const OUTBOX = `CREATE TABLE IF NOT EXISTS outbox (
  id bigserial PRIMARY KEY, name text NOT NULL, data jsonb NOT NULL
)`;

export async function submit(client: PoolClient, name: string, data: object): Promise<void> {
  await client.query("INSERT INTO outbox (name, data) VALUES ($1, $2)", [name, data]);
}

/** The job's id makes a repetition harmless: a row whose removal was not committed is added again. */
export async function relay(pool: Pool, queue: Queue): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const { rows } = await client.query("SELECT * FROM outbox ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED");
    await queue.addBulk(rows.map(({ id, name, data }) => ({ name, data, opts: { jobId: `outbox-${id}` } })));
    await client.query("DELETE FROM outbox WHERE id = ANY($1)", [rows.map(({ id }) => id)]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}
