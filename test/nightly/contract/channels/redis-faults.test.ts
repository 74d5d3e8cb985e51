/** A real server that stands still, is emptied, ends and comes back, with and without its data. */

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import type { RedisChannels, RedisChannelsOptions } from "../../../../src/channels/redis/channels.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { TcpProxy } from "../../../support/tcp-proxy.ts";
import { RedisWorld } from "../../../contract/channels/redis-world.ts";
import {
  givesUpSilence,
  losesNothing,
  refusesWhileAway,
  unavailable,
} from "../../../contract/channels/served-faults.ts";
import { Watched } from "../../../contract/channels/served-world.ts";
import { gate, held, message, messages, Reader, reading, until } from "../../../contract/channels/world.ts";

function watched(
  world: RedisWorld,
  options: Partial<RedisChannelsOptions> = {},
): Promise<Watched<RedisChannels>> {
  const often = { beatMs: 50, commandMs: 1_000 };
  return new Watched((watch) => world.channels({ ...often, ...watch, ...options })).start();
}

describe("a Redis that fails", () => {
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
  afterEach(async () => {
    world.server.resume();
    await proxy.forward();
  });

  test("and cannot be reached refuses what others could not hear of; nothing is missed when it is there again", async () => {
    const other = await world.started({ beatMs: 50 });
    const node = await watched(world, { url: proxy.through(world.url) });
    await refusesWhileAway(node, other, proxy, "topics are not heard at the moment");
    assert.ok(node.heard.includes("a hint meanwhile"));
    assert.equal(node.gaps, 0, "nothing was missed");
  });

  test("and is silent is given up within the deadline, and the channels can be stopped then", async () =>
    givesUpSilence(await watched(world, { url: proxy.through(world.url), commandMs: 200 }), proxy));

  test("whose topics went on for too long without us is a gap, and it is told", async () => {
    const other = await world.started({ topicEntriesMax: 10 });
    const node = await watched(world, { url: proxy.through(world.url) });
    await node.hears(other, "before");
    await proxy.refuse();
    // More than a node of the stream holds: trimming takes whole ones.
    for (let i = 0; i < 300; i++) await other.publish("t", [message(i)]);
    await proxy.forward();
    await until("the gap to be told", () => node.gaps === 1);
    await until("the last one", () => node.heard.at(-1) === 299);
    assert.ok(!node.heard.includes(0));
    assert.equal(node.channels.counters.gaps, 1);
  });

  test("and stands still for longer than a lease takes no batch from those who live", async () => {
    const options = { leaseMs: 500, beatMs: 50, commandMs: 300 };
    const [here, there] = [await world.started(options), await world.started(options)];
    const doors = [gate(), gate()];
    const readers = [new Reader(), new Reader()];
    for (const [i, channels] of [here, there].entries()) {
      channels.consume(
        "q",
        async (batch) => {
          await readers[i]!.handle(batch);
          await doors[i]!.passed;
        },
        { batchMax: 1 },
      );
    }
    await here.send("q", messages(2, 2));
    await until("both to be busy", () => readers.every(({ batches }) => batches.length === 1));
    world.server.pause();
    const from = systemClock.monotonic();
    await assert.rejects(here.send("q", [message("lost or not")]), unavailable);
    await until("three leases", () => systemClock.monotonic() - from > 1_500);
    world.server.resume();
    await until("it to answer again", answers(here));
    const again = systemClock.monotonic();
    await until("some beats", () => systemClock.monotonic() - again > 200);
    for (const door of doors) door.open();
    await until("the next ones", () => readers.some(({ batches }) => batches.length > 1));
    const seen = readers
      .flatMap(({ deliveries }) => deliveries)
      .filter(({ body }) => body === 0 || body === 1);
    const counts = seen.map(({ deliveries }) => deliveries);
    assert.deepEqual(counts, [1, 1]);
  });

  test("and was away for longer than a lease buries nobody before they had the time to say that they live", async () => {
    const here = await world.started({ leaseMs: 2_000, beatMs: 50 });
    const there = await world.started({ leaseMs: 2_000, beatMs: 800 });
    const { reader, door } = held(there);
    await here.send("q", messages(2));
    await until("a busy consumer", () => reader.batches.length === 1);
    // As it is after a standstill of a minute, in the moment in which the first of them is heard.
    await world.command(
      "EVAL",
      `local now = redis.call('TIME')[1] * 1000
      redis.call('SET', '{baton}:consumers:beat', now - 60000)
      for _, who in ipairs(redis.call('ZRANGE', '{baton}:consumers', 0, -1)) do
        redis.call('ZADD', '{baton}:consumers', now - 58000, who)
      end`,
      "0",
    );
    const other = reading(here);
    const from = systemClock.monotonic();
    await until("a lease and more", () => systemClock.monotonic() - from > 2_500);
    door.open();
    await Promise.all([here.stop(), there.stop()]);
    assert.deepEqual([reader.batches.length, other.batches], [1, []]);
  });

  test("and hears a take of a connection that was given up does not hand out anything to it", async () => {
    const node = await world.started({
      url: proxy.through(world.url),
      name: "late",
      commandMs: 200,
      leaseMs: 60_000,
    });
    const here = await world.started();
    const reader = new Reader();
    const door = gate();
    const clients = String(await world.command("CLIENT", "LIST")).split("\n");
    const line = clients.find((client) => client.includes("name=late") && !client.includes("cmd=xread"));
    proxy.freezeOne(Number(/addr=[^ ]*:(\d+) /.exec(line!)![1]));
    node.consume(
      "q",
      async (batch) => {
        await reader.handle(batch);
        await door.passed;
      },
      { batchMax: 1 },
    );
    await here.send("q", messages(10, 10));
    await until("one of them, on the next connection", () => reader.deliveries.length === 1);
    // Now the take arrives that was sent on the first one.
    await proxy.forward();
    await until("the old connection to be gone", () => proxy.connections === 2);
    door.open();
    await until("all of them", () => reader.deliveries.length === 10);
    assert.ok(reader.deliveries.every(({ deliveries }) => deliveries === 1));
  });

  test("and reads the take of a dead connection late does not lose its messages in it", async () => {
    const options = { leaseMs: 60_000, beatMs: 50, commandMs: 200 };
    const node = await world.started(options);
    const reader = new Reader();
    await node.send("q", messages(20, 4));
    for (let round = 0; round < 3; round++) {
      world.server.pause();
      // Taken on a connection that we give up before the server reads it.
      const consumer = node.consume("q", reader.handle, { batchMax: 3 });
      await assert.rejects(node.send("other", [message(1)]), unavailable);
      world.server.resume();
      await until("it to answer again", answers(node));
      await consumer.close();
    }
    node.consume("q", reader.handle);
    await until("all of them", () => new Set(reader.bodies).size === 20);
  });

  test("that is emptied is used again at once: groups, wake-ups and topics are made anew", async () => {
    const [node, other] = [await watched(world), await world.started({ beatMs: 50 })];
    const reader = new Reader();
    const door = gate();
    const busy = new Reader();
    node.channels.consume("q", reader.handle);
    node.channels.consume("busy", async (batch) => {
      await busy.handle(batch);
      await door.passed;
    });
    await other.send("q", messages(3));
    await other.send("busy", messages(3));
    await until("the messages", () => reader.deliveries.length === 3 && busy.deliveries.length === 3);
    await node.hears(other, "before");

    await world.command("FLUSHALL");
    await other.send("q", [message("after")]);
    await until("what was sent afterwards", () => reader.bodies.includes("after"));
    await until("the gap to be told", () => node.gaps >= 1);
    await node.hears(other, "after");
    door.open();
    await other.send("busy", [message("next")]);
    await until("the busy one to go on", () => busy.bodies.includes("next"));
    await Promise.all([node.channels.stop(), other.stop()]);
    assert.deepEqual(await world.keys(), []);
  });

  test("whose keys are deleted one by one heals", async () => {
    const [here, there] = [await world.started({ beatMs: 50 }), await world.started({ beatMs: 50 })];
    const seen = new Set<unknown>();
    for (const channels of [here, there]) {
      channels.consume(
        "q",
        async (batch) => {
          for (const { body } of batch) seen.add(body);
        },
        { batchMax: 2 },
      );
    }
    let n = 0;
    const victims = "idle:q consumers consumers:beat topics topics:count consumer wake uses";
    for (const victim of victims.split(" ")) {
      const keys = await world.command<string[]>("KEYS", `{baton}:${victim}*`);
      if (keys.length > 0) await world.command("DEL", ...keys);
      for (let i = 0; i < 5; i++) await here.send("q", [message(++n, `key-${i}`)]);
      await until(`all after the loss of ${victim}`, () => seen.size === n);
    }
    await Promise.all([here.stop(), there.stop()]);
    assert.deepEqual(await world.keys(), []);
  });

  test("that loses when messages are due delivers them soon", async () => {
    const node = await world.started({ beatMs: 50 });
    const reader = new Reader();
    let failing = true;
    node.consume("q", async (batch) => {
      if (!failing) return reader.handle(batch);
      if (batch[0]!.deliveries === 9) {
        failing = false;
        // With the answer to this failure they wait for 1.3 s.
        setTimeout(() => void world.command("DEL", "{baton}:rest:q"), 100);
      }
      throw new Error("not yet");
    });
    await node.send("q", messages(2));
    await until("both", () => reader.deliveries.length === 2);
    await node.stop();
    assert.deepEqual(await world.keys(), []);
  });

  test("that loses a queue goes on with the next message", async () => {
    const node = await world.started({ beatMs: 50 });
    const { reader, door } = held(node);
    await node.send("q", messages(2));
    await until("a busy handler", () => reader.deliveries.length === 2);
    await world.command("DEL", "{baton}:queue:q");
    door.open();
    await node.send("q", [message("next")]);
    await until("the next message", () => reader.bodies.includes("next"));
    assert.deepEqual(reader.bodies, [0, 1, "next"]);
    await node.stop();
    assert.deepEqual(await world.keys(), []);
  });

  test("that forgets its scripts is told them again", async () => {
    const node = await watched(world);
    const reader = reading(node.channels);
    for (let round = 1; round <= 3; round++) {
      await world.command("SCRIPT", "FLUSH");
      await node.channels.send("q", [message(round)]);
      await node.channels.publish("t", [message(round)]);
      await until("both", () => reader.deliveries.length === round && node.heard.length === round);
    }
    assert.deepEqual([node.warned, node.gaps], [[], 0]);
  });

  test("that is out of memory refuses what is sent and lets what it has be handled", async () => {
    const [here, there] = [await world.started({ beatMs: 50 }), await world.started({ beatMs: 50 })];
    await here.send("q", messages(50, 10));
    await world.command("CONFIG", "SET", "maxmemory", "1mb");
    const reader = new Reader();
    try {
      await assert.rejects(here.send("q", [message("too much")]), unavailable);
      there.consume("q", reader.handle, { batchMax: 10 });
      const from = systemClock.monotonic();
      await until("some time", () => systemClock.monotonic() - from > 300);
    } finally {
      await world.command("CONFIG", "SET", "maxmemory", "0");
    }
    await until("all of them", () => reader.deliveries.length >= 50);
    assert.equal(new Set(reader.bodies).size, 50);
  });

  function answers(channels: RedisChannels): () => boolean {
    let answered = false;
    return () => {
      void channels.publish("answers?", [message(1)]).then(
        () => (answered = true),
        () => {},
      );
      return answered;
    };
  }
});

