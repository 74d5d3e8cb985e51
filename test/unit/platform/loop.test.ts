import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Backoff, Loop, Mutex, Pause, within } from "../../../src/platform/loop.ts";
import { ManualClock } from "../../support/manual-clock.ts";

describe("Loop", () => {
  it("repeats its step after the wait that the step returned, and at once when it is woken", async () => {
    const clock = new ManualClock();
    const at: number[] = [];
    const loop = new Loop(clock, async () => {
      at.push(clock.monotonic());
      return 100;
    });
    loop.start(50);
    await clock.advance(160);
    assert.deepEqual(at, [50, 150]);
    loop.wake();
    await clock.advance(0);
    assert.deepEqual(at, [50, 150, 160]);
    await loop.stop();
    await clock.advance(1_000);
    assert.equal(at.length, 3);
    assert.equal(clock.waiting, 0);
  });

  it("does not miss a wake-up that comes during a step, and waits for the step when it is stopped", async () => {
    const clock = new ManualClock();
    let steps = 0;
    let finished = 0;
    const loop = new Loop(clock, async () => {
      steps += 1;
      await clock.sleep(10);
      finished += 1;
      return 1_000;
    });
    loop.start();
    await clock.advance(5);
    loop.wake();
    await clock.advance(6);
    assert.equal(steps, 2);
    const stopped = loop.stop();
    await clock.advance(10);
    await stopped;
    assert.equal(finished, 2);
  });
});

describe("Pause", () => {
  it("says whether a wake-up ended it", async () => {
    const clock = new ManualClock();
    const pause = new Pause(clock);
    pause.wake();
    assert.equal(await pause.sleep(1_000), true);
    const sleeping = pause.sleep(10);
    await clock.advance(10);
    assert.equal(await sleeping, false);
    pause.wake();
    pause.clear();
    assert.equal(await pause.sleep(1_000, AbortSignal.abort()), false);
  });
});

describe("Backoff", () => {
  it("doubles up to its limit, and begins again after a reset", () => {
    const backoff = new Backoff(10, 35);
    assert.deepEqual([backoff.next(), backoff.next(), backoff.next(), backoff.next()], [10, 20, 35, 35]);
    backoff.reset();
    assert.equal(backoff.next(), 10);
  });
});

describe("Mutex", () => {
  it("runs one at a time in order, also after a failure", async () => {
    const clock = new ManualClock();
    const mutex = new Mutex();
    const order: string[] = [];
    const work = (name: string, ms: number) => async () => {
      order.push(`${name} begins`);
      await clock.sleep(ms);
      order.push(`${name} ends`);
      if (name === "first") throw new Error("failed");
    };
    const first = assert.rejects(mutex.run(work("first", 20)), /failed/);
    const second = mutex.run(work("second", 5));
    await clock.advance(30);
    await Promise.all([first, second, mutex.idle()]);
    assert.deepEqual(order, ["first begins", "first ends", "second begins", "second ends"]);
  });
});

describe("within", () => {
  it("ends with the work, the time or the signal, and leaves no timer", async () => {
    const clock = new ManualClock();
    await within(clock, 1_000, Promise.resolve());
    await assert.rejects(within(clock, 1_000, Promise.reject(new Error("failed"))), /failed/);
    const never = new Promise(() => {});
    const late = within(clock, 10, never);
    await clock.advance(10);
    await late;
    await within(clock, 1_000, never, AbortSignal.abort());
    assert.equal(clock.waiting, 0);
  });
});
