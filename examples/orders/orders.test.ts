import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { testNode } from "batonjs/testing";
import { confirm, mailer, pool, report } from "./tasks.ts";

test("a mail is sent again when the server was down, and the night has its report", async () => {
  const send = mock.method(mailer, "send", async () => {});
  send.mock.mockImplementationOnce(() => Promise.reject(new Error("the mail server is down")));
  mock.method(pool, "query", async () => ({ rows: [{ count: 1 }] }));
  await using baton = await testNode({ tasks: [confirm, report] });
  await baton.submit(confirm, { id: crypto.randomUUID(), email: "ada@example.org", cents: 1749 });
  await baton.advance("1d");
  const receivers = send.mock.calls.map((call) => call.arguments[0]);
  assert.deepEqual(receivers, ["ada@example.org", "ada@example.org", "ann@example.org"]);
});
