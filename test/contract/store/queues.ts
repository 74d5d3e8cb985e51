import assert from "node:assert/strict";
import { HOUR_MS, lease, type Promises } from "../../support/store-world.ts";

const NONE = { scheduled: 0, queued: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };

export const queuePromises: Promises = {
  "an empty store has no queue with jobs": async (world) => {
    for (const queue of await world.store.queues.list()) assert.deepEqual({ ...queue.counts }, NONE);
  },

  "every queue is listed with its pause and its counts": async (world) => {
    await world.submitMany(2, { queue: "a" });
    await world.submit({ queue: "b", delayMs: HOUR_MS });
    await world.store.queues.setPaused("b", true);
    await world.store.queues.setPaused("not-used-yet", true);
    const queues = (await world.store.queues.list()).filter((queue) => queue.name !== "default");
    assert.deepEqual(
      queues
        .map((queue) => ({ ...queue, counts: { ...queue.counts } }))
        .sort((x, y) => (x.name < y.name ? -1 : 1)),
      [
        { name: "a", paused: false, counts: { ...NONE, queued: 2 }, oldestAt: world.clock.now() },
        { name: "b", paused: true, counts: { ...NONE, scheduled: 1 }, oldestAt: null },
        { name: "not-used-yet", paused: true, counts: NONE, oldestAt: null },
      ],
    );
  },

  "whether one queue is paused can be asked, also of one that nobody has used": async (world) => {
    const { queues } = world.store;
    assert.equal(await queues.isPaused("a"), false);
    await queues.setPaused("a", true);
    assert.deepEqual([await queues.isPaused("a"), await queues.isPaused("b")], [true, false]);
    await queues.setPaused("a", false);
    assert.equal(await queues.isPaused("a"), false);
  },

  "since when the oldest due job of each queue waits is known, whatever its priority and task": async (
    world,
  ) => {
    const { queues } = world.store;
    const now = world.clock.now();
    const since = async (): Promise<Record<string, number>> =>
      Object.fromEntries(
        (await queues.list()).flatMap(({ name, oldestAt }) => (oldestAt === null ? [] : [[name, oldestAt]])),
      );
    assert.deepEqual(await since(), {});
    await world.submit({ queue: "a", priority: -3 });
    await world.submit({ queue: "p" });
    await queues.setPaused("p", true);
    await world.clock.advance(1_000);
    await world.submitMany(3, { queue: "a" });
    await world.submit({ queue: "a", task: "unheard-of", priority: 5 });
    await world.submit({ queue: "b", priority: 9 });
    await world.submit({ queue: "c", delayMs: 500 });
    assert.deepEqual(await since(), { a: now, b: now + 1_000, p: now });
    const [first] = await world.claim({ queues: new Set(["b"]) });
    assert.deepEqual(await since(), { a: now, p: now });
    await world.clock.advance(500);
    assert.deepEqual(await since(), { a: now, c: now + 1_500, p: now });
    await world.claim({ lease: lease("node-a/2"), queues: new Set(["a"]) });
    assert.deepEqual(await since(), { a: now + 1_000, c: now + 1_500, p: now }, "the task that nobody knows");
    await world.settle(first!, { kind: "interrupted" });
    assert.deepEqual((await since())["b"], now + 1_000);
    await world.again(first!.id, { queues: new Set(["b"]) });
    await world.crash();
    await world.clock.advance(1);
    assert.deepEqual((await since())["b"], now + 1_000, "one that crashed");
  },
};
