import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JobId } from "../../../../src/core/ids.ts";
import { JobWatchers } from "../../../../src/jobs/follow/job-watchers.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

const JOB = "node-a-1" as JobId;

/** Follows a job and counts how often it was told to look. */
function follower(watchers: JobWatchers, id: JobId = JOB) {
  const stop = new AbortController();
  const seen = { looks: 0 };
  const ended = (async () => {
    for await (const _ of watchers.changes(id, stop.signal)) seen.looks++;
  })();
  return { seen, stop, ended };
}

describe("whoever follows a job", () => {
  it("looks at once, at each change, and once a second regardless", async () => {
    const clock = new ManualClock();
    const watchers = new JobWatchers(clock);
    const { seen, stop, ended } = follower(watchers);
    await clock.advance(0);
    assert.equal(seen.looks, 1);
    watchers.changed(JOB);
    await clock.advance(0);
    assert.equal(seen.looks, 2);
    watchers.changed("node-a-2" as JobId);
    await clock.advance(999);
    assert.equal(seen.looks, 2);
    await clock.advance(1);
    assert.equal(seen.looks, 3);
    stop.abort();
    await ended;
  });

  it("misses no change that comes while it looks", async () => {
    const clock = new ManualClock();
    const watchers = new JobWatchers(clock);
    const stop = new AbortController();
    let looks = 0;
    for await (const _ of watchers.changes(JOB, stop.signal)) {
      if (++looks === 3) break;
      watchers.changed(JOB); // while nobody waits
    }
    assert.equal(looks, 3, "no time has passed");
  });

  it("leaves nothing behind, whichever way it ends", async () => {
    const clock = new ManualClock();
    const watchers = new JobWatchers(clock);
    const first = follower(watchers);
    const second = follower(watchers);
    await clock.advance(0);
    assert.equal(watchers.size, 1);
    first.stop.abort();
    await first.ended;
    assert.equal(watchers.size, 1, "the other still follows");
    second.stop.abort();
    await second.ended;
    assert.deepEqual([watchers.size, clock.waiting], [0, 0]);
    for await (const _ of watchers.changes(JOB, new AbortController().signal)) break;
    assert.equal(watchers.size, 0);
  });

  it("may be one of many", async () => {
    const clock = new ManualClock();
    const watchers = new JobWatchers(clock);
    const followers = Array.from({ length: 100 }, () => follower(watchers));
    await clock.advance(0);
    watchers.changed(JOB);
    await clock.advance(0);
    assert.ok(followers.every(({ seen }) => seen.looks === 2));
    for (const { stop } of followers) stop.abort();
    await Promise.all(followers.map(({ ended }) => ended));
  });
});
