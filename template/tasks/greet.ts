import { defineTask } from "batonjs/task";
import { z } from "zod";

/** The name of the file is the name of the task. */
export default defineTask({
  name: "greet",
  schema: z.object({ name: z.string().min(1) }),
  timeout: "30s",
  retry: { attempts: 5, delay: "1s" },
  schedules: [{ name: "good-morning", cron: "0 8 * * *", zone: "UTC", payload: { name: "everybody" } }],
  run({ name }, { log }) {
    log(`greeting ${name}`);
    return { greeting: `Hello, ${name}!` };
  },
});
