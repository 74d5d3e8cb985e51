import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { PgBoss } from "pg-boss";
import { mailer, pool, startTasks } from "./tasks.ts";

test("a mail is sent again when the server was down, and the night has its report", async () => {
  const send = mock.method(mailer, "send", async () => {});
  send.mock.mockImplementationOnce(() => Promise.reject(new Error("the mail server is down")));
  mock.method(pool, "query", async () => ({ rows: [{ count: 1 }] }));
  const connectionString = process.env["DATABASE_URL"];
  const boss = new PgBoss({ connectionString, schema: "orders_test", __test__enableSpies: true });
  try {
    await startTasks(boss);
    const order = { id: crypto.randomUUID(), email: "ada@example.org", cents: 1749 };
    const confirmation = await boss.send("confirm", order);
    await boss.getSpy("confirm").waitForJobWithId(confirmation!, "completed");
    const [nightly] = await boss.getSchedules("report");
    const report = await boss.send("report", nightly!.data!);
    await boss.getSpy("report").waitForJobWithId(report!, "completed");
    const receivers = send.mock.calls.map((call) => call.arguments[0]);
    assert.deepEqual(receivers, ["ada@example.org", "ada@example.org", "ann@example.org"]);
  } finally {
    await boss.stop({ graceful: false });
  }
});
