import assert from "node:assert/strict";
import type { ScheduleDefinition } from "../../../src/core/schedules/schedule.ts";
import { HOUR_MS, type Promises } from "../../support/store-world.ts";

export const schedulePromises: Promises = {
  "a new schedule is created as it was defined": async (world) => {
    const definition = world.definition();
    const nextAt = world.clock.now() + HOUR_MS;
    const { schedule, outcome } = await world.store.schedules.put(definition, nextAt);
    assert.equal(outcome, "created");
    const now = world.clock.now();
    const { leaderEpoch: _epoch, ...rest } = schedule;
    assert.deepEqual(rest, {
      ...definition,
      paused: false,
      createdAt: now,
      updatedAt: now,
      nextAt,
      lastFiredAt: null,
      lastJob: null,
    });
    assert.deepEqual(await world.store.schedules.get("nightly"), schedule);
  },

  "the same definition again changes nothing, not even the next occurrence": async (world) => {
    const first = await world.store.schedules.put(world.definition(), 1_000);
    await world.clock.advance(10);
    const reordered = Object.fromEntries(Object.entries(world.definition()).reverse());
    for (const same of [world.definition(), reordered as unknown as ScheduleDefinition]) {
      const second = await world.store.schedules.put(same, 2_000);
      assert.equal(second.outcome, "unchanged");
      assert.deepEqual(second.schedule, first.schedule);
    }
    assert.deepEqual(await world.store.schedules.get("nightly"), first.schedule);
  },

  "another definition under the same name replaces the schedule": async (world) => {
    const first = await world.store.schedules.put(world.definition(), 1_000);
    await world.clock.advance(10);
    const changes: Partial<ScheduleDefinition>[] = [
      { payload: "2" },
      { payload: "2", timing: { kind: "cron", expression: "0 3 * * *", zone: "UTC" } },
      { payload: "2", timing: { kind: "every", everyMs: 5, anchor: 0 }, overlap: "skip", timeoutMs: 9 },
    ];
    for (const [index, change] of changes.entries()) {
      const { schedule, outcome } = await world.store.schedules.put(world.definition(change), 2_000 + index);
      assert.equal(outcome, "replaced");
      assert.equal(schedule.nextAt, 2_000 + index);
      assert.equal(schedule.createdAt, first.schedule.createdAt);
      assert.equal(schedule.updatedAt, world.clock.now());
      assert.deepEqual(schedule, { ...schedule, ...world.definition(change) });
      assert.deepEqual(await world.store.schedules.get("nightly"), schedule);
    }
    assert.equal((await world.store.schedules.list()).length, 1);
  },

  "a definition is revised with its state, unless it was changed since it was read": async (world) => {
    const { schedules } = world.store;
    const created = await schedules.revise(null, world.definition(), { nextAt: 1_000, paused: false });
    assert.equal(created?.nextAt, 1_000);
    assert.deepEqual(await schedules.get("nightly"), created);
    assert.equal(
      await schedules.revise(null, world.definition(), { nextAt: 5, paused: false }),
      null,
      "it is there",
    );
    await world.clock.advance(5);
    const declared = { digest: "d1", versions: ["v1"], dropped: { at: 7, why: "gone" } };
    const dropped = await schedules.revise(
      created,
      { ...world.definition(), declared },
      { nextAt: null, paused: true },
    );
    assert.deepEqual(dropped, {
      ...created,
      declared,
      paused: true,
      nextAt: null,
      updatedAt: world.clock.now(),
    });
    assert.equal(
      await schedules.revise(created, world.definition({ payload: "3" }), { nextAt: 1, paused: false }),
      null,
      "the declaration has changed",
    );
    assert.deepEqual(await schedules.get("nightly"), dropped);
    const back = await schedules.revise(dropped, world.definition(), { nextAt: 9, paused: false });
    assert.deepEqual(back, { ...created, nextAt: 9, updatedAt: world.clock.now() }, "no declaration is left");
    assert.equal(await schedules.remove("nightly"), true);
    assert.equal(await schedules.revise(back, world.definition(), { nextAt: 9, paused: false }), null);
    assert.deepEqual(await schedules.list(), []);
  },

  "schedules are listed and removed by name": async (world) => {
    await world.store.schedules.put(world.definition({ name: "b" }), 1_000);
    await world.store.schedules.put(world.definition({ name: "a" }), 1_000);
    const names = async (): Promise<string[]> =>
      (await world.store.schedules.list()).map((one) => one.name).sort();
    assert.deepEqual(await names(), ["a", "b"]);
    assert.equal(await world.store.schedules.remove("a"), true);
    assert.equal(await world.store.schedules.remove("a"), false);
    assert.equal(await world.store.schedules.get("a"), null);
    assert.deepEqual(await names(), ["b"]);
  },

  "a schedule is paused, and resumed from where it is told": async (world) => {
    await world.store.schedules.put(world.definition(), 1_000);
    await world.clock.advance(5);
    const paused = await world.store.schedules.setPaused("nightly", true, 1_000);
    assert.deepEqual([paused?.paused, paused?.nextAt], [true, 1_000]);
    const resumed = await world.store.schedules.setPaused("nightly", false, 7_000);
    assert.deepEqual(
      [resumed?.paused, resumed?.nextAt, resumed?.updatedAt],
      [false, 7_000, world.clock.now()],
    );
    assert.deepEqual(await world.store.schedules.get("nightly"), resumed);
    assert.equal(await world.store.schedules.setPaused("nothing", true, 1), null);
  },

  "a pause outlives the same definition being put again": async (world) => {
    await world.store.schedules.put(world.definition(), 1_000);
    await world.store.schedules.setPaused("nightly", true, 1_000);
    const { schedule } = await world.store.schedules.put(world.definition(), 5_000);
    assert.equal(schedule.paused, true);
  },
};
