import assert from "node:assert/strict";
import { describe } from "node:test";
import type { ScheduleRequest } from "../../../../src/jobs/schedules/schedule-service.ts";
import { topics } from "../../../../src/channels/channel-names.ts";
import { hasCode } from "../../../../src/core/errors.ts";
import { isJobId } from "../../../../src/core/ids.ts";
import { inWorld, minuteMs, secondMs, START, type ScheduleWorld } from "./world.ts";

const hints = (world: ScheduleWorld): string[] =>
  world.published.filter((one) => one.topic === topics.schedulesChanged).map((one) => one.message.key);

/** A timing is refused with a code of its own. */
const fault = (field: string, message: RegExp) => (error: unknown) => {
  const code = ["cron", "every_ms", "zone"].includes(field) ? "BAD_SCHEDULE" : "BAD_REQUEST";
  assert.ok(hasCode(error, code), String(error));
  assert.equal(error.details.field, field);
  assert.match(error.message, message);
  return true;
};

describe("putting a schedule", () => {
  inWorld("fills in what was left out", async (world) => {
    const { schedule, outcome } = await world.service.put({
      name: "nightly",
      task: "report",
      cron: "0 3 * * *",
    });
    assert.equal(outcome, "created");
    const { createdAt: _created, updatedAt: _updated, leaderEpoch: _epoch, ...rest } = schedule;
    assert.deepEqual(rest, {
      name: "nightly",
      timing: { kind: "cron", expression: "0 3 * * *", zone: "UTC" },
      task: "report",
      payload: "null",
      queue: "default",
      priority: 0,
      maxAttempts: 5,
      timeoutMs: null,
      missed: "run_once",
      missedMax: 100,
      overlap: "allow",
      paused: false,
      nextAt: START + 180 * minuteMs,
      lastFiredAt: null,
      lastJob: null,
    });
  });

  inWorld("keeps what was given", async (world) => {
    const plain = {
      name: "team/report:daily",
      task: "report",
      queue: "slow",
      priority: -100,
      maxAttempts: 1,
      timeoutMs: 1,
      missed: "run_all",
      missedMax: 10_000,
      overlap: "skip",
    } as const;
    const timing = { cron: "0 3 * * *", zone: "Europe/Berlin" };
    const { schedule } = await world.service.put({ ...plain, ...timing, payload: { deep: [1] } });
    const stored = { kind: "cron", expression: timing.cron, zone: timing.zone } as const;
    assert.deepEqual({ ...schedule, ...plain, timing: stored, payload: '{"deep":[1]}' }, schedule);
    assert.equal(schedule.nextAt, START + 120 * minuteMs);
  });

  inWorld(
    "again is unchanged and moves nothing; another definition replaces it; the leader hears of real changes only",
    async (world) => {
      assert.equal((await world.put()).outcome, "created");
      await world.clock.advance(90 * secondMs);
      const again = await world.put();
      assert.deepEqual([again.outcome, again.schedule.nextAt], ["unchanged", START + minuteMs]);
      assert.equal((await world.put({ payload: 1 })).outcome, "replaced");
      assert.equal((await world.put({ payload: 1, everyMs: 10 * secondMs })).outcome, "replaced");
      assert.deepEqual(hints(world), ["tick", "tick", "tick"]);
    },
  );

  inWorld(
    "keeps an occurrence that is due when only other fields change, and counts from now when the timing does",
    async (world) => {
      await world.put();
      await world.clock.advance(90 * secondMs);
      assert.equal((await world.put({ payload: 1 })).schedule.nextAt, START + 60 * secondMs);
      assert.equal(
        (await world.put({ payload: 1, everyMs: 7 * minuteMs })).schedule.nextAt! > world.clock.now(),
        true,
      );
    },
  );

  inWorld("succeeds when the leader cannot be notified", async (world) => {
    world.channels.publish = () => Promise.reject(new Error("no channel"));
    assert.equal((await world.put()).outcome, "created");
    assert.equal(world.log.matching(/could not be notified/).length, 1);
  });

  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  type Refused = [what: string, fields: Partial<ScheduleRequest>, field: string, message: RegExp];
  const refused: Refused[] = [
    ["a name with a space", { name: "a b" }, "name", /1 to 128 letters/],
    ["an empty name", { name: "" }, "name", /1 to 128/],
    ["a name of 129 letters", { name: "a".repeat(129) }, "name", /1 to 128/],
    ["a task that is none", { task: "-" }, "task", /task must be/],
    ["a queue that is none", { queue: "ü" }, "queue", /queue must be/],
    ["neither cron nor interval", { cron: undefined, everyMs: undefined }, "cron", /neither is given/],
    ["both cron and interval", { cron: "* * * * *", everyMs: 5_000 }, "cron", /both are given/],
    ["a zone with an interval", { zone: "UTC" }, "zone", /zone goes with cron/],
    ["an impossible date", { everyMs: undefined, cron: "0 0 31 6 *" }, "cron", /no such date/],
    ["a priority of 101", { priority: 101 }, "priority", /-100 to 100/],
    ["half a priority", { priority: 0.5 }, "priority", /whole number/],
    ["no attempts", { maxAttempts: 0 }, "max_attempts", /from 1 to/],
    ["a timeout of nothing", { timeoutMs: 0 }, "timeout_ms", /from 1 to/],
    ["an unknown policy", { missed: "run_twice" as "skip" }, "missed", /one of skip, run_once, run_all/],
    ["an unknown overlap", { overlap: "queue" as "skip" }, "overlap", /one of allow, skip/],
    ["no cap", { missedMax: 0 }, "missed_max", /from 1 to 10000/],
    ["too high a cap", { missedMax: 10_001 }, "missed_max", /from 1 to 10000/],
    ["a payload with a cycle", { payload: cycle }, "payload.self", /must be plain JSON/],
    ["a payload that is a function", { payload: () => 1 }, "payload", /must be plain JSON/],
  ];
  for (const [what, fields, field, message] of refused) {
    inWorld(`refuses ${what} and stores nothing`, async (world) => {
      const request = { name: "tick", task: "work", everyMs: minuteMs, ...fields };
      await assert.rejects(world.service.put(request), fault(field, message));
      assert.deepEqual(await world.service.list(), []);
      assert.deepEqual(hints(world), []);
    });
  }
});

