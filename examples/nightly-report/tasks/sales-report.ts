/**
 * What was sold on a day. A schedule beside the task asks for the day before, every night at half past two in Berlin.
 *
 *     npx baton start --tasks examples/nightly-report/tasks
 *     npx baton schedules list
 *     npx baton submit sales-report '{"day":"2026-11-14"}' --wait
 */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { defineTask } from "batonjs/task";
import { z } from "zod";

const ORDERS = process.env["ORDERS"] ?? `${import.meta.dirname}/../orders.csv`;
const ZONE = "Europe/Berlin";
const DAY_MS = 86_400_000;

export default defineTask({
  name: "sales-report",
  schema: z.object({ day: z.iso.date().optional() }),
  timeout: "10m",
  schedules: [{ name: "nightly-sales", cron: "30 2 * * *", zone: ZONE, payload: {} }],
  async run(payload, { job, log, progress, signal }) {
    const day = payload.day ?? dayOf(job.createdAt.getTime() - DAY_MS);
    const { size } = await stat(ORDERS);
    const input = createReadStream(ORDERS, { signal });
    const cents: Record<string, number> = {};
    let orders = 0;
    for await (const line of createInterface({ input })) {
      const [date, shop, amount] = line.split(",");
      if (date !== day) continue;
      orders += 1;
      cents[shop!] = (cents[shop!] ?? 0) + Number(amount);
      progress((100 * input.bytesRead) / size, `${orders} orders`);
    }
    log(`${day}: ${orders} orders`);
    // The result is kept with the job: GET /jobs/{id}/result, or its page in the dashboard.
    return { day, orders, cents };
  },
});

/** The date in that zone, as 2026-11-14. */
function dayOf(time: number): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone: ZONE }).format(time);
}
