import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  desiredWorkers,
  SURPLUS_KEPT,
  type ScalingFacts,
  type ScalingOptions,
} from "../../../../src/core/health/scaling.ts";

const WISHES: ScalingOptions = { targetMs: 60_000, min: 0, max: 100, slotsPerWorker: 10 };

function desired(facts: Partial<ScalingFacts>, wishes: Partial<ScalingOptions> = {}): number {
  const all = { workers: 2, slots: 20, running: 0, ready: 0, oldestMs: null, runMs: 1_000, ...facts };
  return desiredWorkers(all, { ...WISHES, ...wishes }).workers;
}

describe("how many workers there should be", () => {
  it("is none when there is nothing to do, and the least that is allowed", () => {
    assert.equal(desired({}), 0);
    assert.equal(desired({}, { min: 1 }), 1);
  });

  it("is what it takes to do all that waits within the target", () => {
    // 60,000 jobs of a second in a minute: 1,000 at a time, 10 in each worker.
    assert.equal(desired({ ready: 60_000, workers: 2 }), 100);
    assert.equal(desired({ ready: 6_000, workers: 2 }), 10);
    assert.equal(desired({ ready: 6_000, workers: 2 }, { targetMs: 600_000 }), 1);
  });

  it("is never more than there are jobs, and never fewer than run", () => {
    assert.equal(desired({ ready: 3, runMs: 3_600_000 }), 1);
    assert.equal(desired({ ready: 30, runMs: 3_600_000 }), 3);
    assert.equal(desired({ running: 20 }), 2);
    assert.equal(desired({ running: 11 }), 2);
  });

  it("is a first one when somebody waits and nobody is there", () => {
    assert.equal(desired({ workers: 0, slots: 0, ready: 1, runMs: null }), 1);
    assert.equal(desired({ workers: 0, slots: 0, ready: 10_000, runMs: null }), 2);
  });

  it("grows at most to the double while it is not known how long jobs run", () => {
    assert.equal(desired({ workers: 3, slots: 30, running: 30, ready: 10_000, runMs: null }), 6);
  });

  it("grows when what waits is late although all are busy, and not when places are free", () => {
    const late = { workers: 2, slots: 20, ready: 1_000, runMs: 10, oldestMs: 90_000 };
    assert.equal(desired({ ...late, running: 20 }), 3);
    assert.equal(desired({ ...late, running: 20, oldestMs: 3_600_000 }), 4);
    assert.equal(desired({ ...late, running: 0 }), 1);
  });

  it("leaves a few too many where they are, and lets go of many", () => {
    assert.equal(desired({ workers: 10, slots: 100, running: 75 }), 10);
    assert.equal(desired({ workers: 10, slots: 100, running: 65 }), 10);
    assert.equal(desired({ workers: 10, slots: 100, running: 55 }), 6);
  });

  it("says why", () => {
    const facts = { workers: 2, slots: 20, running: 4, ready: 600, oldestMs: 10, runMs: 2_000 };
    assert.match(
      desiredWorkers(facts, WISHES).reason,
      /4 running, 600 waiting: at 2 s a job, .* within 60 s/,
    );
  });

  const facts: fc.Arbitrary<ScalingFacts> = fc
    .record({
      workers: fc.integer({ min: 0, max: 200 }),
      each: fc.integer({ min: 1, max: 50 }),
      busy: fc.double({ min: 0, max: 1, noNaN: true }),
      ready: fc.integer({ min: 0, max: 1_000_000 }),
      oldestMs: fc.integer({ min: 0, max: 10_000_000 }),
      runMs: fc.option(fc.integer({ min: 0, max: 10_000_000 })),
    })
    .map(({ workers, each, busy, ready, oldestMs, runMs }) => {
      const slots = workers * each;
      const running = Math.round(slots * busy);
      return { workers, slots, running, ready, oldestMs: ready > 0 ? oldestMs : null, runMs };
    });
  const wishes: fc.Arbitrary<ScalingOptions> = fc
    .record({
      targetMs: fc.integer({ min: 1_000, max: 3_600_000 }),
      min: fc.integer({ min: 0, max: 20 }),
      more: fc.integer({ min: 0, max: 300 }),
      slotsPerWorker: fc.integer({ min: 1, max: 50 }),
    })
    .map(({ more, ...rest }) => ({ ...rest, max: rest.min + more }));

  it("stays within its bounds, and is a whole number", () => {
    fc.assert(
      fc.property(facts, wishes, (given, asked) => {
        const { workers } = desiredWorkers(given, asked);
        assert.ok(Number.isInteger(workers) && workers >= asked.min && workers <= asked.max, `${workers}`);
      }),
    );
  });

  it("never takes the place from under a job that runs", () => {
    fc.assert(
      fc.property(facts, wishes, (given, asked) => {
        const { workers } = desiredWorkers(given, asked);
        const each =
          given.workers > 0 && given.slots > 0 ? given.slots / given.workers : asked.slotsPerWorker;
        assert.ok(workers === asked.max || workers * each >= given.running - 1e-6);
      }),
    );
  });

  it("does not shrink when more waits", () => {
    fc.assert(
      fc.property(facts, wishes, fc.integer({ min: 1, max: 100_000 }), (given, asked, more) => {
        const longer = { ...given, ready: given.ready + more, oldestMs: given.oldestMs ?? 0 };
        assert.ok(desiredWorkers(longer, asked).workers >= desiredWorkers(given, asked).workers);
      }),
    );
  });

  /** As the cluster looks when somebody has done what was said, and nothing else has changed. */
  function obeyed(given: ScalingFacts, asked: ScalingOptions, workers: number): ScalingFacts {
    const each = given.workers > 0 && given.slots > 0 ? given.slots / given.workers : asked.slotsPerWorker;
    return { ...given, workers, slots: workers * each };
  }

  it("says the same again to whoever does as it says, where run times are known and nothing is late", () => {
    fc.assert(
      fc.property(facts, wishes, (given, asked) => {
        const calm = { ...given, runMs: given.runMs ?? 1_000, oldestMs: given.ready > 0 ? 0 : null };
        const { workers } = desiredWorkers(calm, asked);
        // What runs has a place: a worker more than the most there may be is not ours to judge.
        if (workers === asked.max) return;
        assert.equal(desiredWorkers(obeyed(calm, asked, workers), asked).workers, workers);
      }),
    );
  });

  it("does not flap while what it takes varies by less than what is kept", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 2, maxLength: 30 }),
        (base, noise) => {
          // Busy places between `base` and 1 / (1 - SURPLUS_KEPT) of it, in any order.
          const asked = { ...WISHES, max: 1_000, slotsPerWorker: 1 };
          let workers = Math.floor(base / (1 - SURPLUS_KEPT));
          const seen = noise.map((share) => {
            const running = Math.min(workers, Math.ceil(base + share * (workers - base)));
            const given = { workers, slots: workers, running, ready: 0, oldestMs: null, runMs: 1_000 };
            workers = desiredWorkers(given, asked).workers;
            return workers;
          });
          assert.equal(new Set(seen).size, 1, seen.join());
        },
      ),
    );
  });
});
