import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { backlogOf } from "../../../src/observe/store-snapshots.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import type { Store } from "../../../src/store/store.ts";

const COUNTS = { scheduled: 0, queued: 3, processing: 0, completed: 0, failed: 0, cancelled: 0 };

function reading() {
  const clock = new ManualClock();
  const world = { looks: 0, hang: null as Promise<void> | null, broken: false };
  const queues = {
    list: async () => {
      world.looks++;
      await world.hang;
      if (world.broken) throw new Error("away");
      return [{ name: "a", paused: false, counts: COUNTS, oldestAt: 5 }];
    },
  } as unknown as Store["queues"];
  const agents = { list: async () => [] } as unknown as Store["agents"];
  const backlog = backlogOf({ clock }, { queues, agents });
  return { clock, world, backlog };
}

describe("the backlog", () => {
  it("is read once for all who ask within a few seconds", async () => {
    const { clock, world, backlog } = reading();
    const [one, two] = await Promise.all([backlog.get(100), backlog.get(100)]);
    assert.deepEqual(one, two);
    assert.deepEqual(one!.queues, [{ name: "a", paused: false, counts: COUNTS, oldestAt: 5 }]);
    await clock.advance(4_999);
    await backlog.get(100);
    assert.equal(backlog.ageMs, 4_999);
    assert.equal(world.looks, 1);
    await clock.advance(1);
    await backlog.get(100);
    assert.equal(backlog.ageMs, 0);
    assert.equal(world.looks, 2);
  });

  it("is as old as it must be while the store hangs, and nobody waits longer than they said", async () => {
    const { clock, world, backlog } = reading();
    await backlog.get(100);
    await clock.advance(5_000);
    const hanging = Promise.withResolvers<void>();
    world.hang = hanging.promise;
    const asked = [backlog.get(25), backlog.get(25)];
    await clock.advance(25);
    assert.ok((await Promise.all(asked)).every((known) => known !== null));
    assert.equal(backlog.ageMs, 5_025);
    assert.equal(world.looks, 2);
    hanging.resolve();
    await clock.advance(1);
    await backlog.get(25);
    assert.ok(backlog.ageMs <= 1);
  });

  it("is unknown before the first answer, and failures are counted", async () => {
    const { world, backlog } = reading();
    world.broken = true;
    assert.equal(await backlog.get(25), null);
    assert.equal(backlog.failures, 1);
    world.broken = false;
    assert.equal((await backlog.get(25))!.queues.length, 1);
  });

  it("is asked for less often of a store that takes long to answer", async () => {
    const { clock, world, backlog } = reading();
    const slow = Promise.withResolvers<void>();
    world.hang = slow.promise;
    const first = backlog.get(10_000);
    await clock.advance(2_000);
    slow.resolve();
    await first;
    await clock.advance(39_999);
    await backlog.get(0);
    assert.equal(world.looks, 1);
    await clock.advance(1);
    await backlog.get(0);
    assert.equal(world.looks, 2);
  });
});