describe("a schedule", () => {
  inWorld("paused and resumed counts on from now", async (world) => {
    await world.put();
    const paused = await world.service.setPaused("tick", true);
    assert.deepEqual([paused!.paused, paused!.nextAt], [true, null]);
    await world.clock.advance(10 * minuteMs + 1);
    const resumed = await world.service.setPaused("tick", false);
    assert.deepEqual([resumed!.paused, resumed!.nextAt], [false, START + 11 * minuteMs]);
    assert.deepEqual(hints(world), ["tick", "tick", "tick"]);
  });

  inWorld("resumed without a pause keeps what is due", async (world) => {
    await world.put();
    await world.clock.advance(90 * secondMs);
    assert.equal((await world.service.setPaused("tick", false))!.nextAt, START + minuteMs);
    assert.deepEqual(hints(world), ["tick"]);
  });

  inWorld("triggered submits its job now and leaves the plan alone", async (world) => {
    await world.put({ payload: { a: 1 }, queue: "slow", priority: 3, maxAttempts: 2, timeoutMs: 50 });
    const before = await world.service.get("tick");
    const id = await world.service.trigger("tick");
    assert.ok(isJobId(id!));
    assert.deepEqual(world.submitted, [
      {
        task: "work",
        payload: { a: 1 },
        allowUnknown: true,
        queue: "slow",
        priority: 3,
        maxAttempts: 2,
        timeoutMs: 50,
      },
    ]);
    assert.deepEqual(await world.service.get("tick"), before);
  });

  inWorld("is removed once, and one that is not there is null or false, not an error", async (world) => {
    await world.put();
    assert.equal(await world.service.remove("tick"), true);
    assert.equal(await world.service.remove("tick"), false);
    assert.deepEqual(hints(world), ["tick", "tick"]);
    assert.equal(await world.service.get("tick"), null);
    assert.equal(await world.service.setPaused("tick", true), null);
    assert.equal(await world.service.trigger("tick"), null);
    assert.deepEqual(await world.service.history("tick", 10), []);
  });
});

describe("a preview", () => {
  inWorld("gives the instants at which a schedule put now would fire", async (world) => {
    await world.clock.advance(12 * secondMs);
    const instants = world.service.preview({ everyMs: minuteMs }, 3);
    const found = instants.map((at) => (at - START) / minuteMs);
    assert.deepEqual(found, [1, 2, 3]);
    await world.put();
    await world.lead();
    await world.clock.advance(3 * minuteMs);
    assert.deepEqual((await world.service.history("tick", 3)).map((one) => one.at).reverse(), instants);
    const [first] = world.service.preview({ cron: "0 9 * * MON-FRI", zone: "America/New_York" }, 1);
    assert.equal(new Date(first!).toISOString(), "2026-01-01T14:00:00.000Z");
  });

  inWorld("refuses what a put would refuse, and silly counts", async (world) => {
    const preview =
      (timing: { cron?: string; everyMs?: number; zone?: string }, count = 3) =>
      () =>
        world.service.preview(timing, count);
    assert.throws(preview({}), fault("cron", /neither/));
    assert.throws(preview({ cron: "0 0 30 2 *" }), fault("cron", /no such date/));
    assert.throws(preview({ cron: "@daily", zone: "Berlin" }), fault("zone", /Europe\/Berlin/));
    for (const count of [0, 1_001, 1.5, NaN]) {
      assert.throws(preview({ cron: "@daily" }, count), fault("count", /from 1 to 1000/));
    }
  });
});
