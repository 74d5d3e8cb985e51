import { createNode } from "batonjs";
import Fastify from "fastify";
import { charge, confirm, pool, report } from "./tasks.ts";

await pool.query("CREATE TABLE IF NOT EXISTS orders (id uuid PRIMARY KEY, email text, cents int)");
const baton = await createNode({ store: process.env["DATABASE_URL"], tasks: [charge, confirm, report] });
await baton.start();

const app = Fastify();
app.post<{ Body: { email: string; cents: number } }>("/orders", async ({ body }, reply) => {
  const order = { ...body, id: crypto.randomUUID() };
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await baton.tx(client).submit(charge, order);
    await baton.tx(client).submit(confirm, order);
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
process.once("SIGTERM", () => void app.close().then(() => baton.stop()));
