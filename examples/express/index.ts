/**
 * An Express application that submits jobs, with Baton's dashboard behind its own login.
 *
 *     ADMIN_PASSWORD=secret npx node examples/express/index.ts
 *
 * Then open http://127.0.0.1:3000/jobs and log in as admin.
 */

import { createNode, defineTask } from "batonjs";
import { dashboard } from "batonjs/express";
import express, { type RequestHandler } from "express";
import { z } from "zod";

const greet = defineTask({
  name: "greet",
  schema: z.object({ name: z.string().min(1) }),
  run: ({ name }) => `Hello ${name}`,
});

const baton = await createNode({ store: process.env["STORE"] ?? "memory", tasks: [greet] });

/** Stands for the login of the application. A browser asks for name and password itself. */
const requireAdmin: RequestHandler = (request, response, next) => {
  const login = Buffer.from(`admin:${process.env["ADMIN_PASSWORD"]}`).toString("base64");
  if (process.env["ADMIN_PASSWORD"] !== undefined && request.headers.authorization === `Basic ${login}`)
    next();
  else response.set("www-authenticate", "Basic").sendStatus(401);
};

const app = express();
// Nobody comes as far as the dashboard without a login, so it asks no more.
const authenticate = () => ({ name: "admin", permission: "admin" }) as const;
app.use("/jobs", requireAdmin, dashboard(baton, { authenticate }));

app.post("/greetings", express.json(), async (request, response) => {
  const job = await baton.submit(greet, request.body);
  response.status(201).json({ greeting: await job.result() });
});

await baton.start();
const port = Number(process.env["PORT"] ?? 3_000);
const server = app.listen(port, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`listening on http://127.0.0.1:${address?.port}`);
});

async function stop(): Promise<void> {
  // The node first: it ends the event streams for which the server would wait.
  await baton.stop();
  server.close();
}
process.once("SIGTERM", () => void stop());
