/**
 * An order and the job that sends its receipt, in one transaction of the program's own: both or neither. No outbox table
 * and nobody who polls it.
 *
 *     DATABASE_URL=postgres://user@host/database npx node examples/postgres-transaction/index.ts
 */

import { createNode, defineTask, type JobHandle } from "batonjs";
import { Pool } from "pg";
import { z } from "zod";

const url = process.env["DATABASE_URL"];
if (!url) throw new Error("DATABASE_URL is missing; give it as postgres://user@host/database");

const receipt = defineTask({
  name: "receipt",
  schema: z.object({ customer: z.string(), cents: z.int() }),
  run: ({ customer, cents }) => `${customer} gets a receipt for ${cents / 100}`,
});

await using node = await createNode({ store: url, tasks: [receipt] });
await node.start();

const pool = new Pool({ connectionString: url });
await pool.query(
  "CREATE TABLE IF NOT EXISTS orders (customer text NOT NULL, cents int NOT NULL CHECK (cents > 0))",
);

/** The job is given out only when it is committed, and then there is something to wait for. */
async function order(customer: string, cents: number): Promise<JobHandle<string>> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const job = await node.tx(client).submit(receipt, { customer, cents });
    await client.query("INSERT INTO orders VALUES ($1, $2)", [customer, cents]);
    await client.query("COMMIT");
    return job;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

const job = await order("Ada", 1_749);
console.log(await job.result());
await order("Bob", 0).catch((error: Error) =>
  console.log(`Bob has no order and no receipt: ${error.message}`),
);

// The same from any language: one statement in whatever transaction is open.
const { rows } = await pool.query<{ id: string }>(
  `WITH new AS (INSERT INTO orders VALUES ('Eve', 500) RETURNING *)
   SELECT baton.submit('receipt', to_jsonb(new)) AS id FROM new`,
);
console.log(await node.job<string>(rows[0]!.id).result());

await pool.end();
