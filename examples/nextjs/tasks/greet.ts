import { defineTask } from "batonjs/task";
import { z } from "zod";

export default defineTask({
  name: "greet",
  schema: z.object({ name: z.string().min(1) }),
  run: ({ name }) => `Hello ${name}`,
});
