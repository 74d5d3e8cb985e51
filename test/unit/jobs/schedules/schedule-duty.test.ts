import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { topics } from "../../../../src/channels/channel-names.ts";
import { BatonError } from "../../../../src/core/errors.ts";
import type { MissedPolicy } from "../../../../src/core/schedules/schedule.ts";
import { compileTiming } from "../../../../src/jobs/schedules/cron.ts";
import { minuteMs, ScheduleWorld, secondMs, START, inWorld } from "./world.ts";
import { column } from "../../../support/columns.ts";

const storeDown = (): Promise<never> =>
  Promise.reject(new BatonError("STORE_UNAVAILABLE", "the store is away"));

describe("a leader with schedules", () => {
  inWorld("fires each occurrence once, at its time", async (world) => {
    await world.put();
    await world.lead();
    await world.clock.advance(minuteMs - 1);
    assert.deepEqual(await world.fired(), []);
    await world.clock.advance(1);
    assert.deepEqual(await world.fired(), [60]);
    await world.clock.advance(3 * minuteMs);
    assert.deepEqual(await world.fired(), [60, 120, 180, 240]);
    const [noted] = await world.store.history("tick", 1);
    assert.equal(noted!.notedAt, noted!.at, "not late by a millisecond when idle");
  });

  inWorld("gives the job what the schedule says, and tells idle workers", async (world) => {
    await world.put({ payload: { a: 1 }, queue: "slow", priority: 7, maxAttempts: 2, timeoutMs: 900 });
    await world.lead();
    await world.clock.advance(minuteMs);
    const [job] = await world.jobs();
    const expected = {
      task: "work",
      queue: "slow",
      priority: 7,
      payload: '{"a":1}',
      runAt: START + minuteMs,
      maxAttempts: 2,
      timeoutMs: 900,
      idempotencyKey: null,
      schedule: "tick",
      status: "queued",
      leaderEpoch: 1,
    };
    assert.deepEqual({ ...job, ...expected }, job);
    assert.equal((await world.store.get("tick"))!.leaderEpoch, 1);
    const ready = world.published.filter((one) => one.topic === topics.jobsReady);
    const found = ready.map((one) => one.message.key);
    assert.deepEqual(found, ["slow"]);
  });

  inWorld("hears at once of a schedule that is put, changed, paused, resumed and removed", async (world) => {
    await world.lead();
    await world.put({ everyMs: secondMs });
    await world.clock.advance(2 * secondMs);
    assert.deepEqual(await world.fired(), [1, 2]);
    await world.put({ everyMs: 2 * secondMs });
    await world.clock.advance(2 * secondMs);
    assert.deepEqual(await world.fired(), [1, 2, 4]);
    await world.service.setPaused("tick", true);
    await world.clock.advance(3 * secondMs);
    assert.deepEqual(await world.fired(), [1, 2, 4]);
    await world.service.setPaused("tick", false);
    await world.clock.advance(secondMs);
    assert.deepEqual(await world.fired(), [1, 2, 4, 8], "what passed during the pause is not made up");
    await world.service.remove("tick");
    await world.clock.advance(minuteMs);
    assert.deepEqual(await world.fired(), [1, 2, 4, 8]);
  });

  inWorld("finds within seconds what it was not told", async (world) => {
    await world.lead();
    world.hintsArrive = false;
    await world.put({ everyMs: 7 * secondMs });
    await world.clock.advance(7 * secondMs);
    assert.deepEqual(await world.fired(), [7]);
    await world.service.remove("tick");
    await world.clock.advance(minuteMs);
    assert.deepEqual(await world.fired(), [7]);
  });

  inWorld("counts on from the fired occurrence and not from now", async (world) => {
    await world.put({ everyMs: 10 * secondMs, missed: "run_all" });
    await world.lead();
    // The store takes 4 seconds for every fire.
    world.fire = async (...call) => {
      await world.clock.sleep(4 * secondMs);
      return world.store.fire(...call);
    };
    await world.clock.advance(60 * secondMs);
    assert.deepEqual(await world.fired(), [10, 20, 30, 40, 50]);
    assert.equal(await world.nextAt(), 60);
  });

  inWorld("skips an occurrence whose predecessor is unfinished, if told to", async (world) => {
    await world.put({ overlap: "skip" });
    await world.lead();
    await world.clock.advance(3 * minuteMs);
    await world.finishJobs();
    await world.clock.advance(minuteMs);
    assert.deepEqual(await world.history(), ["60 fire", "120 skip overlap", "180 skip overlap", "240 fire"]);
  });

  inWorld("says which occurrences it passes over after a month without a leader", async (world) => {
    await world.put({ cron: "* * * * * *", zone: "Europe/Berlin" });
    world.clock.setWall(START + 30 * 24 * 60 * minuteMs);
    await world.lead();
    const [passed] = world.log.matching(/passed over/);
    assert.deepEqual([passed!["schedule"], passed!["from"]], ["tick", START + 2 * secondMs]);
  });

  inWorld("serves hundreds of schedules without reading them all for each", async (world) => {
    for (let i = 0; i < 300; i++) await world.put({ name: `tick-${i}`, everyMs: (1 + (i % 60)) * secondMs });
    await world.lead();
    await world.clock.advance(minuteMs);
    const jobs = await world.jobs();
    const fired = Map.groupBy(jobs, ({ schedule }) => schedule);
    let expected = 0;
    for (let i = 0; i < 300; i++) {
      // Intervals are counted from 1970, not from the start.
      const everyMs = (1 + (i % 60)) * secondMs;
      const times = Math.floor((START + minuteMs) / everyMs) - Math.floor(START / everyMs);
      expected += times;
      assert.equal(fired.get(`tick-${i}`)?.length ?? 0, times);
    }
    assert.equal(jobs.length, expected);
    assert.ok(world.lists <= 14, `read all ${world.lists} times`);
  });

  inWorld(
    "leaves a schedule alone that cannot be computed, says so once, and serves the others",
    async (world) => {
      await world.put();
      const good = (await world.store.get("tick"))!;
      for (const zone of ["Mars/Olympus", "Mars/Elysium"]) {
        const timing = { kind: "cron" as const, expression: "* * * * *", zone };
        await world.store.put({ ...good, name: zone, timing }, START + 1);
      }
      await world.lead();
      await world.clock.advance(2 * minuteMs);
      assert.deepEqual(await world.fired(), [60, 120]);
      const found = world.log.matching(/cannot be computed/).map((fields) => fields["schedule"]);
      assert.deepEqual(found, ["Mars/Elysium", "Mars/Olympus"]);
      await world.put({ name: "Mars/Olympus" });
      await world.clock.advance(minuteMs);
      assert.deepEqual(await world.fired("Mars/Olympus"), [180], "mended, it fires");
    },
  );
});

