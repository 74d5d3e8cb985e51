/**
 * A node inside a program of one's own: tasks in code, no port, no second process.
 *
 *     npx node examples/embedded/index.ts
 */

import { createNode, defineTask, JobFailed, PermanentError } from "batonjs";
import { z } from "zod";

const total = defineTask({
  name: "total",
  run: (cents: number[]) => cents.reduce((sum, each) => sum + each, 0),
});

const invoice = defineTask({
  name: "invoice",
  schema: z.object({ customer: z.string(), cents: z.array(z.int()) }),
  retry: { attempts: 5 },
  async run({ customer, cents }, { log, job, call }) {
    if (cents.length === 0) throw new PermanentError(`${customer} has bought nothing`);
    log(`job ${job.id} for ${customer}`);
    // A job of its own. Its slot is free while it waits, so one slot is enough for both.
    return { customer, total: await call(total, cents) };
  },
});

await using baton = await createNode({
  store: process.env["DATABASE_URL"] ?? "sqlite:.baton/embedded.db",
  tasks: [invoice, total],
  worker: { concurrency: 1 },
  onError: (error, { job }) => console.log(`${job.task}: ${error.message}`),
});
baton.on("job.completed", ({ job }) => console.log(`${job.task} is done`));
await baton.start();

const jobs = await baton.submitMany([
  [invoice, { customer: "Ada", cents: [1_250, 499] }, { priority: 10 }],
  [invoice, { customer: "Bob", cents: [] }],
]);

for (const job of jobs) {
  try {
    const { customer, total: cents } = await job.result({ timeout: "30s" });
    console.log(`${customer} pays ${cents / 100}`);
  } catch (error) {
    if (!(error instanceof JobFailed)) throw error;
    console.log(`no invoice: ${error.error?.message}`);
  }
}
