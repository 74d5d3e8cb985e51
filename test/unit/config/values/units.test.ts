import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { formatDuration, formatSize, parseDuration, parseSize } from "../../../../src/config/values/units.ts";

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
    for (const [text, ms] of Object.entries(cases)) assert.equal(parseDuration(text), ms, text);
  });

  it("are written in the largest unit that keeps them whole", () => {
    const cases: [number, string][] = [
      [0, "0ms"],
      [1_500, "1500ms"],
      [90_000, "90s"],
      [300_000, "5m"],
      [86_400_000, "1d"],
    ];
    for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
  });

  it("come back the same after being written and read", () => {
    fc.assert(fc.property(fc.nat(2 ** 40), (ms) => assert.equal(parseDuration(formatDuration(ms)), ms)));
  });

  it("without a unit are refused with the remedy", () => {
    assert.throws(() => parseDuration("30"), { message: "needs a unit: write 30s or 30ms, not 30" });
  });

  it("that are something else are refused with examples", () => {
    for (const text of ["soon", "-5s", "5 weeks", "", "5S"]) {
      assert.throws(() => parseDuration(text), {
        message: `must be a duration such as 500ms, 30s, 5m, 1h or 7d, not ${JSON.stringify(text)}`,
      });
    }
  });

  it("beyond what a number can hold are refused", () => {
    assert.throws(() => parseDuration("999999999999999d"), { message: "is too long: 999999999999999d" });
  });
});

describe("sizes", () => {
  it("are read in powers of ten and of two", () => {
    const cases = {
      "100B": 100,
      "10kB": 10_000,
      "10MB": 10_000_000,
      "512KiB": 524_288,
      "1MiB": 1_048_576,
      "1.5KiB": 1_536,
    };
    for (const [text, bytes] of Object.entries(cases)) assert.equal(parseSize(text), bytes, text);
  });

  it("come back the same after being written and read", () => {
    fc.assert(fc.property(fc.nat(2 ** 40), (bytes) => assert.equal(parseSize(formatSize(bytes)), bytes)));
  });

  it("that are something else are refused with examples", () => {
    assert.throws(() => parseSize("big"), {
      message: 'must be a size such as 512KiB, 1MiB or 10MB, not "big"',
    });
    assert.throws(() => parseSize("1iB"), {
      message: 'must be a size such as 512KiB, 1MiB or 10MB, not "1iB"',
    });
    assert.throws(() => parseSize("1000"), {
      message: "must be a size such as 512KiB, 1MiB or 10MB, not 1000",
    });
  });
});
