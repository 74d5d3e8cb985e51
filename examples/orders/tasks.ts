import { defineTask } from "batonjs/task";
import { Pool } from "pg";
import { z } from "zod";

export const pool = new Pool({ connectionString: process.env["DATABASE_URL"], allowExitOnIdle: true });
export const mailer = { send: async (to: string, text: string) => console.log(`mail to ${to}: ${text}`) };

const Order = z.object({ id: z.uuid(), email: z.email(), cents: z.int().positive() });

export const charge = defineTask({
  name: "charge",
  schema: Order,
  run: ({ id, cents }, { log }) => log(`order ${id}: charging ${cents / 100} EUR`),
});

export const confirm = defineTask({
  name: "confirm",
  schema: Order,
  run: ({ id, email }) => mailer.send(email, `thank you for order ${id}`),
});

export const report = defineTask({
  name: "report",
  schema: z.object({ to: z.email() }),
  schedules: [
    { name: "nightly", cron: "30 2 * * *", zone: "Europe/Berlin", payload: { to: "ann@example.org" } },
  ],
  async run({ to }) {
    const { rows } = await pool.query("SELECT count(*) FROM orders");
    await mailer.send(to, `${rows[0].count} orders so far`);
  },
});
