import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { trafficOf } from "../../../src/observe/traffic.ts";
import { ManualClock } from "../../support/manual-clock.ts";

describe("traffic", () => {
  it("is told each second, of the seconds that are over, by queue as well", async () => {
    const clock = new ManualClock();
    const traffic = trafficOf(clock);
    assert.deepEqual(traffic.read(), { submitted: 0, finished: 0, failed: 0, queues: [], others: false });
    for (let second = 0; second < 5; second++) {
      traffic.submitted([{ queue: "a" }, { queue: "a" }, { queue: "b" }]);
      traffic.finished("a", false);
      traffic.finished(undefined, true);
      await clock.advance(1_000);
    }
    assert.deepEqual(traffic.read(), {
      submitted: 3,
      finished: 2,
      failed: 1,
      queues: [
        ["a", 2, 1],
        ["b", 1, 0],
      ],
      others: false,
    });
    await clock.advance(5_000);
    assert.deepEqual(traffic.read().submitted, 1.5);
    await clock.advance(6_000);
    assert.deepEqual(traffic.read(), { submitted: 0, finished: 0, failed: 0, queues: [], others: false });
  });

  it("of many queues tells the busiest, and that there are others", async () => {
    const clock = new ManualClock();
    const traffic = trafficOf(clock);
    for (let n = 0; n < 30; n++) traffic.submitted(Array.from({ length: n + 1 }, () => ({ queue: `q${n}` })));
    await clock.advance(1_000);
    const { queues, others, submitted } = traffic.read();
    assert.equal(queues.length, 20);
    assert.deepEqual(queues[0], ["q29", 30, 0]);
    assert.deepEqual([others, submitted], [true, 465]);
  });

  it("comes after a long silence as it should", async () => {
    const clock = new ManualClock();
    const traffic = trafficOf(clock);
    traffic.submitted([{ queue: "a" }]);
    await clock.advance(1_000_000);
    traffic.submitted([{ queue: "a" }]);
    await clock.advance(1_000);
    assert.equal(traffic.read().submitted, 0.1);
  });
});
