import Fastify from "fastify";
import { PgBoss } from "pg-boss";
import { z } from "zod";
import { Order, pool, startTasks } from "./tasks.ts";

await pool.query("CREATE TABLE IF NOT EXISTS orders (id uuid PRIMARY KEY, email text, cents int)");
const boss = new PgBoss({ connectionString: process.env["DATABASE_URL"] });
await startTasks(boss);

const app = Fastify();
app.post<{ Body: { email: string; cents: number } }>("/orders", async ({ body }, reply) => {
  const { success, data: order, error } = Order.safeParse({ ...body, id: crypto.randomUUID() });
  if (!success) return reply.code(400).send({ message: z.prettifyError(error) });
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const db = { executeSql: (text: string, values?: unknown[]) => client.query(text, values) };
    await boss.send("charge", order, { db });
    await boss.send("confirm", order, { db });
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
process.once("SIGTERM", () => void app.close().then(() => boss.stop()));