describe("a Redis that ends", () => {
  test("by kill -9 and comes back with its data loses no message that was sent", async () => {
    const world = await RedisWorld.open({ persistent: true });
    try {
      const options = { beatMs: 50, commandMs: 1_000 };
      const [here, there] = [await world.started(options), await world.started(options)];
      await losesNothing(here, there, 2, async () => {
        await world.server.halt("kill");
        await world.server.relaunch();
      });
      await Promise.all([here.stop(), there.stop()]);
      assert.deepEqual(await world.keys(), []);
    } finally {
      await world.close();
    }
  });

  test("and comes back without its data is used again, and the gap is told", async () => {
    const world = await RedisWorld.open();
    try {
      const [node, other] = [await watched(world), await world.started({ beatMs: 50 })];
      const reader = reading(node.channels);
      await other.send("q", [message("before")]);
      await node.hears(other, "before");
      await until("the message", () => reader.bodies.includes("before"));
      await world.server.halt("kill");
      await assert.rejects(other.send("q", [message("lost")]), unavailable);
      await world.server.relaunch();
      await node.hears(other, "after");
      await until("the message afterwards", () => {
        void other.send("q", [message("after")]).catch(() => {});
        return reader.bodies.includes("after");
      });
      assert.ok(node.gaps >= 1);
    } finally {
      await world.close();
    }
  });
});
