import Fastify from "fastify";
import { z } from "zod";
import { OUTBOX, relay, submit } from "./outbox.ts";
import { Order, pool, startTasks } from "./tasks.ts";

await pool.query("CREATE TABLE IF NOT EXISTS orders (id uuid PRIMARY KEY, email text, cents int)");
await pool.query(OUTBOX);
const { queue, worker } = await startTasks("orders");
const relaying = setInterval(() => relay(pool, queue).catch(console.error), 500);

const app = Fastify();
app.post<{ Body: { email: string; cents: number } }>("/orders", async ({ body }, reply) => {
  const { success, data: order, error } = Order.safeParse({ ...body, id: crypto.randomUUID() });
  if (!success) return reply.code(400).send({ message: z.prettifyError(error) });
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await submit(client, "charge", order);
    await submit(client, "confirm", order);
    await client.query("INSERT INTO orders VALUES ($1, $2, $3)", [order.id, order.email, order.cents]);
    await client.query("COMMIT");
    return reply.code(201).send({ id: order.id });
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
});
console.log(`listening on ${await app.listen({ port: Number(process.env["PORT"] ?? 3000) })}`);
process.once("SIGTERM", async () => {
  clearInterval(relaying);
  await app.close();
  await worker.close();
  await queue.close();
});
