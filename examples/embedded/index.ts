/**
 * A node inside a program of one's own: tasks in code, no port, no second process.
 *
 *     npx node examples/embedded/index.ts
 */

import { createNode, defineTask, isFinal, loadSettings, PermanentError } from "baton";
import type { JobId } from "baton";
import { z } from "zod";

const invoice = defineTask({
  name: "invoice",
  schema: z.object({ customer: z.string(), cents: z.array(z.int()) }),
  maxAttempts: 5,
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

const { jobs } = node.services;
const submitted = await jobs.submit([
  { task: "invoice", payload: { customer: "Ada", cents: [1_250, 499] } },
  { task: "invoice", payload: { customer: "Bob", cents: [] } },
]);

for (const { id } of submitted) {
  const job = await ended(id);
  const result = await jobs.result(id);
  console.log(job.status, result ?? job.error?.message);
}

/** Yields whenever the job may have changed, so there is nothing to poll. */
async function ended(id: JobId) {
  const over = new AbortController();
  for await (const _ of jobs.changes(id, over.signal)) {
    const job = await jobs.get(id);
    if (!job) throw new Error(`job ${id} was removed`);
    if (isFinal(job.status)) return job;
  }
  throw new Error("the node was stopped");
}
