import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { DEFAULT_RETRY, retryDelayMs } from "../../../../src/core/jobs/retry.ts";

const policy = { delayMs: 1_000, factor: 2, maxDelayMs: 60_000, jitter: 0.25 };

describe("the delay before a retry", () => {
  test("doubles with each failure up to its limit", () => {
    const middle = [1, 2, 3, 6, 7, 8].map((failures) => retryDelayMs(failures, 0.5, policy));
    assert.deepEqual(middle, [1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
  });

  test("is spread by a quarter to both sides", () => {
    assert.equal(retryDelayMs(1, 0, policy), 750);
    assert.equal(retryDelayMs(1, 0.999_999, policy), 1_250);
  });

  test("is always a whole number of ms within its bounds, also after a million failures", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (failures, chance) => {
          const delayMs = retryDelayMs(failures, chance);
          assert.ok(Number.isSafeInteger(delayMs));
          assert.ok(delayMs >= DEFAULT_RETRY.delayMs * (1 - DEFAULT_RETRY.jitter));
          assert.ok(delayMs <= DEFAULT_RETRY.maxDelayMs * (1 + DEFAULT_RETRY.jitter));
        },
      ),
    );
  });
});
