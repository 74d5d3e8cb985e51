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

  it("finds jobs whose messages Redis has lost", async (t) => {
    const world = await DispatchWorld.open(t, servers);
    const runs = new CountedRuns(world);
    await world.lead();
    await world.owner();
    for (const name of ["one", "two"]) await world.node(name, { tasks: { work: runs.slow(20) } });
    const ids = await world.submit(300);
    await world.eventually("some have run", () => runs.order.length > 50);
    await redis.command("FLUSHALL");
    await world.until(ids, "completed");
    runs.assertOnce(ids);
  });

  it("gets the jobs of a worker that leaves to the others, and burns nothing", async (t) => {
    const world = await DispatchWorld.open(t, servers);
    const runs = new CountedRuns(world);
    await world.lead();
    await world.owner();
    const leaving = await world.node("leaving", { tasks: { work: runs.slow(5) } });
    await world.node("staying", { tasks: { work: runs.slow(5) } });
    const ids = await world.submit(300);
    await world.eventually("some have run", () => runs.order.length > 50);
    assert.deepEqual(await world.during(leaving.worker.drain({ timeoutMs: 2_000, cleanupMs: 500 })), {
      interrupted: 0,
    });
    await world.until(ids, "completed");
    runs.assertOnce(ids);
    for (const id of ids) assert.equal((await world.job(id)).attempts, 1);
  });
});
