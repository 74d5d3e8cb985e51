/**
 * A node inside a program of one's own: tasks in code, no port, no second process.
 *
 *     npx node examples/embedded/index.ts
 */

import { createNode, defineTask, JobFailed, loadSettings, PermanentError } from "batonjs";
import { z } from "zod";

const invoice = defineTask({
  name: "invoice",
  schema: z.object({ customer: z.string(), cents: z.array(z.int()) }),
  retry: { attempts: 5 },
  run({ customer, cents }, { log, job }) {
    if (cents.length === 0) throw new PermanentError(`${customer} has bought nothing`);
    log(`job ${job.id} for ${customer}`);
    return { customer, total: cents.reduce((sum, each) => sum + each, 0) };
  },
});

// As `baton start` would: from a file and the environment. Flags win over both.
const { settings } = loadSettings({ flags: { data: process.env["BATON_DATA"] ?? ".baton/embedded" } });

await using node = await createNode({ settings, tasks: [invoice], http: false });
await node.start();

const orders = [
  { customer: "Ada", cents: [1_250, 499] },
  { customer: "Bob", cents: [] },
];

for (const order of orders) {
  const job = await node.submit(invoice, order);
  try {
    const { customer, total } = await job.result();
    console.log(`${customer} pays ${total / 100}`);
  } catch (error) {
    if (!(error instanceof JobFailed)) throw error;
    console.log(`${error.jobStatus}: ${error.error?.message}`);
  }
}
