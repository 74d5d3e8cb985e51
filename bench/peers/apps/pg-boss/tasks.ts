import { Pool } from "pg";
import type { Job, PgBoss } from "pg-boss";
import { z } from "zod";

export const pool = new Pool({ connectionString: process.env["DATABASE_URL"], allowExitOnIdle: true });
export const mailer = { send: async (to: string, text: string) => console.log(`mail to ${to}: ${text}`) };

export const Order = z.object({ id: z.uuid(), email: z.email(), cents: z.int().positive() });
const Report = z.object({ to: z.email() });

async function charge([job]: Job[]): Promise<void> {
  const { id, cents } = Order.parse(job!.data);
  console.log(`order ${id}: charging ${cents / 100} EUR`);
}

async function confirm([job]: Job[]): Promise<void> {
  const { id, email } = Order.parse(job!.data);
  await mailer.send(email, `thank you for order ${id}`);
}

async function report([job]: Job[]): Promise<void> {
  const { to } = Report.parse(job!.data);
  const { rows } = await pool.query("SELECT count(*) FROM orders");
  await mailer.send(to, `${rows[0].count} orders so far`);
}

export async function startTasks(boss: PgBoss): Promise<void> {
  boss.on("error", console.error);
  await boss.start();
  for (const [name, handler] of Object.entries({ charge, confirm, report })) {
    await boss.createQueue(name, { retryLimit: 2, retryBackoff: true });
    await boss.work(name, handler);
  }
  await boss.schedule("report", "30 2 * * *", { to: "ann@example.org" }, { tz: "Europe/Berlin" });
}
