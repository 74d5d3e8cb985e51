import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { topics } from "../../../../src/channels/channel-names.ts";
import { MemoryChannels } from "../../../../src/channels/memory/channels.ts";
import type { JobId } from "../../../../src/core/ids.ts";
import { Followers, JobWatchers } from "../../../../src/jobs/follow/followers.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

const JOB = "node-a-1" as JobId;

/** Follows a job and counts how often it was told to look. */
function follower(watchers: Pick<JobWatchers, "changes">, id: JobId = JOB) {
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

  it("is announced to the other nodes once for each job, however many follow it", async () => {
    const clock = new ManualClock();
    await using channels = new MemoryChannels({ clock });
    await channels.start();
    let announced = 0;
    channels.subscribe(topics.jobFollowed, () => void announced++);
    await using all = new Followers({ clock }, channels);
    await all.start();
    const followers = Array.from({ length: 100 }, () => follower(all));
    await clock.advance(0);
    assert.equal(announced, 1);
    assert.ok(
      followers.every(({ seen }) => seen.looks === 2),
      "at once, and when the others know",
    );
    await clock.advance(5_000);
    assert.equal(announced, 2, "the reminder");
    for (const { stop } of followers) stop.abort();
    await Promise.all(followers.map(({ ended }) => ended));
    await clock.advance(5_000);
    assert.deepEqual([announced, clock.waiting], [2, 0], "none after the last follower left");
  });
});
