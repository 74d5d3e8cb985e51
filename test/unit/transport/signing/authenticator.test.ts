import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { Recent } from "../../../../src/platform/recent.ts";
import { Authenticator } from "../../../../src/transport/signing/authenticator.ts";
import { clusterKeys, sign } from "../../../../src/transport/signing/signing.ts";

const keys = clusterKeys(["the secret of this cluster, number one"]);
const A = { name: "a" as NodeName, incarnation: "a-1" };
const B = "b" as NodeName;
const random = seededRandom(1);

function world(options: { seenMax?: number; skewMs?: number } = {}) {
  const clock = new ManualClock();
  const authenticator = new Authenticator(fakePlatform({ clock, name: B }), keys, options);
  const signed = (changes: { to?: NodeName | null; time?: number } = {}) => {
    const { to = B, time = clock.now() } = changes;
    return sign(keys, { from: A, to, time, nonce: random.uuid(), use: "shared" });
  };
  const verdictOf = (request: Parameters<Authenticator["check"]>[0]): string => {
    const verdict = authenticator.check(request);
    return verdict.verdict === "refused" ? verdict.why : verdict.verdict;
  };
  return { clock, authenticator, signed, verdictOf };
}

describe("the authenticator", () => {
  test("accepts a signed call once", () => {
    const { authenticator, signed } = world();
    const call = signed();
    const first = authenticator.check(call);
    assert.ok(first.verdict === "accepted");
    assert.deepEqual(first.claims.from, A);
    const again = authenticator.check(call);
    assert.ok(again.verdict === "refused" && again.why === "replayed");
  });

  test("refuses a call without a signature, and one for another node", () => {
    const { signed, verdictOf } = world();
    assert.equal(verdictOf({ "x-baton-from": "a" }), "missing");
    assert.equal(verdictOf(signed({ to: "c" as NodeName })), "wrong_receiver");
    assert.equal(verdictOf(signed({ to: null })), "accepted", "a node that joins knows no name yet");
  });

  test("refuses a far clock, says by how much, and accepts again when it was corrected", async () => {
    const { clock, authenticator, signed, verdictOf } = world({ skewMs: 10_000 });
    await clock.advance(60_000);
    for (const [offset, words] of [
      [-10_001, "10 s behind"],
      [60_000, "60 s ahead of"],
    ] as const) {
      const verdict = authenticator.check(signed({ time: clock.now() + offset }));
      assert.ok(verdict.verdict === "refused" && verdict.why === "clock_skew");
      assert.ok(verdict.reason.includes(words), verdict.reason);
    }
    for (const offset of [-10_000, 10_000, 0])
      assert.equal(verdictOf(signed({ time: clock.now() + offset })), "accepted");
  });

  test("refuses what was signed before it started: it cannot have seen it", async () => {
    const { clock, signed, verdictOf } = world();
    const old = signed({ time: clock.now() - 5_000 });
    assert.equal(verdictOf(old), "before_start");
    assert.equal(verdictOf(signed({ time: clock.now() - 900 })), "accepted");
    await clock.advance(20_000);
    assert.equal(verdictOf(signed({ time: clock.now() - 5_000 })), "accepted");
  });

  test("a clock that is set after the start locks nobody out", async () => {
    const { clock, signed, verdictOf } = world();
    await clock.advance(5_000);
    clock.setWall(clock.now() - 3_600_000);
    assert.equal(verdictOf(signed()), "accepted");
  });

  test("remembers a call for as long as it would be accepted, at any pace", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 40_000 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: -30_000, max: 30_000 }),
        async (steps, offset) => {
          const { clock, signed, verdictOf } = world();
          await clock.advance(60_000);
          const call = signed({ time: clock.now() + offset });
          assert.equal(verdictOf(call), "accepted");
          for (const step of steps) {
            await clock.advance(step);
            assert.equal(verdictOf(signed()), "accepted");
            assert.notEqual(verdictOf(call), "accepted");
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  test("refuses when it cannot remember more, and recovers by itself", async () => {
    const { clock, signed, verdictOf } = world({ seenMax: 3 });
    const calls = [signed(), signed(), signed()];
    for (const call of calls) assert.equal(verdictOf(call), "accepted");
    assert.equal(verdictOf(signed()), "too_many");
    for (const call of calls) assert.equal(verdictOf(call), "replayed");
    await clock.advance(60_001);
    assert.equal(verdictOf(signed()), "accepted");
  });

  test("keeps no more than two windows", async () => {
    const clock = new ManualClock();
    const seen = new Recent<number>(clock, 100);
    for (let n = 0; n < 1_000; n++) {
      assert.ok(!seen.has(n));
      seen.add(n);
      assert.ok(seen.has(Math.max(0, n - 20)), "within the window");
      assert.ok(seen.size <= 40, `${seen.size} are kept`);
      await clock.advance(5);
    }
  });
});
