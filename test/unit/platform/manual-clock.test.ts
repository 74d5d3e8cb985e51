import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { ManualClock } from "../../support/manual-clock.ts";

describe("a manual clock", () => {
  test("stands still until it is told to move, and then moves both times", async () => {
    const clock = new ManualClock(1_000);
    assert.deepEqual([clock.now(), clock.monotonic()], [1_000, 0]);
    await clock.advance(250);
    assert.deepEqual([clock.now(), clock.monotonic()], [1_250, 250]);
  });

  test("fires timers at their time, in order, whatever was set first", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: 15 }), async (delays) => {
        const clock = new ManualClock();
        const fired: { at: number; order: number }[] = [];
        for (const [order, delay] of delays.entries()) {
          clock.after(delay, () => {
            assert.equal(clock.monotonic(), delay);
            fired.push({ at: delay, order });
          });
        }
        await clock.advance(100);
        const expected = delays
          .map((at, order) => ({ at, order }))
          .sort((a, b) => a.at - b.at || a.order - b.order);
        assert.deepEqual(fired, expected);
        assert.equal(clock.waiting, 0);
      }),
      { numRuns: 50 },
    ));

  test("lets a sleeper set its next sleep on the way", async () => {
    const clock = new ManualClock();
    const woke: number[] = [];
    void (async () => {
      for (let i = 0; i < 3; i++) {
        await clock.sleep(10);
        woke.push(clock.monotonic());
      }
    })();
    await clock.advance(35);
    assert.deepEqual(woke, [10, 20, 30]);
  });

  test("wakes a sleeper at its signal, and leaves no timer behind", async () => {
    const clock = new ManualClock();
    const off = new AbortController();
    const sleeping = clock.sleep(1_000, off.signal);
    assert.equal(clock.waiting, 1);
    off.abort();
    await sleeping;
    assert.equal(clock.waiting, 0);
    await clock.sleep(1_000, off.signal);
    assert.equal(clock.monotonic(), 0);
  });

  test("a wall clock that is set, and a machine that sleeps, leave monotonic time and timers alone", async () => {
    const clock = new ManualClock(1_000);
    let fired = false;
    clock.after(10, () => (fired = true));
    clock.setWall(999_000);
    clock.suspend(1_000);
    assert.deepEqual([clock.now(), clock.monotonic()], [1_000_000, 0]);
    await clock.advance(9);
    assert.equal(fired, false);
    await clock.advance(1);
    assert.ok(fired);
    assert.equal(clock.now(), 1_000_010);
  });
});
