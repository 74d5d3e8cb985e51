/** A task that fails for a reason: addresses that end in `.invalid` do not exist, today or tomorrow. */

import { setTimeout } from "node:timers/promises";
import { defineTask } from "batonjs/task";
import { z } from "zod";

export default defineTask({
  name: "send-mail",
  schema: z.strictObject({
    to: z.email().meta({ description: "the address; one that ends in .invalid is refused" }),
    subject: z.string().min(1).max(200),
    urgent: z.boolean().default(false),
  }),
  async run({ to, subject, urgent }, { log, signal }) {
    const host = to.slice(to.indexOf("@") + 1);
    log(`connecting to the mail server of ${host}`);
    await setTimeout(urgent ? 50 : 400, undefined, { signal });
    if (host.endsWith(".invalid")) throw new Error(`550 no such host: "${host}"`);
    log(`"${subject}" accepted`);
    return { accepted: [to] };
  },
});
