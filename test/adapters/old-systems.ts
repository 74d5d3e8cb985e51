/** Fills BullMQ and pg-boss, each the real one, with what test/support/import-suite.ts expects to be imported. */

import { LATER } from "../support/import-suite.ts";

/** Not by a literal name: the types of the libraries are not there where the checkout is checked. */
const load = (name: string): Promise<any> => import(name);

/** `library` is the package of one version. */
export async function fillBullmq(library: string, url: string): Promise<void> {
  const { FlowProducer, Queue, Worker } = await load(library);
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const mail = new Queue("mail", { connection });
  const reports = new Queue("reports", { connection });
  const flows = new FlowProducer({ connection });
  const worker = new Worker("mail", null, { connection, autorun: false, drainDelay: 1 });
  try {
    // Runs now, and has failed once: both are taken before the others are there.
    await mail.add("welcome", { to: "active" });
    await worker.getNextJob("token", { block: false });
    await mail.add(
      "welcome",
      { to: "failed once" },
      { attempts: 4, backoff: { type: "fixed", delay: LATER - Date.now() + 60_000 } },
    );
    const failing = await worker.getNextJob("token", { block: false });
    await failing.moveToFailed(new Error("not now"), "token", false);

    await mail.add("welcome", { to: "ada" }, { attempts: 5 });
    await mail.add("welcome", { to: "bob" });
    await mail.add("invoice", { order: 500 }, { priority: 500 });
    await mail.add("invoice", { order: 3 }, { priority: 3 });
    const timestamp = Date.now();
    await mail.add("welcome", { to: "cy" }, { timestamp, delay: LATER - timestamp });
    await mail.add("no name here!", { order: 9 }, { jobId: "order-9" });
    await flows.add({
      name: "parent",
      queueName: "mail",
      children: [{ name: "child", queueName: "mail", data: {} }],
    });
    const template = { name: "report", data: { all: true }, opts: { priority: 2, attempts: 3 } };
    await mail.upsertJobScheduler("nightly", { pattern: "0 3 * * *", tz: "Europe/Berlin" }, template);
    await mail.upsertJobScheduler("local", { pattern: "0 4 * * *" }, template);
    await mail.upsertJobScheduler("limited", { every: 900_000, limit: 3, startDate: LATER }, template);
    // Its first job runs at once.
    await mail.upsertJobScheduler("pulse", { every: 900_000 }, { name: "pulse", data: {} });
    await mail.pause();
    await reports.add("build", {});
  } finally {
    await worker.close(true);
    await Promise.all([mail.close(), reports.close(), flows.close()]);
  }
}

export async function fillPgBoss(url: string): Promise<void> {
  const { PgBoss } = await load("pg-boss");
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on("error", () => {});
  await boss.start();
  try {
    await boss.createQueue("mail", { retryLimit: 4 });
    await boss.createQueue("reports", { partition: true });
    await boss.send("mail", { to: "active" });
    await boss.fetch("mail");
    await boss.send("mail", { to: "failed once" }, { retryDelay: Math.ceil((LATER - Date.now()) / 1_000) });
    const [failing] = await boss.fetch("mail");
    await boss.fail("mail", failing.id);

    await boss.send("mail", { to: "ada" });
    await boss.send("mail", { to: "bob" }, { retryLimit: 0 });
    await boss.send("mail", { order: 7 }, { priority: 7 });
    await boss.send("mail", { order: 5000 }, { priority: 5_000 });
    await boss.send("mail", { to: "cy" }, { startAfter: new Date(LATER) });
    await boss.send("reports", null);
    await boss.flow([
      { ref: "first", name: "mail", data: { to: "first" } },
      { ref: "second", name: "mail", data: { to: "second" }, dependsOn: ["first"] },
    ]);
    const options = { tz: "Europe/Berlin", priority: 2, retryLimit: 1, missed: "once" };
    await boss.schedule("reports", "0 3 * * *", { all: true }, options);
    await boss.schedule("reports", "0 4 * * *", null, { key: "early" });
    await boss.schedule("reports", "FREQ=DAILY;BYHOUR=9", null, { key: "rule" });
  } finally {
    await boss.stop({ graceful: false });
  }
}
