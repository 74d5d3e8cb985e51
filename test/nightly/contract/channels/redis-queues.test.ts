import assert from "node:assert/strict";
import { after, afterEach, beforeEach, describe, test } from "node:test";
import type { Channels } from "../../../../src/channels/channels.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { TcpProxy } from "../../../support/tcp-proxy.ts";
import { RedisWorld } from "../../../contract/channels/redis-world.ts";
import { onlyOneHasIt, servedQueues } from "../../../contract/channels/served-queues.ts";
import { held, message, messages, Reader, reading } from "../../../contract/channels/world.ts";
import { eventually } from "../../../support/wait.ts";

const world = await RedisWorld.open();
const proxy = await TcpProxy.start(world.url);
after(async () => {
  await proxy.stop();
  await world.close();
});
beforeEach(() => world.clear());
afterEach(() => proxy.forward());

const stream = "{baton}:queue:q";

/** Everything that is left when all was handled and all have gone. */
async function assertNothingIsLeft(...nodes: readonly Channels[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
  assert.deepEqual(await world.keys(), []);
}

servedQueues("redis", () => ({
  started: ({ leaseMs, lookMs, cut = false } = {}) =>
    world.started({
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(lookMs === undefined ? {} : { beatMs: lookMs }),
      ...(cut ? { url: proxy.through(world.url) } : {}),
    }),
  proxy,
  waiting: () => world.command<number>("XLEN", stream),
  nothingIsLeft: () => assertNothingIsLeft(),
  prolonged: (ms) => systemClock.sleep(ms),
  left: async () => {
    const range = ["XPENDING", stream, "baton", "-", "+", "10"];
    const [entry, ...others] = await world.command<[string, string, number, number][]>(...range);
    assert.deepEqual(others, []);
    return { deliveries: entry![3], taken: entry![1] !== "-" };
  },
}));

describe("queues in streams", () => {
  test("what one had that is known to be dead is delivered again at once", async () => {
    const dead = await world.started({ url: proxy.through(world.url), consumer: "node-a.1" });
    const here = await world.started();
    const { reader: first } = held(dead);
    await here.send("q", messages(4, 2));
    await eventually("it to be busy", () => first.deliveries.length === 4);
    await proxy.refuse();
    const second = reading(here);
    const from = systemClock.monotonic();
    await here.takeOver("node-b.1");
    await here.takeOver("node-a");
    await here.takeOver("node-a.1");
    await eventually("all of them again", () => second.deliveries.length === 4);
    assert.ok(systemClock.monotonic() - from < 3_000, "it waited for the lease");
    assert.deepEqual(second.counts, [2, 2, 2, 2]);
  });

  test("a node that comes back under the name of a dead one has nothing of what that one had, and gets it in its turn", async () => {
    const dead = await world.started({
      url: proxy.through(world.url),
      consumer: "same",
      leaseMs: 1_000,
      beatMs: 50,
    });
    const { reader: first } = held(dead);
    const back = world.channels({ consumer: "same", leaseMs: 1_000, beatMs: 50 });
    await dead.send("q", messages(2));
    await eventually("it to be busy", () => first.deliveries.length === 2);
    await proxy.refuse();
    await back.start();
    const second = reading(back);
    await eventually("them again", () => second.deliveries.length === 2);
    assert.deepEqual(second.counts, [2, 2]);
  });

  test("a wake-up for one who has gone goes to another, who does not wait for a look of its own", async () => {
    const gone = await world.started({ url: proxy.through(world.url), commandMs: 300 });
    const [here, there] = [await world.started(), await world.started({ beatMs: 3_600_000 })];
    const leaving = gone.consume("q", async () => {});
    const idle = async (count: number): Promise<boolean> =>
      (await world.command<number>("LLEN", "{baton}:idle:q")) === count;
    await eventually("the first to wait", () => idle(1));
    await proxy.refuse();
    await leaving.close(); // Redis does not hear of it
    await proxy.forward();
    const reader = reading(there);
    await eventually("both to wait", () => idle(2));
    for (let i = 1; i <= 4; i++) {
      await here.send("q", [message(i)]);
      await eventually("the message", () => reader.deliveries.length === i);
      await eventually("it to wait again", async () => !(await idle(0)));
    }
  });

  test("an exclusive queue is never with two consumers, whatever handlers and connections do, and all is handled in order", async () => {
    const nodes = await Promise.all(
      [1, 2, 3].map(() => world.started({ url: proxy.through(world.url), beatMs: 50 })),
    );
    const sender = await world.started();
    const disturb = (round: number): void => void (round % 6 === 5 && proxy.reset());
    await onlyOneHasIt({ nodes, rounds: 60, send: () => sender, disturb });
    await assertNothingIsLeft(...nodes, sender);
  });

  test("a take whose answer is lost gives its messages back, and they do not wait for a lease", async () => {
    const lossy = await world.started({ url: proxy.through(world.url), leaseMs: 600_000, commandMs: 300 });
    const here = await world.started({ leaseMs: 600_000 });
    const reader = new Reader();
    await proxy.freeze("down");
    lossy.consume("q", reader.handle);
    await here.send("q", messages(5, 2));
    await eventually("the take to be done", async () => (await pendingOf(stream)) === 5);
    assert.deepEqual(reader.batches, []);
    proxy.reset();
    await proxy.forward();
    await eventually("all of them", () => reader.deliveries.length === 5);
    await assertNothingIsLeft(lossy, here);
  });

  test("a consumer elsewhere does not wait for its next look, and sends that come together are one command", async () => {
    const [here, there] = [await world.started(), await world.started({ beatMs: 3_600_000 })];
    const reader = reading(there);
    await eventually("it to wait", async () => (await world.keys()).includes("{baton}:idle:q"));
    await world.command("CONFIG", "RESETSTAT");
    await Promise.all(messages(500, 5).map((one) => here.send("q", [one])));
    await eventually("all of them", () => reader.deliveries.length === 500);
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await world.command("INFO", "commandstats")) ?? [];
    assert.ok(Number(calls) < 30, `${calls} calls`);
    await here.send("q", [message("lone")]);
    await eventually("the lone one", () => reader.deliveries.length === 501);
  });

  test("what somebody else adds to the stream, with or without a key, is a message too", async () => {
    const here = await world.started({ beatMs: 50 });
    const reader = reading(here);
    await world.command("XADD", stream, "*", "data", '{"by":"hand"}');
    await world.command("XADD", stream, "*", "data", "1", "key", '"k"');
    await eventually("both", () => reader.deliveries.length === 2);
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
    await eventually("all of them", () => total === 3 * count);
    for (const bodies of heard.values()) assert.deepEqual(bodies, [0, 1, 2]);
    await Promise.all(subscriptions.map((subscription) => subscription.close()));
    await eventually("the sets of those who wait to be gone", async () =>
      (await world.keys()).every((key) => !key.includes("job.")),
    );
    await assertNothingIsLeft(here, there);
  });
});

async function pendingOf(key: string): Promise<number> {
  try {
    return (await world.command<[number]>("XPENDING", key, "baton"))[0];
  } catch {
    return 0; // not there yet
  }
}
