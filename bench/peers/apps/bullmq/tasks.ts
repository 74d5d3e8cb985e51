import { type Job, Queue, Worker } from "bullmq";
import { Pool } from "pg";
import { z } from "zod";

export const pool = new Pool({ connectionString: process.env["DATABASE_URL"], allowExitOnIdle: true });
export const mailer = { send: async (to: string, text: string) => console.log(`mail to ${to}: ${text}`) };

export const Order = z.object({ id: z.uuid(), email: z.email(), cents: z.int().positive() });
const Report = z.object({ to: z.email() });

const handlers: Record<string, (data: unknown) => Promise<void>> = {
  async charge(data) {
    const { id, cents } = Order.parse(data);
    console.log(`order ${id}: charging ${cents / 100} EUR`);
  },
  async confirm(data) {
    const { id, email } = Order.parse(data);
    await mailer.send(email, `thank you for order ${id}`);
  },
  async report(data) {
    const { to } = Report.parse(data);
    const { rows } = await pool.query("SELECT count(*) FROM orders");
    await mailer.send(to, `${rows[0].count} orders so far`);
  },
};

export async function startTasks(queueName: string) {
  const connection = { url: process.env["REDIS_URL"], maxRetriesPerRequest: null };
  const retry = { attempts: 3, backoff: { type: "exponential", delay: 1000 } };
  const queue = new Queue(queueName, { connection, defaultJobOptions: retry });
  const timing = { pattern: "30 2 * * *", tz: "Europe/Berlin" };
  await queue.upsertJobScheduler("nightly", timing, {
    name: "report",
    data: { to: "ann@example.org" },
    opts: retry,
  });
  const worker = new Worker(queueName, (job: Job) => handlers[job.name]!(job.data), { connection });
  worker.on("error", console.error);
  return { queue, worker };
}
