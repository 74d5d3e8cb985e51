import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { durationMs, durationText, type Duration } from "../../../src/core/duration.ts";

describe("durations", () => {
  it("are read in every unit", () => {
    const cases = {
      "500ms": 500,
      "30s": 30_000,
      "5m": 300_000,
      "1h": 3_600_000,
      "7d": 604_800_000,
      "1.5s": 1_500,
    };
    for (const [text, ms] of Object.entries(cases)) assert.equal(durationMs(text), ms, text);
  });

  it("are written in the largest unit that keeps them whole", () => {
    const cases: [number, string][] = [
      [0, "0ms"],
      [1_500, "1500ms"],
      [90_000, "90s"],
      [300_000, "5m"],
      [86_400_000, "1d"],
    ];
    for (const [ms, text] of cases) assert.equal(durationText(ms), text);
  });

  it("come back the same after being written and read", () => {
    fc.assert(fc.property(fc.nat(2 ** 40), (ms) => assert.equal(durationMs(durationText(ms)), ms)));
  });

  it("without a unit are refused with the remedy", () => {
    assert.throws(() => durationMs("30"), { message: "needs a unit: write 30s or 30ms, not 30" });
  });

  it("that are something else are refused with examples", () => {
    for (const text of ["soon", "-5s", "5 weeks", "", "5S"]) {
      assert.throws(() => durationMs(text), {
        message: `must be a duration such as 500ms, 30s, 5m, 1h or 7d, not ${JSON.stringify(text)}`,
      });
    }
  });

  it("are also numbers of milliseconds", () => {
    assert.equal(durationMs(30_000), 30_000);
    for (const odd of [-1, 1.5, Number.NaN, Infinity]) {
      assert.throws(() => durationMs(odd), {
        message: `must be a duration such as "30s", or a whole number of milliseconds, not ${odd}`,
      });
    }
    assert.throws(() => durationMs(null), { message: 'must be a duration such as "30s", not null' });
    assert.throws(() => durationMs([5]), { message: 'must be a duration such as "30s", not a list' });
  });

  it("beyond what a number can hold are refused", () => {
    assert.throws(() => durationMs("999999999999999d"), { message: "is too long: 999999999999999d" });
  });

  it("without a unit, or with another one, do not compile", () => {
    const right: readonly Duration[] = ["30s", "1.5h", "500ms", 250];
    // @ts-expect-error: it has no unit
    const bare: Duration = "30";
    // @ts-expect-error: there is no such unit
    const long: Duration = "5 minutes";
    assert.deepEqual(right.map(durationMs), [30_000, 5_400_000, 500, 250]);
    for (const wrong of [bare, long]) assert.throws(() => durationMs(wrong), RangeError);
  });
});
