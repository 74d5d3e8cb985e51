/** The same on real servers: jobs in PostgreSQL, messages through Redis. */

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { RedisChannels } from "../../../../src/channels/redis/channels.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { systemRandom } from "../../../../src/platform/random.ts";
import { openPostgresStore } from "../../../../src/store/postgres/store.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { RedisServer } from "../../../support/redis-server.ts";
import { CountedRuns, DispatchWorld, type Backend } from "./world.ts";

const [postgres, redis] = await Promise.all([PostgresServer.shared(), RedisServer.start()]);
after(() => Promise.all([postgres.stop(), redis.stop()]));

/** One for each node, as on machines of their own. */
async function servers(): Promise<Backend> {
  await redis.command("FLUSHALL");
  const store = await openPostgresStore({ url: await postgres.createDatabase(), clock: systemClock });
  const opened = new Map<string, Promise<RedisChannels>>();
  const open = async (): Promise<RedisChannels> => {
    const channels = new RedisChannels({ url: redis.url(), clock: systemClock, random: systemRandom });
    await channels.start();
    return channels;
  };
  return {
    clock: systemClock,
    store,
    channels: (node) => {
      const channels = opened.get(node) ?? open();
      opened.set(node, channels);
      return channels;
    },
    close: async () => {
      for (const channels of opened.values()) await (await channels).stop();
      await store.close();
    },
  };
}

describe("dispatch through PostgreSQL and Redis", () => {
  it("brings a flood to two workers, and each job runs once", async (t) => {
    const world = await DispatchWorld.open(t, servers);
    const runs = new CountedRuns(world);
    const shares = [new CountedRuns(world, runs), new CountedRuns(world, runs)];
    await world.lead(2_000);
    const owner = await world.owner();
    for (const [i, { quick }] of shares.entries())
      await world.node(`worker-${i}`, { tasks: { work: quick }, receiptMs: 30_000 });
    const ids = await world.submit(1_000);
    await world.eventually("all have run", () => runs.order.length >= 1_000);
    await world.until(ids, "completed");
    runs.assertOnce(ids);
    for (const { order } of shares) assert.ok(order.length > 0, "both have run some");
    assert.equal(owner.written, 1_000);
  });
});
