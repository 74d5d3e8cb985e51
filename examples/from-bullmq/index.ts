/**
 * What producers and a worker of BullMQ look like here: a priority, a delay, an id of one's own, a job scheduler, and what
 * an import of old jobs needs. See docs/migrating-from-bullmq.md.
 *
 *     npx node examples/from-bullmq/index.ts
 */

import { createNode, defineTask } from "batonjs";
import { z } from "zod";

// new Worker("mail", async (job) => …, { concurrency: 5 }): one task for each job.name.
const welcome = defineTask({
  name: "welcome",
  queue: "mail",
  schema: z.object({ to: z.string() }),
  // attempts: 3, backoff: { type: "exponential", delay: 5000 }
  retry: { attempts: 3, delay: "5s", factor: 2 },
  // upsertJobScheduler("weekly", { pattern: "0 9 * * 1", tz: "Europe/Berlin" }, { data: … })
  schedules: [
    { name: "mail/weekly", cron: "0 9 * * 1", zone: "Europe/Berlin", payload: { to: "everybody" } },
  ],
  run({ to }, { job, log, progress }) {
    log(`job ${job.id}`);
    progress(100);
    return `sent to ${to}`;
  },
});

await using baton = await createNode({
  store: process.env["DATABASE_URL"] ?? "sqlite:.baton/from-bullmq.db",
  tasks: [welcome],
  worker: { concurrency: 5, queues: ["mail"] },
});
// QueueEvents: "completed"
baton.on("job.completed", ({ job, result }) => console.log(`${job.queue}: ${String(result)}`));
await baton.start();

// queue.add("welcome", { to: "Ada" }, { priority: 1, jobId: "welcome-ada" }): here a higher priority goes first.
const first = await baton.submit(welcome, { to: "Ada" }, { priority: 10, idempotencyKey: "welcome-ada" });
const second = await baton.submit(welcome, { to: "Ada" }, { priority: 10, idempotencyKey: "welcome-ada" });
console.log(`the same job: ${second.existed && first.id === second.id}`);

// job.waitUntilFinished(queueEvents)
await first.result({ timeout: "30s" });

// queue.add("welcome", { to: "Bob" }, { delay: 3_600_000 })
const later = await baton.submit(welcome, { to: "Bob" }, { delay: "1h" });
console.log(`Bob waits: ${(await later.job())?.status}`);
await later.cancel("the example is over");
