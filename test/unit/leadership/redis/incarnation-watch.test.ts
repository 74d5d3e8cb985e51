/** When a connection counts as gone: after a second look that follows soon, and never by one look alone. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ControlSession } from "../../../../src/leadership/redis/control-session.ts";
import { IncarnationWatch } from "../../../../src/leadership/redis/incarnation-watch.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

function opened() {
  const clock = new ManualClock();
  const there = new Set<string>();
  const looks: number[] = [];
  const control = {
    send: async ([, , ...lives]: string[]) => {
      looks.push(clock.monotonic());
      return lives.flatMap((life) => [life, there.has(life) ? 1 : 0]);
    },
  } as unknown as ControlSession;
  return { clock, there, looks, watch: new IncarnationWatch(clock, control) };
}

describe("a watch over connections", () => {
  it("looks again soon after one is missing, and tells of its end once", async () => {
    const { clock, there, looks, watch } = opened();
    there.add("ada");
    const gone: number[] = [];
    watch.watch("ada", () => gone.push(clock.monotonic()));
    await clock.advance(60);
    there.delete("ada");
    await clock.advance(200);
    assert.deepEqual(looks.slice(0, 4), [0, 50, 100, 122]);
    assert.deepEqual(gone, [122]);
  });

  it("says nothing of one that was away for a moment", async () => {
    const { clock, there, watch } = opened();
    there.add("ada");
    let gone = 0;
    watch.watch("ada", () => gone++);
    await clock.advance(90);
    there.delete("ada");
    await clock.advance(15);
    there.add("ada");
    await clock.advance(500);
    assert.equal(gone, 0);
    watch.stop();
    assert.equal(clock.waiting, 0);
  });

  it("waits longer for one that was never there since the connection was made", async () => {
    const { clock, there, watch } = opened();
    there.add("ada");
    const gone: number[] = [];
    watch.watch("ada", () => gone.push(clock.monotonic()));
    await clock.advance(10);
    watch.lost();
    there.delete("ada");
    await clock.advance(1_900);
    assert.deepEqual(gone, []);
    await clock.advance(300);
    assert.equal(gone.length, 1);
  });
});
