import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { slept, trustedUntil } from "../../../../src/core/leadership/trust-window.ts";

const ms = fc.integer({ min: 0, max: 1_000_000 });

describe("the trust window", () => {
  test("counts from the sending of the renewal", () => {
    assert.equal(trustedUntil(500, { leaseMs: 4_000, marginMs: 1_000 }), 3_500);
  });

  test("is over before the lock can grant the next term, at any rate that the margin covers", () => {
    fc.assert(
      fc.property(
        ms,
        fc.integer({ min: 100, max: 60_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 0, max: 60_000 }),
        (sentAt, leaseMs, share, transitMs) => {
          const marginMs = leaseMs / 4;
          // Our clock may be slower than the lock's, down to the rate that a margin of a quarter tolerates.
          const rate = 0.75 + 0.25 * share;
          const trustedForMs = (trustedUntil(sentAt, { leaseMs, marginMs }) - sentAt) / rate;
          assert.ok(trustedForMs <= transitMs + leaseMs + 1e-6);
        },
      ),
    );
  });
});

describe("a machine that slept", () => {
  test("is told from one that was only slow: both clocks agree about slowness", () => {
    fc.assert(
      fc.property(ms, ms, (deltaMs, leaseMs) => assert.equal(slept(deltaMs, deltaMs, leaseMs), false)),
    );
  });

  test("is known by a wall clock more than half a lease ahead", () => {
    assert.equal(slept(3_000, 1_000, 4_000), false);
    assert.equal(slept(3_001, 1_000, 4_000), true);
  });

  test("is not seen in a wall clock that was set back", () => {
    assert.equal(slept(-3_600_000, 1_000, 4_000), false);
  });
});
