/**
 * A Fastify application that submits jobs, with Baton's dashboard behind its own authentication.
 *
 *     ADMIN_TOKEN=secret npx node examples/fastify/index.ts
 *     curl -d '{"name":"Ada"}' -H 'content-type: application/json' http://127.0.0.1:3000/greetings
 *     curl -H 'authorization: Bearer secret' http://127.0.0.1:3000/jobs/jobs
 */

import { createNode, defineTask, type PayloadOf } from "batonjs";
import { batonDashboard } from "batonjs/fastify";
import Fastify, { type FastifyRequest } from "fastify";
import { z } from "zod";

const greet = defineTask({
  name: "greet",
  schema: z.object({ name: z.string().min(1) }),
  run: ({ name }) => `Hello ${name}`,
});

const baton = await createNode({ store: process.env["STORE"] ?? "memory", tasks: [greet] });

/** Stands for what the application has: a session, a signed token, a header of its proxy. */
function permissionOf({ headers }: FastifyRequest) {
  const token = process.env["ADMIN_TOKEN"];
  if (token === undefined || headers.authorization !== `Bearer ${token}`) return null;
  return { name: "administrator", permission: "admin" } as const;
}

const app = Fastify();
await app.register(batonDashboard, { prefix: "/jobs", baton, authenticate: permissionOf });

app.post<{ Body: PayloadOf<typeof greet> }>("/greetings", async ({ body }, reply) => {
  const job = await baton.submit(greet, body);
  return reply.code(201).send({ greeting: await job.result() });
});

app.addHook("onClose", () => baton.stop());
await baton.start();
console.log(`listening on ${await app.listen({ port: Number(process.env["PORT"] ?? 3_000) })}`);
process.once("SIGTERM", () => void app.close());
