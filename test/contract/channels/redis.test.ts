import assert from "node:assert/strict";
import { after, beforeEach, describe, test } from "node:test";
import { openChannels } from "../../../src/channels/open-channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { channelsContract } from "./contract.ts";
import { RedisWorld } from "./redis-world.ts";
import { servedChannels } from "./served-world.ts";

const world = await RedisWorld.open();
after(() => world.close());

channelsContract("redis", async () => {
  await world.clear();
  const [here, there] = [world.channels(), world.channels()];
  await Promise.all([here.start(), there.start()]);
  return { here, there };
});

describe("redis channels", () => {
  beforeEach(() => world.clear());

  const prefixes = ["one", "one.more", "x".repeat(63)];
  servedChannels(
    "redis",
    () => world.channels(),
    () =>
      Promise.all(
        prefixes.map(async (prefix) => ({
          here: await world.started({ prefix }),
          there: await world.started({ prefix }),
        })),
      ),
  );

  test("a server that cannot be reached fails the start, and one that may evict is warned of", async () => {
    const unreachable = await openChannels({
      kind: "redis",
      url: "redis://127.0.0.1:1",
      clock: systemClock,
      random: systemRandom,
    });
    await assert.rejects(unreachable.start(), { code: "STORE_UNAVAILABLE" });
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
});
