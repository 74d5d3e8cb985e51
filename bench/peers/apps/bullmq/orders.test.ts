import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { QueueEvents } from "bullmq";
import { mailer, pool, startTasks } from "./tasks.ts";

test("a mail is sent again when the server was down, and the night has its report", async () => {
  const send = mock.method(mailer, "send", async () => {});
  send.mock.mockImplementationOnce(() => Promise.reject(new Error("the mail server is down")));
  mock.method(pool, "query", async () => ({ rows: [{ count: 1 }] }));
  const name = `orders-test-${crypto.randomUUID()}`;
  const { queue, worker } = await startTasks(name);
  const events = new QueueEvents(name, { connection: { url: process.env["REDIS_URL"] } });
  try {
    const order = { id: crypto.randomUUID(), email: "ada@example.org", cents: 1749 };
    const confirmation = await queue.add("confirm", order);
    await confirmation.waitUntilFinished(events);
    const [report] = await queue.getDelayed();
    await report!.promote();
    await report!.waitUntilFinished(events);
    const receivers = send.mock.calls.map((call) => call.arguments[0]);
    assert.deepEqual(receivers, ["ada@example.org", "ada@example.org", "ann@example.org"]);
  } finally {
    await worker.close();
    await events.close();
    await queue.obliterate({ force: true });
    await queue.close();
  }
});
