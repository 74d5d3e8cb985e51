import assert from "node:assert/strict";
import { after, afterEach, beforeEach, describe, test } from "node:test";
import { Client } from "pg";
import type { Delivery } from "../../../src/channels/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { PostgresWorld } from "./postgres-world.ts";
import { onlyOneHasIt, servedQueues } from "./served-queues.ts";
import { gate, messages, Reader, reading, turn, until } from "./world.ts";

const world = await PostgresWorld.open();
const proxy = await TcpProxy.start(world.url);
after(async () => {
  await proxy.stop();
  await world.close();
});
beforeEach(() => world.clear());
afterEach(() => proxy.forward());

async function rows(where = "true"): Promise<number> {
  return Number((await world.query(`SELECT count(*)::int AS n FROM baton.message WHERE ${where}`))[0]!["n"]);
}

async function takenUntil(): Promise<number> {
  return Number((await world.query("SELECT min(taken_until) AS at FROM baton.message"))[0]!["at"]);
}

servedQueues("postgres", () => ({
  started: ({ leaseMs, lookMs, cut = false } = {}) =>
    world.started({
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(lookMs === undefined ? {} : { pollMs: lookMs }),
      ...(cut ? { url: proxy.through(world.url), connectMs: 200, statementMs: 300 } : {}),
    }),
  proxy,
  waiting: () => rows("queue = 'q'"),
  nothingIsLeft: async () => assert.equal(await rows(), 0),
  prolonged: async (ms) => {
    const start = await takenUntil();
    const deadline = systemClock.monotonic() + 10_000;
    while ((await takenUntil()) < start + ms) assert.ok(systemClock.monotonic() < deadline);
  },
  left: async () => {
    const [row] = await world.query("SELECT deliveries, consumer FROM baton.message");
    return { deliveries: Number(row!["deliveries"]), taken: row!["consumer"] !== null };
  },
}));

describe("queues in a table", () => {
  test("an exclusive queue is never with two consumers, whatever fails, and all is handled in order", async () => {
    const nodes = await Promise.all([1, 2, 3].map(() => world.started({ pollMs: 20 })));
    await onlyOneHasIt({ nodes, rounds: 40, send: (round) => nodes[round % 3]! });
    await Promise.all(nodes.map((node) => node.stop()));
    assert.equal(await rows(), 0);
  });

  test("takes of an exclusive queue that meet are decided one after the other", async () => {
    const [here, there] = [await world.started(), await world.started()];
    await here.send("q", messages(4));
    const door = gate();
    const readers = [new Reader(), new Reader()];
    const blocker = new Client({ connectionString: world.url });
    await blocker.connect();
    try {
      // The lock of the queue is held: both takes wait for it.
      await blocker.query("BEGIN");
      await blocker.query("SELECT pg_advisory_xact_lock(hashtextextended('baton.message/q', 0))");
      for (const [i, channels] of [here, there].entries()) {
        const handle = async (batch: readonly Delivery[]): Promise<void> => {
          await readers[i]!.handle(batch);
          await door.passed;
        };
        channels.consume("q", handle, { batchMax: 2, exclusive: true });
      }
      let waiting = 0;
      await until("both takes to wait", () => {
        void world
          .query(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          )
          .then((found) => (waiting = found.length));
        return waiting === 2;
      });
    } finally {
      await blocker.end();
    }
    await until("a busy consumer", () => readers.some(({ batches }) => batches.length > 0));
    // A queue of the same node behind it: the other take has been answered by then.
    const after = new Reader();
    for (const channels of [here, there]) channels.consume("after", after.handle);
    await here.send("after", messages(1));
    await until("a later message", () => after.deliveries.length === 1);
    assert.equal(readers.filter(({ batches }) => batches.length > 0).length, 1, "two consumers have a batch");
    door.open();
    await until("all of them", () => readers.flatMap(({ deliveries }) => deliveries).length === 4);
  });

  test("sends that come together are stored by one statement, each caller's in its order", async () => {
    const here = await world.started();
    const sent = messages(1_000, 3);
    await Promise.all(sent.map((one) => here.send("q", [one])));
    const [{ n }] = (await world.query("SELECT count(DISTINCT xmin::text)::int AS n FROM baton.message")) as [
      { n: number },
    ];
    assert.ok(n <= 2, `${n} transactions`);
    const reader = reading(here, { batchMax: 1_000 });
    await until("all of them", () => reader.deliveries.length === 1_000);
    const expected = sent.map(({ body }) => body);
    assert.deepEqual(reader.bodies, expected);
  });

  test("a wake-up is said once for a flood, and a consumer elsewhere does not wait for its poll", async () => {
    const here = await world.started();
    const there = await world.started({ pollMs: 3_600_000 });
    const reader = reading(there);
    const idle = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) await turn();
    };
    await idle();
    await Promise.all(messages(500, 5).map((one) => here.send("q", [one])));
    await until("all of them", () => reader.deliveries.length === 500);
    assert.ok(here.counters.notifies <= 4, `${here.counters.notifies} notifications`);
  });
});
