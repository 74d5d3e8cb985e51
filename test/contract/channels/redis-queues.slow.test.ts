import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import type { Channels } from "../../../src/channels/channels.ts";
import type { RedisChannels } from "../../../src/channels/redis/redis.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { RedisWorld } from "./redis-world.ts";
import { gate, message, messages, Reader, turn, until } from "./world.ts";

let world: RedisWorld;
let proxy: TcpProxy;
before(async () => {
  world = await RedisWorld.open();
  proxy = await TcpProxy.start(world.url);
});
after(async () => {
  await proxy.stop();
  await world.close();
});
beforeEach(() => world.clear());
afterEach(() => proxy.forward());

const stream = "{baton}:queue:q";

async function waiting(): Promise<number> {
  return Number(await world.command("XLEN", stream));
}

/** Everything that is left when all was handled and all have gone. */
async function assertNothingIsLeft(...nodes: readonly Channels[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
  assert.deepEqual(await world.keys(), []);
}

describe("queues in streams", () => {
  test("what a consumer had taken when it died is delivered elsewhere, counted, in its order", async () => {
    const dying = await world.started({ url: proxy.through(world.url), leaseMs: 400, beatMs: 50 });
    const here = await world.started({ leaseMs: 400, beatMs: 50 });
    const door = gate();
    const first = new Reader();
    const consumer = dying.consume("q", async (batch) => {
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
    await consumer.close();
    await assertNothingIsLeft(dying, here);
  });

  test("what one had that is known to be dead is delivered again at once", async () => {
    const dead = await world.started({ url: proxy.through(world.url), consumer: "node-a.1" });
    const here = await world.started();
    const door = gate();
    const first = new Reader();
    dead.consume("q", async (batch) => {
      await first.handle(batch);
      await door.passed;
    });
    await here.send("q", messages(4, 2));
    await until("it to be busy", () => first.deliveries.length === 4);
    await proxy.refuse();
    const second = new Reader();
    here.consume("q", second.handle);
    const from = systemClock.monotonic();
    await here.takeOver("node-b.1");
    await here.takeOver("node-a");
    await here.takeOver("node-a.1");
    await until("all of them again", () => second.deliveries.length === 4);
    assert.ok(systemClock.monotonic() - from < 3_000, "it waited for the lease");
    assert.deepEqual(
      second.deliveries.map(({ deliveries }) => deliveries),
      [2, 2, 2, 2],
    );
  });

  test("a node that comes back under the name of a dead one has nothing of what that one had, and gets it in its turn", async () => {
    const dead = await world.started({
      url: proxy.through(world.url),
      consumer: "same",
      leaseMs: 1_000,
      beatMs: 50,
    });
    const door = gate();
    const first = new Reader();
    dead.consume("q", async (batch) => {
      await first.handle(batch);
      await door.passed;
    });
    const back = world.channels({ consumer: "same", leaseMs: 1_000, beatMs: 50 });
    await dead.send("q", messages(2));
    await until("it to be busy", () => first.deliveries.length === 2);
    await proxy.refuse();
    await back.start();
    const second = new Reader();
    back.consume("q", second.handle);
    await until("them again", () => second.deliveries.length === 2);
    assert.deepEqual(
      second.deliveries.map(({ deliveries }) => deliveries),
      [2, 2],
    );
  });

  test("a wake-up for one who has gone goes to another, who does not wait for a look of its own", async () => {
    const gone = await world.started({ url: proxy.through(world.url), commandMs: 300 });
    const [here, there] = [await world.started(), await world.started({ beatMs: 3_600_000 })];
    const leaving = gone.consume("q", async () => {});
    const idle = async (count: number): Promise<boolean> =>
      (await world.command<number>("LLEN", "{baton}:idle:q")) === count;
    await untilAsync("the first to wait", () => idle(1));
    await proxy.refuse();
    await leaving.close(); // Redis does not hear of it
    await proxy.forward();
    const reader = new Reader();
    there.consume("q", reader.handle);
    await untilAsync("both to wait", () => idle(2));
    for (let i = 1; i <= 4; i++) {
      await here.send("q", [message(i)]);
      await until("the message", () => reader.deliveries.length === i);
      await untilAsync("it to wait again", async () => !(await idle(0)));
    }
  });

  test("a late end of a batch touches nothing that another has taken meanwhile", async () => {
    const slow = await world.started({ url: proxy.through(world.url), leaseMs: 200, beatMs: 30 });
    const here = await world.started({ leaseMs: 60_000, beatMs: 30 });
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
    await sends(slow);
    late.open();
    await consumer.close();
    assert.equal(await waiting(), 2, "they are gone although nobody has handled them");
    mine.open();
    await until("the end", () => second.batches.length === 1);
    await here.stop();
    assert.equal(await waiting(), 0);
  });

  test("a batch stays with its consumer for as long as the handler runs", async () => {
    const here = await world.started({ leaseMs: 200, beatMs: 20 });
    const there = await world.started({ leaseMs: 200, beatMs: 20 });
    const door = gate();
    const first = new Reader();
    here.consume("q", async (batch) => {
      await first.handle(batch);
      await door.passed;
    });
    await here.send("q", messages(3, 3));
    await until("a busy consumer", () => first.deliveries.length === 3);
    const second = new Reader();
    there.consume("q", second.handle);
    const from = systemClock.monotonic();
    await until("three leases", () => systemClock.monotonic() - from > 600);
    door.open();
    await assertNothingIsLeft(here, there);
    assert.deepEqual([first.batches.length, second.batches], [1, []]);
  });

  test("no key is ever with two consumers, whatever handlers and connections do, and all is handled in the end", async () => {
    const random = seededRandom(11);
    const nodes: RedisChannels[] = await Promise.all(
      [1, 2, 3].map(() => world.started({ url: proxy.through(world.url), beatMs: 50 })),
    );
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
    const sender = await world.started();
    let n = 0;
    for (let round = 0; round < 60; round++) {
      const batch = Array.from({ length: 15 }, () => {
        n += 1;
        return message(n, `key-${Math.floor(random.chance() * 10)}`);
      });
      await sender.send("q", batch);
      if (round % 6 === 5) proxy.reset();
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
    await assertNothingIsLeft(...nodes, sender);
  });

  test("a take whose answer is lost gives its messages back, and they do not wait for a lease", async () => {
    const lossy = await world.started({ url: proxy.through(world.url), leaseMs: 600_000, commandMs: 300 });
    const here = await world.started({ leaseMs: 600_000 });
    const reader = new Reader();
    await proxy.freeze("down");
    lossy.consume("q", reader.handle);
    await here.send("q", messages(5, 2));
    await untilAsync("the take to be done", async () => (await pendingOf(stream)) === 5);
    assert.deepEqual(reader.batches, []);
    proxy.reset();
    await proxy.forward();
    await until("all of them", () => reader.deliveries.length === 5);
    await assertNothingIsLeft(lossy, here);
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
    await here.stop();
    const [[, consumer, , deliveries]] = await world.command<[[string, string, number, number]]>(
      "XPENDING",
      stream,
      "baton",
      "-",
      "+",
      "10",
    );
    assert.equal(consumer, "-");
    assert.ok(deliveries >= 6, `${deliveries} deliveries`);
  });

  test("messages of a key that is taken are parked, and those of other keys behind them are not held up", async () => {
    const [here, there] = [await world.started(), await world.started()];
    const door = gate();
    const slow = new Reader();
    here.consume(
      "q",
      async (batch) => {
        await slow.handle(batch);
        await door.passed;
      },
      { batchMax: 1 },
    );
    await here.send("q", [message("first", "slow")]);
    await until("a busy consumer", () => slow.deliveries.length === 1);
    const many = Array.from({ length: 3_000 }, (_, i) => message(i, "slow"));
    await here.send("q", [...many, message("behind", "quick")]);
    const quick = new Reader();
    const other = there.consume("q", quick.handle, { batchMax: 10 });
    await until("the one behind", () => quick.deliveries.length === 1);
    assert.deepEqual(quick.bodies, ["behind"]);
    await other.close();
    there.consume("q", quick.handle, { batchMax: 1_000 });
    door.open();
    await until("all of them", () => slow.deliveries.length + quick.deliveries.length === 3_002);
    const order = [...slow.deliveries, ...quick.deliveries].filter(({ key }) => key === "slow");
    assert.ok(order.every(({ deliveries }) => deliveries === 1));
    const parked = quick.bodies.filter((body) => body !== "behind").map(Number);
    assert.deepEqual(
      parked,
      parked.toSorted((a, b) => a - b),
    );
    await assertNothingIsLeft(here, there);
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

  test("a consumer elsewhere does not wait for its next look, and sends that come together are one command", async () => {
    const [here, there] = [await world.started(), await world.started({ beatMs: 3_600_000 })];
    const reader = new Reader();
    there.consume("q", reader.handle);
    await untilAsync("it to wait", async () => (await world.keys()).includes("{baton}:idle:q"));
    await world.command("CONFIG", "RESETSTAT");
    await Promise.all(messages(500, 5).map((one) => here.send("q", [one])));
    await until("all of them", () => reader.deliveries.length === 500);
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await world.command("INFO", "commandstats")) ?? [];
    assert.ok(Number(calls) < 30, `${calls} calls`);
    await here.send("q", [message("lone")]);
    await until("the lone one", () => reader.deliveries.length === 501);
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

  test("what somebody else adds to the stream, with or without a key, is a message too", async () => {
    const here = await world.started({ beatMs: 50 });
    const reader = new Reader();
    here.consume("q", reader.handle);
    await world.command("XADD", stream, "*", "data", '{"by":"hand"}');
    await world.command("XADD", stream, "*", "data", "1", "key", '"k"');
    await until("both", () => reader.deliveries.length === 2);
    assert.deepEqual(reader.deliveries, [
      { key: "", body: { by: "hand" }, deliveries: 1 },
      { key: "k", body: 1, deliveries: 1 },
    ]);
  });
});

describe("thousands of queues", () => {
  test("cost one blocking read, keep their order, and leave nothing behind when they are closed", async () => {
    const [here, there] = [await world.started(), await world.started()];
    const count = 3_000;
    const heard = new Map<string, unknown[]>();
    let total = 0;
    const subscriptions = Array.from({ length: count }, (_, i) =>
      there.consume(`job.${i}.status`, async (batch) => {
        total += batch.length;
        heard.set(`${i}`, [...(heard.get(`${i}`) ?? []), ...batch.map(({ body }) => body)]);
      }),
    );
    const clients = String(await world.command("CLIENT", "LIST"));
    assert.equal(
      clients.split("\n").filter((line) => /cmd=xread\b/.test(line)).length,
      2,
      "one for each node",
    );
    for (let round = 0; round < 3; round++) {
      await Promise.all(
        Array.from({ length: count }, (_, i) => here.send(`job.${i}.status`, [message(round, `${i}`)])),
      );
    }
    await until("all of them", () => total === 3 * count);
    for (const bodies of heard.values()) assert.deepEqual(bodies, [0, 1, 2]);
    await Promise.all(subscriptions.map((subscription) => subscription.close()));
    await untilAsync("the sets of those who wait to be gone", async () =>
      (await world.keys()).every((key) => !key.includes("job.")),
    );
    await assertNothingIsLeft(here, there);
  });

  test("go to the new owner with what was not handled, in order, also what was sent while nobody had them", async () => {
    const [old, next, worker] = [await world.started(), await world.started(), await world.started()];
    const first = new Reader();
    const owned = old.consume("job.1.status", first.handle);
    await worker.send("job.1.status", [message("started", "1")]);
    await until("the first", () => first.deliveries.length === 1);
    await owned.close();
    await worker.send("job.1.status", [message("half", "1"), message("done", "1")]);
    const second = new Reader();
    next.consume("job.1.status", second.handle);
    await until("the rest", () => second.deliveries.length === 2);
    assert.deepEqual([first.bodies, second.bodies], [["started"], ["half", "done"]]);
  });
});

async function pendingOf(key: string): Promise<number> {
  try {
    return (await world.command<[number]>("XPENDING", key, "baton"))[0];
  } catch {
    return 0; // not there yet
  }
}

async function untilAsync(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = systemClock.monotonic() + 10_000;
  while (!(await condition())) assert.ok(systemClock.monotonic() < deadline, `waited in vain: ${what}`);
}

/** Until a send of its own gets through. */
async function sends(node: RedisChannels): Promise<void> {
  let connected = false;
  const sent: Promise<unknown>[] = [];
  await until("it to be connected again", () => {
    const sending = node.send("another queue", [message(0)]).then(
      () => (connected = true),
      () => {},
    );
    sent.push(sending);
    return connected;
  });
  await Promise.all(sent);
}
