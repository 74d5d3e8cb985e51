import { defineTask } from "batonjs/task";
import { z } from "zod";

/** For the form: a field of each kind. */
export default defineTask({
  name: "greet",
  schema: z.object({
    name: z.string().min(2, "must have two letters").max(40),
    times: z.int().min(1).max(5).default(1),
    tone: z.enum(["kind", "loud"]).optional(),
    shout: z.boolean().optional(),
    tags: z.array(z.string()).optional(),
  }),
  run: ({ name, times, shout }, { log }) => {
    for (let n = 1; n <= times; n++) log(`greeting ${n}`);
    const text = `Hello, ${name}!`;
    return { text: shout ? text.toUpperCase() : text, times };
  },
});
