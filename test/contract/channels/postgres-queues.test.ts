import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { Client } from "pg";
import type { Delivery } from "../../../src/channels/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { PostgresWorld } from "./postgres-world.ts";
import { gate, message, messages, Reader, turn, until } from "./world.ts";

let world: PostgresWorld;
let proxy: TcpProxy;
before(async () => {
  world = await PostgresWorld.open();
  proxy = await TcpProxy.start(world.url);
});
after(async () => {
  await proxy.stop();
  await world.close();
});
beforeEach(() => world.clear());
afterEach(() => proxy.forward());

async function rows(): Promise<number> {
  return Number((await world.query("SELECT count(*)::int AS n FROM baton.message"))[0]!["n"]);
}

describe("queues in a table", () => {
  test("what a consumer had taken when it died is delivered elsewhere, counted, in its order", async () => {
    const dying = await world.started({ url: proxy.through(world.url), leaseMs: 300, connectMs: 200 });
    const here = await world.started({ leaseMs: 300, pollMs: 50 });
    const door = gate();
    const first = new Reader();
    dying.consume("q", async (batch) => {
      await first.handle(batch);
      await door.passed;
    });
    await here.send("q", messages(6, 2));
    await until("the first consumer to be busy", () => first.deliveries.length === 6);
    await proxy.refuse();
    const second = new Reader();
    here.consume("q", second.handle);
    await until("all of them again", () => second.deliveries.length === 6);
    for (const [key, bodies] of [
      ["key-0", [0, 2, 4]],
      ["key-1", [1, 3, 5]],
    ] as const) {
      assert.deepEqual(
        second.deliveries.filter((delivery) => delivery.key === key),
        bodies.map((body) => ({ key, body, deliveries: 2 })),
      );
    }
    // It was only cut off. What it says now about the batch is about messages that are not its any more.
    await here.send("q", [message("next", "key-0")]);
    await until("the next message", () => second.deliveries.length === 7);
    await proxy.forward();
    door.open();
    await dying.stop();
    assert.equal(await rows(), 0);
  });

  test("a late end of a batch touches nothing that another has taken meanwhile", async () => {
    const slow = await world.started({ url: proxy.through(world.url), leaseMs: 200, statementMs: 300 });
    const here = await world.started({ leaseMs: 60_000, pollMs: 20 });
    const [late, mine] = [gate(), gate()];
    let busy = false;
    const consumer = slow.consume("q", async () => {
      busy = true;
      await late.passed;
    });
    await here.send("q", messages(2));
    await until("the slow one to be busy", () => busy);
    await proxy.refuse();
    const second = new Reader();
    here.consume("q", async (batch) => {
      await second.handle(batch);
      await mine.passed;
    });
    await until("them to be with another", () => second.deliveries.length === 2);
    await proxy.forward();
    let connected = false;
    const sent: Promise<unknown>[] = [];
    await until("the slow one to be connected again", () => {
      const sending = slow.send("another queue", [message(0)]).then(
        () => (connected = true),
        () => {},
      );
      sent.push(sending);
      return connected;
    });
    await Promise.all(sent);
    await world.query("DELETE FROM baton.message WHERE queue = 'another queue'");
    late.open();
    await consumer.close();
    assert.equal(await rows(), 2, "they are gone although nobody has handled them");
    mine.open();
    await here.stop();
    assert.equal(await rows(), 0);
  });

  test("a batch stays with its consumer for as long as the handler runs", async () => {
    const here = await world.started({ leaseMs: 200, pollMs: 10 });
    const there = await world.started({ leaseMs: 200, pollMs: 10 });
    const door = gate();
    const first = new Reader();
    here.consume("q", async (batch) => {
      await first.handle(batch);
      await door.passed;
    });
    await here.send("q", messages(3, 3));
    await until("a busy consumer", () => first.deliveries.length === 3);
    const takenUntil = async (): Promise<number> =>
      Number((await world.query("SELECT min(taken_until) AS at FROM baton.message"))[0]!["at"]);
    const start = await takenUntil();
    const second = new Reader();
    there.consume("q", second.handle);
    const deadline = systemClock.monotonic() + 10_000;
    while ((await takenUntil()) < start + 600) assert.ok(systemClock.monotonic() < deadline);
    door.open();
    await here.stop();
    assert.deepEqual([first.batches.length, second.batches], [1, []]);
    assert.equal(await rows(), 0);
  });

  test("no key is ever with two consumers, whatever fails, and all is handled in the end", async () => {
    const random = seededRandom(11);
    const nodes = await Promise.all([1, 2, 3].map(() => world.started({ pollMs: 20 })));
    const busy = new Set<string>();
    const mistakes: string[] = [];
    const handled = new Set<unknown>();
    const firstSeen = new Map<string, number[]>();
    for (const node of [...nodes, ...nodes]) {
      node.consume(
        "q",
        async (batch) => {
          const keys = new Set(batch.map(({ key }) => key));
          for (const key of keys) {
            if (busy.has(key)) mistakes.push(`${key} is with two consumers`);
            busy.add(key);
          }
          for (const { key, body, deliveries } of batch) {
            if (deliveries === 1) firstSeen.set(key, [...(firstSeen.get(key) ?? []), Number(body)]);
          }
          for (let wait = 0; wait < random.chance() * 6; wait++) await turn();
          for (const key of keys) busy.delete(key);
          if (random.chance() < 0.2) throw new Error("by chance");
          for (const { body } of batch) handled.add(body);
        },
        { batchMax: 1 + Math.floor(random.chance() * 8) },
      );
    }
    let n = 0;
    for (let round = 0; round < 40; round++) {
      const batch = Array.from({ length: 15 }, () => {
        n += 1;
        return message(n, `key-${Math.floor(random.chance() * 10)}`);
      });
      await nodes[round % 3]!.send("q", batch);
    }
    await until("all of them", () => handled.size === n);
    assert.deepEqual(mistakes, []);
    for (const [key, bodies] of firstSeen) {
      assert.deepEqual(
        bodies,
        bodies.toSorted((a, b) => a - b),
        `${key}: one was first delivered before an older one`,
      );
    }
    await Promise.all(nodes.map((node) => node.stop()));
    assert.equal(await rows(), 0);
  });

  test("takes that meet at one key are decided one after the other", async () => {
    const [here, there] = [await world.started(), await world.started()];
    await here.send("q", messages(4));
    const door = gate();
    const readers = [new Reader(), new Reader()];
    const blocker = new Client({ connectionString: world.url });
    await blocker.connect();
    try {
      // Both have looked before either has taken: whoever comes second must look again.
      await blocker.query("BEGIN; SELECT FROM baton.message ORDER BY id LIMIT 1 FOR UPDATE");
      for (const [i, channels] of [here, there].entries()) {
        const handle = async (batch: readonly Delivery[]): Promise<void> => {
          await readers[i]!.handle(batch);
          await door.passed;
        };
        channels.consume("q", handle, { batchMax: 1 + 2 * i });
      }
      let waiting = 0;
      await until("both takes to wait", () => {
        void world
          .query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
          .then((found) => (waiting = found.length));
        return waiting === 2;
      });
    } finally {
      await blocker.end();
    }
    await until("a busy consumer", () => readers.some(({ batches }) => batches.length > 0));
    await here.send("q", [message("apart", "another key")]);
    // The other one has taken since: what it got is all it could get.
    await until("the other to be busy too", () => readers.every(({ batches }) => batches.length > 0));
    const holders = readers.filter((reader) => reader.deliveries.some(({ key }) => key === "key-0"));
    assert.equal(holders.length, 1, "one key is with two consumers");
    door.open();
    await until("all of them", () => readers.flatMap(({ deliveries }) => deliveries).length === 5);
  });

  test("a message that nobody can handle does not block its key, and is tried ever more rarely", async () => {
    const here = await world.started();
    const at: number[] = [];
    const reader = new Reader();
    here.consume(
      "q",
      async (batch) => {
        if (batch[0]!.body !== "poison") return reader.handle(batch);
        at.push(systemClock.monotonic());
        throw new Error("never");
      },
      { batchMax: 1 },
    );
    await here.send("q", [message("poison"), message("behind it"), message("other", "other key")]);
    await until("the messages behind", () => reader.deliveries.length === 2);
    await until("a few deliveries", () => at.length === 6);
    // 0, 10, 20, 40 and 80 ms at least.
    assert.ok(at[5]! - at[0]! >= 150, `${at[5]! - at[0]!} ms`);
    const [row] = await world.query("SELECT deliveries, consumer FROM baton.message");
    assert.ok(Number(row!["deliveries"]) >= 6);
  });

  test("every key has its turn, also when others never run out of messages", async () => {
    const here = await world.started();
    await here.send("q", [...messages(2_000, 2), message("rare", "zzz")]);
    let before = -1;
    let count = 0;
    here.consume(
      "q",
      async (batch) => {
        if (batch.some(({ body }) => body === "rare")) before = count;
        count += batch.length;
      },
      { batchMax: 10 },
    );
    await until("all of them", () => count === 2_001);
    assert.ok(before >= 0 && before < 100, `${before} messages went before it`);
  });

  test("what was taken for a consumer that closed meanwhile goes back and does not count", async () => {
    const here = await world.started();
    await here.send("q", messages(5));
    const early = new Reader();
    for (let round = 0; round < 20; round++) {
      const closing = here.consume("q", early.handle);
      await turn(); // the take is on its way, its answer is not here yet
      await closing.close();
    }
    assert.deepEqual(early.batches, []);
    const reader = new Reader();
    here.consume("q", reader.handle);
    await until("all of them", () => reader.deliveries.length === 5);
    assert.deepEqual(
      reader.deliveries.map(({ body, deliveries }) => [body, deliveries]),
      [0, 1, 2, 3, 4].map((body) => [body, 1]),
    );
  });

  test("sends that come together are stored by one statement, each caller's in its order", async () => {
    const here = await world.started();
    const sent = messages(1_000, 3);
    await Promise.all(sent.map((one) => here.send("q", [one])));
    const [{ n }] = (await world.query("SELECT count(DISTINCT xmin::text)::int AS n FROM baton.message")) as [
      { n: number },
    ];
    assert.ok(n <= 2, `${n} transactions`);
    const reader = new Reader();
    here.consume("q", reader.handle, { batchMax: 1_000 });
    await until("all of them", () => reader.deliveries.length === 1_000);
    assert.deepEqual(
      reader.bodies,
      sent.map(({ body }) => body),
    );
  });

  test("a wake-up is said once for a flood, and a consumer elsewhere does not wait for its poll", async () => {
    const here = await world.started();
    const there = await world.started({ pollMs: 3_600_000 });
    const reader = new Reader();
    there.consume("q", reader.handle);
    const idle = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) await turn();
    };
    await idle();
    await Promise.all(messages(500, 5).map((one) => here.send("q", [one])));
    await until("all of them", () => reader.deliveries.length === 500);
    assert.ok(here.counters.notifies <= 4, `${here.counters.notifies} notifications`);
  });

  test("a large body is a message like any other", async () => {
    const [here, there] = [await world.started(), await world.started()];
    const reader = new Reader();
    there.consume("q", reader.handle);
    const body = { text: "\u00e9\ud83d\ude00".repeat(200_000) };
    await here.send("q", [message(body)]);
    await until("the message", () => reader.deliveries.length === 1);
    assert.deepEqual(reader.bodies, [body]);
  });
});