describe("a leader whose store fails", () => {
  inWorld("starts when the store comes back", async (world) => {
    await world.put();
    const { list } = world;
    world.list = storeDown;
    await world.lead();
    await world.clock.advance(50 * secondMs);
    assert.ok(world.log.matching(/cannot be read/).length < 20, "it backs off");
    world.list = list;
    await world.clock.advance(10 * secondMs);
    assert.deepEqual(await world.fired(), [60]);
  });

  inWorld("tries again with growing delays, and loses and doubles nothing", async (world) => {
    await world.put({ everyMs: 10 * secondMs, missed: "run_all" });
    await world.lead();
    let tries = 0;
    world.fire = () => {
      tries++;
      return storeDown();
    };
    await world.clock.advance(40 * secondMs);
    // Six until the delays have grown to 5 seconds, and reading all every 5 seconds adds none.
    assert.ok(tries >= 9 && tries <= 13, `${tries} tries`);
    world.fire = (...call) => world.store.fire(...call);
    await world.clock.advance(10 * secondMs);
    assert.deepEqual(await world.fired(), [10, 20, 30, 40, 50]);
  });

  inWorld("keeps the others on time while one schedule cannot be fired", async (world) => {
    await world.put({ name: "bad", everyMs: secondMs });
    await world.put({ name: "good", everyMs: secondMs });
    await world.lead();
    world.fire = (...call) => (call[0].schedule === "bad" ? storeDown() : world.store.fire(...call));
    await world.clock.advance(30 * secondMs);
    assert.deepEqual(await world.fired("bad"), []);
    const late = (await world.store.history("good", 100)).filter((one) => one.notedAt > one.at);
    assert.deepEqual([(await world.fired("good")).length, late], [30, []]);
  });
});

