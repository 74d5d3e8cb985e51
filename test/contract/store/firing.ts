import assert from "node:assert/strict";
import type { Term } from "../../../src/core/leadership/term.ts";
import type { ScheduleDefinition, SkipReason } from "../../../src/core/schedules/schedule.ts";
import type { FireVerdict, Firing, NewJob } from "../../../src/store/store.ts";
import { AUTHOR, HOUR_MS, type Promises, type StoreWorld } from "../../support/store-world.ts";
import { column, columns, plain } from "../../support/columns.ts";

type Plan = Firing["occurrences"][number];

const fires = (world: StoreWorld, at: number, fields: Partial<NewJob> = {}): Plan & { job: NewJob } => ({
  at,
  do: "fire",
  reason: null,
  job: world.newJob(fields),
});
const skips = (at: number, reason: SkipReason = "missed"): Plan => ({ at, do: "skip", reason, job: null });

/** Fires `occurrences` of the nightly schedule and moves it on by an hour, unless told otherwise. */
async function fire(
  world: StoreWorld,
  occurrences: readonly Plan[],
  fields: Partial<Firing> = {},
  fence?: Term,
): Promise<readonly FireVerdict[]> {
  const schedule = await world.store.schedules.get("nightly");
  const expectedNextAt = schedule?.nextAt ?? null;
  const firing: Firing = {
    schedule: "nightly",
    occurrences,
    nextAt: (occurrences.at(-1)?.at ?? 0) + HOUR_MS,
    expectedNextAt,
    overlap: "allow",
    ...fields,
  };
  return world.store.schedules.fire(firing, AUTHOR, fence ?? (await world.term()));
}

async function put(
  world: StoreWorld,
  fields: Partial<ScheduleDefinition> = {},
  nextAt = world.clock.now(),
): Promise<void> {
  await world.store.schedules.put(world.definition(fields), nextAt);
}

