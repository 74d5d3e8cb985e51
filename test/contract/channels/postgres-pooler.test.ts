/** What channels do behind a pooler of transactions, where nobody can listen. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { TransactionPooler } from "../../support/lock-pooler.ts";
import { PostgresWorld } from "./postgres-world.ts";
import { message, Reader, until } from "./world.ts";

const world = await PostgresWorld.open();
const pooler = await TransactionPooler.start(world.url, { sessions: 3, order: "round" });
after(async () => {
  await world.clear();
  await pooler[Symbol.asyncDispose]();
  await world.close();
});

test("behind a pooler topics reach our own subscribers only, queues work across nodes, and nobody listens", async () => {
  const options = { url: pooler.url, pollMs: 20 };
  const [here, there] = [await world.started(options), await world.started(options)];
  const heard: unknown[] = [];
  for (const each of [here, there]) each.subscribe("t", ({ body }) => void heard.push(body));
  await here.publish("t", [message("here")]);
  await there.publish("t", [message("there")]);

  const readers = [new Reader(), new Reader()];
  const subscriptions = [here, there].map((each, n) =>
    each.consume("q", readers[n]!.handle, { batchMax: 3 }),
  );
  const sent = Array.from({ length: 40 }, (_, n) => n);
  await Promise.all(sent.map((n) => (n % 2 === 0 ? here : there).send("q", [message(n, String(n))])));
  const read = (): unknown[] => readers.flatMap(({ bodies }) => bodies);
  await until("all of them", () => read().length === sent.length);
  await Promise.all(subscriptions.map((subscription) => subscription.close()));
  const found = (read() as number[]).sort((a, b) => a - b);
  assert.deepEqual(found, sent, "each once");
  assert.deepEqual(await world.query("SELECT id FROM baton.message"), []);
  assert.deepEqual(heard, ["here", "there"], "once, by those who are where it was said");
  const listening =
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'";
  assert.deepEqual(await world.query(listening), []);
});
