import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Backoff, Deadline, Loop, Mutex, Pause, repeat, retry, within } from "../../../src/platform/loop.ts";
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
    assert.equal(backoff.failures, 1);
  });

  it("spreads its delays by half to both sides", () => {
    const chances = [0, 0.5, 0.999];
    const random = { chance: () => chances.shift()!, uuid: () => "", timedUuid: () => "" };
    const backoff = new Backoff(10, 10, random);
    assert.deepEqual([backoff.next(), backoff.next(), Math.round(backoff.next())], [5, 10, 15]);
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

describe("repeat", () => {
  it("waits between two steps for as long as the step said, until the signal", async () => {
    const clock = new ManualClock();
    const over = new AbortController();
    const at: number[] = [];
    const repeating = repeat(clock, over.signal, async () => at.push(clock.monotonic()) * 10);
    await clock.advance(30);
    over.abort();
    await repeating;
    assert.deepEqual(at, [0, 10, 30]);
    assert.equal(clock.waiting, 0);
  });
});

describe("retry", () => {
  it("calls again until it succeeds, is told to give up, or the signal is aborted", async () => {
    const clock = new ManualClock();
    let calls = 0;
    const call = async (): Promise<number> => {
      calls += 1;
      if (calls % 3 !== 0) throw new Error(`failure ${calls}`);
      return calls;
    };
    const succeeding = retry(clock, call, () => 100);
    await clock.advance(199);
    assert.equal(calls, 2);
    await clock.advance(1);
    assert.equal(await succeeding, 3);
    await assert.rejects(
      retry(clock, call, () => null),
      /failure 4/,
    );
    const over = new AbortController();
    const ended = assert.rejects(
      retry(clock, call, () => 100, over.signal),
      /failure 5/,
    );
    await clock.advance(50);
    over.abort();
    await ended;
    assert.deepEqual([calls, clock.waiting], [5, 0]);
  });
});

describe("Deadline", () => {
  it("fires after its time or with another signal, and leaves no timer when it is disposed of", async () => {
    const clock = new ManualClock();
    const other = new AbortController();
    {
      using late = new Deadline(clock, 100);
      using early = new Deadline(clock, 200, other.signal);
      using ended = new Deadline(clock, 300);
      await clock.advance(100);
      assert.deepEqual([late.signal.aborted, late.expired], [true, true]);
      other.abort();
      assert.deepEqual([early.signal.aborted, early.expired], [true, false]);
      ended.end();
      assert.deepEqual([ended.signal.aborted, ended.expired], [true, true]);
    }
    assert.equal(clock.waiting, 0);
  });
});

describe("within", () => {
  it("ends with the work, the time or the signal, and leaves no timer", async () => {
    const clock = new ManualClock();
    assert.equal(await within(clock, 1_000, Promise.resolve("done")), "done");
    await assert.rejects(within(clock, 1_000, Promise.reject(new Error("failed"))), /failed/);
    const never = new Promise(() => {});
    const late = within(clock, 10, never);
    await clock.advance(10);
    assert.equal(await late, undefined);
    await within(clock, 1_000, never, AbortSignal.abort());
    assert.equal(clock.waiting, 0);
  });
});
