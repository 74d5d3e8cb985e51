/** A long task to watch: progress, a log line for every page, and it stops between two pages when it is told to. */

import { setTimeout } from "node:timers/promises";
import { defineTask } from "batonjs/task";
import { z } from "zod";

export default defineTask({
  name: "import-orders",
  schema: z.strictObject({
    shop: z.enum(["berlin", "lisbon", "oslo"]),
    pages: z.int().min(1).max(600).default(30).meta({ description: "about one a second" }),
  }),
  async run({ shop, pages }, { log, progress, signal }) {
    let orders = 0;
    for (let page = 1; page <= pages; page++) {
      await setTimeout(1_000, undefined, { signal });
      const found = 5 + ((page * 7) % 11);
      orders += found;
      log(`page ${page} of ${pages}: ${found} orders`);
      progress((100 * page) / pages, `${orders} orders from ${shop}`);
    }
    return { shop, orders };
  },
});
