import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { formatSize, parseSize } from "../../../../src/config/values/units.ts";

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