export const firingPromises: Promises = {
  "firing notes the occurrence, makes its job and moves the schedule on": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at);
    const plan = fires(world, at, { payload: '{"n":1}', priority: 4 });
    assert.deepEqual(await fire(world, [plan]), ["fired"]);
    const term = await world.term();
    const job = await world.job(plan.job.id);
    assert.equal(job.status, "queued");
    assert.equal(job.schedule, "nightly");
    assert.equal(job.payload, '{"n":1}');
    assert.equal(job.priority, 4);
    assert.equal(job.leaderEpoch, term.epoch);
    const schedule = (await world.store.schedules.get("nightly"))!;
    assert.deepEqual(
      [schedule.nextAt, schedule.lastFiredAt, schedule.lastJob, schedule.leaderEpoch],
      [at + HOUR_MS, at, plan.job.id, term.epoch],
    );
    assert.deepEqual(plain(await world.store.schedules.history("nightly", 5)), [
      {
        schedule: "nightly",
        at,
        do: "fire",
        reason: null,
        job: plan.job.id,
        leaderEpoch: term.epoch,
        notedAt: at,
      },
    ]);
    assert.deepEqual(await world.claimIds(), [plan.job.id]);
  },

  "the same occurrence twice makes one job": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at);
    const first = fires(world, at);
    await fire(world, [first]);
    const second = fires(world, at);
    assert.deepEqual(await fire(world, [second]), ["already"]);
    assert.equal(await world.store.jobs.get(second.job.id), null);
    assert.deepEqual(await world.counts(), { queued: 1 });
    assert.equal((await world.store.schedules.history("nightly", 5)).length, 1);
    assert.equal((await world.store.schedules.get("nightly"))!.lastJob, first.job.id);
  },

  "an occurrence stays noted when its schedule is replaced": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at);
    await fire(world, [fires(world, at)]);
    await put(world, { payload: "2" }, at);
    const again = fires(world, at);
    assert.deepEqual(await fire(world, [again, fires(world, at + 1)]), ["already", "fired"]);
    assert.equal(await world.store.jobs.get(again.job.id), null);
  },

  "the same instant of two schedules is two occurrences": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at);
    await put(world, { name: "other" }, at);
    assert.deepEqual(await fire(world, [fires(world, at)]), ["fired"]);
    assert.deepEqual(await fire(world, [fires(world, at)], { schedule: "other", expectedNextAt: at }), [
      "fired",
    ]);
    assert.deepEqual(await world.counts(), { queued: 2 });
  },

  "skipped occurrences are noted without a job": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at - 2_000);
    const plan = fires(world, at);
    assert.deepEqual(await fire(world, [skips(at - 2_000), skips(at - 1_000, "over_cap"), plan]), [
      "skipped",
      "skipped",
      "fired",
    ]);
    const history = await world.store.schedules.history("nightly", 10);
    assert.deepEqual(columns(history, "at", "do", "reason", "job"), [
      [at, "fire", null, plan.job.id],
      [at - 1_000, "skip", "over_cap", null],
      [at - 2_000, "skip", "missed", null],
    ]);
    assert.deepEqual(await fire(world, [fires(world, at - 1_000)]), ["already"]);
    assert.deepEqual(column(await world.store.schedules.history("nightly", 2), "at"), [at, at - 1_000]);
    assert.deepEqual(await world.store.schedules.history("nightly", [at - 1_000, at + 1_000]), [history[1]]);
    assert.deepEqual(await world.store.schedules.history("nothing", 5), []);
  },

  "an occurrence is skipped while the job before it is unfinished, if overlap is to be avoided": async (
    world,
  ) => {
    const at = world.clock.now();
    await put(world, { overlap: "skip" }, at);
    const first = fires(world, at);
    assert.deepEqual(await fire(world, [first], { overlap: "skip" }), ["fired"]);
    const second = fires(world, at + 1);
    assert.deepEqual(await fire(world, [second], { overlap: "skip" }), ["skipped"]);
    assert.equal(await world.store.jobs.get(second.job.id), null);
    const [noted] = await world.store.schedules.history("nightly", 1);
    assert.deepEqual([noted!.at, noted!.do, noted!.reason, noted!.job], [at + 1, "skip", "overlap", null]);

    const run = await world.again(first.job.id);
    assert.deepEqual(await fire(world, [fires(world, at + 2)], { overlap: "skip" }), ["skipped"]);
    await world.finish(run);
    const third = fires(world, at + 3);
    assert.deepEqual(await fire(world, [third], { overlap: "skip" }), ["fired"]);
    await world.store.jobs.remove(third.job.id);
    assert.deepEqual(await fire(world, [fires(world, at + 4)], { overlap: "skip" }), ["fired"]);
  },

  "what overlaps, is noted already or was to be skipped is decided one after the other": async (world) => {
    const at = world.clock.now();
    await put(world, { overlap: "skip" }, at);
    const missed = { at: at + 1, do: "skip", reason: "missed", job: null } as const;
    const first = fires(world, at + 2);
    const plans = [missed, first, { ...first, job: fires(world, at + 2).job }, fires(world, at + 3), missed];
    assert.deepEqual(await fire(world, plans, { overlap: "skip" }), [
      "skipped",
      "fired",
      "already",
      "skipped",
      "already",
    ]);
    const noted = await world.store.schedules.history("nightly", 10);
    assert.deepEqual(
      noted.map((one) => [one.at - at, one.do, one.reason, one.job]),
      [
        [3, "skip", "overlap", null],
        [2, "fire", null, first.job.id],
        [1, "skip", "missed", null],
      ],
    );
    assert.equal((await world.store.schedules.get("nightly"))!.lastJob, first.job.id);
  },

  "a schedule that changed since it was read is not fired at all": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at);
    const before = await world.store.schedules.get("nightly");
    const plans = [fires(world, at), skips(at + 1)];
    assert.deepEqual(await fire(world, plans, { expectedNextAt: at - 1 }), ["changed", "changed"]);
    assert.deepEqual(await fire(world, plans, { expectedNextAt: null }), ["changed", "changed"]);
    assert.deepEqual(await world.store.schedules.get("nightly"), before);
    assert.deepEqual(await world.store.schedules.history("nightly", 5), []);
    assert.deepEqual((await world.store.jobs.list({ limit: 5 })).jobs, []);
  },

  "a schedule that was paused since it was read is not fired": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at);
    await world.store.schedules.setPaused("nightly", true, at);
    assert.deepEqual(await fire(world, [fires(world, at)]), ["changed"]);
    assert.deepEqual(await world.counts(), {});
    await world.store.schedules.setPaused("nightly", false, at);
    assert.deepEqual(await fire(world, [fires(world, at)]), ["fired"]);
  },

  "a removed schedule is not fired": async (world) => {
    await put(world);
    const at = world.clock.now();
    await world.store.schedules.remove("nightly");
    assert.deepEqual(await fire(world, [fires(world, at)], { expectedNextAt: at }), ["changed"]);
    assert.deepEqual(await world.counts(), {});
  },

  "a schedule without further occurrences ends": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at);
    await fire(world, [fires(world, at)], { nextAt: null });
    assert.equal((await world.store.schedules.get("nightly"))!.nextAt, null);
  },

  "an old leader fires nothing": async (world) => {
    const at = world.clock.now();
    await put(world, {}, at);
    const old = await world.term();
    await world.nextTerm();
    const before = await world.store.schedules.get("nightly");
    const plan = fires(world, at);
    await assert.rejects(fire(world, [plan], {}, old), { code: "STALE_EPOCH" });
    assert.deepEqual(await world.store.schedules.get("nightly"), before);
    assert.deepEqual(await world.store.schedules.history("nightly", 5), []);
    assert.equal(await world.store.jobs.get(plan.job.id), null);
    assert.deepEqual(await fire(world, [plan]), ["fired"]);
  },
};
