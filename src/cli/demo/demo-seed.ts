/**
 * The first jobs and schedules of `baton demo`, chosen so that every state is visible: completed, running, failed,
 * scheduled, and one job that waits for an unknown task.
 */

import type { BatonClient, JobRequestBody, NamedScheduleRequest } from "../../client/baton-client.ts";

export interface DemoSeed {
  readonly jobs: readonly JobRequestBody[];
  readonly schedules: readonly NamedScheduleRequest[];
}

const mail = (to: string, subject: string): JobRequestBody => ({
  task: "send-mail",
  queue: "mail",
  payload: { to, subject },
  max_attempts: 1,
});

export const SHOP: DemoSeed = {
  jobs: [
    ...["ada", "grace", "edsger", "barbara", "donald", "leslie"].map((name) =>
      mail(`${name}@example.org`, "Your order is on its way"),
    ),
    ...["old", "gone", "typo"].map((name) => mail(`customer@${name}.invalid`, "Your invoice")),
    { task: "import-orders", payload: { shop: "berlin", pages: 45 } },
    { task: "import-orders", payload: { shop: "oslo", pages: 180 } },
    { task: "hello", payload: { name: "tomorrow" }, delay_ms: 24 * 3_600_000 },
    // Nobody knows this task: it waits and says why.
    { task: "print-invoice", payload: { order: 4711 } },
  ],
  schedules: [
    { name: "greeting", task: "hello", every_ms: 20_000, payload: { name: "schedule" } },
    { name: "lisbon-nightly", task: "import-orders", cron: "30 2 * * *", payload: { shop: "lisbon" } },
  ],
};

export async function seedDemo(client: BatonClient, { jobs, schedules }: DemoSeed): Promise<void> {
  // One by one: each is placed on the next node.
  for (const job of jobs) await client.submit(job);
  for (const schedule of schedules) await client.putSchedule(schedule);
}
