/**
 * A client that outlives the nodes that it talks to: it submits a job, follows its log, and gets its result, whichever node dies
 * meanwhile. Nodes that share a database, with the tasks of examples/patterns:
 *
 *     npx baton start --store postgres://… --tasks examples/patterns/tasks --port 8420
 *     npx baton start --store postgres://… --tasks examples/patterns/tasks --port 8421
 *     BATON_URL=http://127.0.0.1:8420,http://127.0.0.1:8421 npx node examples/client/index.ts
 *
 * The first line says which node to kill.
 */

import { BatonClient } from "batonjs/client";

// Addresses from BATON_URL; of nodes that are not listed there it learns by itself.
await using client = new BatonClient({ timeoutMs: 30_000 });

const { job_id } = await client.submit({ task: "slow-count", payload: { to: 30, everyMs: 100 } });
console.error(`${job_id} was submitted at ${client.node}`);

for await (const event of client.logs(job_id, { follow: true })) {
  if (event.event === "log") console.log(`${event.line.seq} ${event.line.message}`);
}

const { job, result } = await client.wait(job_id, { timeoutMs: 30_000 });
console.log(`${job.status} ${String(result)}`);
