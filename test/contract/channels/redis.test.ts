import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { openChannels } from "../../../src/channels/open-channels.ts";
import { hasCode } from "../../../src/core/errors.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { channelsContract } from "./contract.ts";
import { RedisWorld } from "./redis-world.ts";
import { message, messages, quiet, Reader, until } from "./world.ts";

let world: RedisWorld;
before(async () => {
  world = await RedisWorld.open();
});
after(() => world.close());

/** Two nodes on one server. */
channelsContract("redis", async () => {
  await world.clear();
  const [here, there] = [world.channels(), world.channels()];
  await Promise.all([here.start(), there.start()]);
  return { here, there };
});

describe("redis channels", () => {
  beforeEach(() => world.clear());

  test("two clusters on one server do not hear each other", async () => {
    const clusters = await Promise.all(
      ["one", "one.more", "x".repeat(63)].map(async (prefix) => ({
        here: await world.started({ prefix }),
        there: await world.started({ prefix }),
      })),
    );
    const heard = clusters.map(({ there }) => {
      const reader = new Reader();
      const topic: unknown[] = [];
      there.consume("q", reader.handle);
      there.subscribe("t", ({ body }) => void topic.push(body));
      return { reader, topic };
    });
    for (const [i, { here }] of clusters.entries()) {
      await here.send("q", [message(i)]);
      await here.publish("t", [message(i)]);
    }
    for (const cluster of clusters) await quiet(cluster);
    for (const [i, { reader, topic }] of heard.entries()) {
      assert.deepEqual([reader.bodies, topic], [[i], [i]]);
    }
  });

  test("a server that cannot be reached fails the start, and one that may evict is warned of", async () => {
    const unreachable = await openChannels({
      kind: "redis",
      url: "redis://127.0.0.1:1",
      clock: systemClock,
      random: systemRandom,
    });
    await assert.rejects(unreachable.start(), (error) => hasCode(error, "STORE_UNAVAILABLE"));
    const warned: string[] = [];
    const log = { info() {}, warn: (_: unknown, text: string) => void warned.push(text) };
    await world.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "100mb");
    try {
      await world.started({ log });
    } finally {
      await world.command("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "0");
    }
    assert.deepEqual(warned, ["Redis may evict what is not handled yet: set maxmemory-policy to noeviction"]);
  });

  lifecycleStress("redis channels", async () => ({
    service: world.channels(),
    works: async (channels) => {
      const reader = new Reader();
      const heard: unknown[] = [];
      const consumer = channels.consume("q", reader.handle);
      const subscriber = channels.subscribe("t", ({ body }) => void heard.push(body));
      await channels.send("q", messages(1));
      await channels.publish("t", messages(1));
      await until("the messages", () => reader.deliveries.length === 1 && heard.length === 1);
      await Promise.all([consumer.close(), subscriber.close()]);
    },
  }));
});
