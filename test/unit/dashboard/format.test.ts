import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { uuidAt } from "../../../src/core/ids.ts";
import { ago, duration, perSecond, plural, shortId } from "../../../dashboard/src/parts/format.ts";

describe("numbers and times on the page", () => {
  it("tells durations in at most two units", () => {
    const told = [0, 340.4, 2_400, 42_000, 192_000, 120_000, 3_900_000, 90_000_000, -5].map(duration);
    assert.deepEqual(told, ["0 ms", "340 ms", "2.4 s", "42 s", "3m 12s", "2m", "1h 5m", "1d 1h", "0 ms"]);
  });

  it("tells how long ago something was, and in how long it will be", () => {
    const now = 1_800_000_000_000;
    assert.equal(ago(now - 200, now), "just now");
    assert.equal(ago(now - 12_000, now), "12s ago");
    assert.equal(ago(now - 190_000, now), "3m ago");
    assert.equal(ago(now + 7_300_000, now), "in 2h 1m");
    assert.equal(ago(now + 100_000, now), "in 1m");
    assert.equal(ago(now - 4 * 86_400_000, now), "4d ago");
  });

  it("does not call a little nothing", () => {
    assert.deepEqual([0, 0.01, 0.4, 9.94, 1234.5].map(perSecond), ["0", "<0.1", "0.4", "9.9", "1,235"]);
    assert.equal(plural(1, "job"), "1 job");
    assert.equal(plural(1_200, "job"), "1,200 jobs");
  });

  it("shortens an id to where it was born and enough to tell it apart", () => {
    assert.equal(shortId("node-a-01a1e20a-0914-7356-b76b-3822c1596aab"), "node-a…356…6aab");
    const first = "01a1e20a-0914-7356-b76b-3822c1596aab";
    const batch = Array.from({ length: 500 }, (_, index) => shortId(`node-a-${uuidAt(first, index)}`));
    assert.equal(new Set(batch).size, 500, "those of one batch can be told apart");
    assert.equal(shortId("something else"), "something else");
  });
});