describe("two leaders", () => {
  inWorld("make one job an occurrence, and the older one stops at STALE_EPOCH", async (world) => {
    await world.put();
    const old = await world.lead();
    await world.clock.advance(minuteMs);
    const young = await world.lead();
    await world.clock.advance(2 * minuteMs);
    assert.deepEqual(await world.fired(), [60, 120, 180]);
    assert.deepEqual([old.over, young.over], [true, false]);
    assert.deepEqual(column(await world.store.history("tick", 3), "leaderEpoch"), [2, 2, 1]);
    assert.equal(world.subscriptions, 1, "the old one listens no more");
  });

  inWorld(
    "do not pass on what they know: the second one finds the schedule as it is stored",
    async (world) => {
      await world.put();
      const first = await world.lead();
      await first.stop();
      world.hintsArrive = false;
      await world.put({ everyMs: 2 * minuteMs });
      await world.lead();
      await world.clock.advance(4 * minuteMs);
      assert.deepEqual(await world.fired(), [120, 240]);
    },
  );
});

describe("a wall clock that jumps", () => {
  inWorld("forward fires what became due within seconds, under the policy for missed runs", async (world) => {
    await world.put({ missed: "run_once" });
    await world.lead();
    world.clock.suspend(10 * minuteMs + 20 * secondMs);
    await world.clock.advance(5 * secondMs);
    assert.deepEqual(await world.fired(), [600]);
  });
});

describe("a schedule replaced while it is due", () => {
  inWorld(
    "without the leader's knowledge fires nothing of the old timing, and the leader learns of it there and then",
    async (world) => {
      await world.put({ cron: "57 * * * * *" });
      await world.lead();
      await world.clock.advance(56 * secondMs);
      world.hintsArrive = false;
      await world.put({ cron: "58 * * * * *" });
      await world.clock.advance(2 * secondMs);
      assert.deepEqual(await world.fired(), [58]);
    },
  );

  inWorld(
    "with the same timing keeps the occurrence, and it fires once with one of the two definitions",
    async (world) => {
      await world.put();
      await world.lead();
      world.fire = async (...call) => {
        world.fire = (...again) => world.store.fire(...again);
        await world.put({ payload: "new" });
        return world.store.fire(...call);
      };
      await world.clock.advance(2 * minuteMs);
      assert.deepEqual(await world.fired(), [60, 120]);
      assert.deepEqual(column(await world.jobs(), "payload"), ["null", '"new"']);
    },
  );
});

describe("whatever happens to leaders, clock and store", () => {
  it("every occurrence is noted once, in order, and none is left out", async () => {
    const event = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 40_000 }) }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("elect" as const) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("stop" as const) }) },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constant("jump" as const),
          ms: fc.integer({ min: -30_000, max: 60_000 }),
        }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("fail" as const), arrives: fc.boolean() }) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { maxLength: 18 }),
        fc.constantFrom<MissedPolicy>("skip", "run_once", "run_all"),
        // Not so often that some would be passed over in one step.
        fc.integer({ min: 20, max: 40 }),
        (events, missed, everySeconds) =>
          ScheduleWorld.with(async (world) => {
            await world.put({ everyMs: everySeconds * secondMs, missed });
            let leader = await world.lead();
            for (const event of events) {
              if (event.do === "wait") await world.clock.advance(event.ms);
              else if (event.do === "elect") leader = await world.lead();
              else if (event.do === "stop") await leader.stop();
              else if (event.do === "jump") world.clock.setWall(world.clock.now() + event.ms);
              else {
                world.fire = async (...call) => {
                  world.fire = (...again) => world.store.fire(...again);
                  if (event.arrives) await world.store.fire(...call);
                  return storeDown();
                };
              }
            }
            await world.lead();
            await world.clock.advance(10 * secondMs);
            const noted = (await world.store.history("tick", 100_000)).map((one) => one.at).reverse();
            const next = (await world.store.get("tick"))!.nextAt!;
            const { following } = compileTiming({
              kind: "every",
              everyMs: everySeconds * secondMs,
              anchor: 0,
            });
            const expected: number[] = [];
            for (let at = following(START)!; at < next; at = following(at)!) expected.push(at);
            assert.deepEqual(noted, expected);
            const fired = await world.fired();
            const wanted = [...new Set(fired)].sort((a, b) => a - b);
            assert.deepEqual(fired, wanted);
          }),
      ),
      { numRuns: 60 },
    );
  });
});
