/**
 * A client that outlives the nodes that it talks to: it submits a job, follows its log, and gets its result, whichever node dies
 * meanwhile. It is told the types of the tasks, so the compiler checks names, payloads and results. Nodes that share a database,
 * with the tasks of examples/patterns:
 *
 *     npx baton start --store postgres://… --tasks examples/patterns/tasks --port 8420
 *     npx baton start --store postgres://… --tasks examples/patterns/tasks --port 8421
 *     BATON_URL=http://127.0.0.1:8420,http://127.0.0.1:8421 npx node examples/client/index.ts
 *
 * The first line says which node to kill.
 */

import { createClient } from "batonjs/client";
import type slowCount from "../patterns/tasks/slow-count.ts";

/** Types only: nothing of the tasks is loaded here. */
interface Tasks {
  readonly "slow-count": typeof slowCount;
}

// Addresses from BATON_URL; of nodes that are not listed there it learns by itself.
await using baton = createClient<Tasks>({ timeout: "30s" });

const { id } = await baton.submit("slow-count", { to: 30, everyMs: 100 });
console.error(`${id} was submitted at ${baton.node}`);

for await (const event of baton.events(id)) {
  if (event.type === "log") console.log(`${event.line.seq} ${event.line.message}`);
}

const counted = await baton.wait(id, { timeout: "30s" });
console.log(`completed ${counted}`);
