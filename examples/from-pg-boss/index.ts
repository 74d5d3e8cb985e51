/**
 * What queues and a worker of pg-boss look like here: retries, a delay, a key, a job in a transaction, and a schedule.
 * See docs/migrating-from-pg-boss.md.
 *
 *     DATABASE_URL=postgres://user@host/database npx node examples/from-pg-boss/index.ts
 */

import { createNode, defineTask } from "batonjs";
import { Pool } from "pg";
import { z } from "zod";

const url = process.env["DATABASE_URL"];
if (!url) throw new Error("DATABASE_URL is missing; give it as postgres://user@host/database");

// boss.createQueue("receipt", { retryLimit: 4, retryDelay: 5, retryBackoff: true, expireInSeconds: 60 })
// boss.work("receipt", async ([job]) => …)
const receipt = defineTask({
  name: "receipt",
  queue: "receipt",
  schema: z.object({ customer: z.string() }),
  // The first attempt counts too: five attempts are four retries.
  retry: { attempts: 5, delay: "5s", factor: 2 },
  timeout: "1m",
  // boss.schedule("receipt", "0 3 * * *", { customer: "all" }, { tz: "Europe/Berlin" })
  schedules: [{ name: "receipt", cron: "0 3 * * *", zone: "Europe/Berlin", payload: { customer: "all" } }],
  run: ({ customer }) => `${customer} has a receipt`,
});

await using baton = await createNode({ store: url, tasks: [receipt] });
await baton.start();

// boss.send("receipt", { customer: "Ada" }, { priority: 5, id })
const job = await baton.submit(receipt, { customer: "Ada" }, { priority: 5, idempotencyKey: "receipt-ada" });
console.log(await job.result({ timeout: "30s" }));

// boss.send("receipt", { customer: "Bob" }, { startAfter: new Date(…) })
const runAt = new Date(Date.now() + 3_600_000);
const later = await baton.submit(receipt, { customer: "Bob" }, { runAt });
console.log(`Bob waits: ${(await later.job())?.status}`);
await later.cancel("the example is over");

// boss.send("receipt", { customer: "Eve" }, { db }): with the program's own rows, or not at all.
const pool = new Pool({ connectionString: url });
const client = await pool.connect();
await client.query("BEGIN");
const eve = await baton.tx(client).submit(receipt, { customer: "Eve" });
await client.query("COMMIT");
client.release();
console.log(await eve.result({ timeout: "30s" }));
await pool.end();
