import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { type AbortReason, DEFAULT_BUDGETS } from "../../../../src/core/jobs/job.ts";
import { DEFAULT_RETRY, retryDelayMs } from "../../../../src/core/jobs/retry.ts";
import { JobAborted } from "../../../../src/jobs/run/job-run.ts";
import { type Ending, outcomeOf, toJobError } from "../../../../src/jobs/run/run-outcome.ts";
import { claimedJob } from "../../../support/job-builders.ts";

/** What the jitter of retries draws. */
const CHANCE = 0.1;
const REASONS = ["cancel", "timeout", "drain", "lease_lost"] as const satisfies readonly AbortReason[];

const claimed = fc.record({
  failures: fc.nat(5),
  interruptions: fc.nat(60),
  crashes: fc.nat(2),
  maxAttempts: fc.integer({ min: 1, max: 5 }),
});
const endings: fc.Arbitrary<Ending> = fc.oneof(
  fc.jsonValue().map((result): Ending => ({ ended: "returned", result })),
  fc.anything().map((error): Ending => ({ ended: "threw", error })),
  fc.constantFrom(...REASONS).map((why): Ending => ({ ended: "threw", error: new JobAborted(why) })),
  fc.constant<Ending>({ ended: "abandoned" }),
);
const aborts = fc.option(fc.constantFrom(...REASONS));

function decide(spent: object, ending: Ending, why: AbortReason | null) {
  const job = claimedJob({ timeoutMs: 100, ...spent });
  const rules = { budgets: DEFAULT_BUDGETS, retry: DEFAULT_RETRY, chance: () => CHANCE };
  return outcomeOf(job, ending, why && { why, message: null }, undefined, rules);
}

describe("what becomes of a job, whatever its handler did", () => {
  it("can always be stored, and nothing is said after a lost lease", () => {
    fc.assert(
      fc.property(claimed, endings, aborts, (spent, ending, why) => {
        const outcome = decide(spent, ending, why);
        assert.equal(outcome === null, why === "lease_lost");
        if (outcome === null) return;
        JSON.stringify(outcome);
        if ("error" in outcome) {
          assert.equal(typeof outcome.error.message, "string");
          assert.equal(typeof outcome.error.code, "string");
          assert.ok(outcome.error.message.length > 0);
        }
      }),
    );
  });

  it("is its result if there is one, whatever was asked of it meanwhile", () => {
    fc.assert(
      fc.property(claimed, fc.jsonValue(), aborts, (spent, result, why) => {
        if (why === "lease_lost") return;
        assert.deepEqual(decide(spent, { ended: "returned", result }, why), {
          kind: "completed",
          result: JSON.stringify(result),
        });
      }),
    );
  });

  it("spends one budget at most, and only a failure's ends in a retry", () => {
    fc.assert(
      fc.property(claimed, endings, aborts, (spent, ending, why) => {
        const outcome = decide(spent, ending, why);
        if (why === "drain" && ending.ended !== "returned") {
          const over = spent.interruptions >= DEFAULT_BUDGETS.interruptionsMax;
          assert.equal(outcome?.kind, over ? "failed" : "interrupted");
          if (outcome?.kind === "failed") assert.equal(outcome.spends, "interruption");
        } else if (outcome?.kind === "retry") {
          assert.ok(spent.failures + 1 < spent.maxAttempts);
          assert.equal(outcome.delayMs, retryDelayMs(spent.failures + 1, CHANCE, DEFAULT_RETRY));
        } else if (outcome?.kind === "failed") assert.equal(outcome.spends, "failure");
      }),
    );
  });
});

describe("a delay that the handler chose", () => {
  it("takes the place of the policy's, while attempts are left", () => {
    fc.assert(
      fc.property(claimed, fc.integer({ min: 0, max: 1e9 }), (spent, retryAfterMs) => {
        const error = Object.assign(new Error("busy"), { retryAfterMs });
        const outcome = decide(spent, { ended: "threw", error }, null)!;
        if (outcome.kind === "retry")
          assert.deepEqual([outcome.delayMs, outcome.asked], [retryAfterMs, true]);
        else assert.equal(outcome.kind, "failed");
      }),
    );
  });

  it("is not one that is no time, and does not bring back what is not to be tried again", () => {
    const spent = { failures: 0, interruptions: 0, crashes: 0, maxAttempts: 5 };
    for (const retryAfterMs of ["30s", -1, Number.NaN, Infinity, null]) {
      const outcome = decide(spent, { ended: "threw", error: { retryAfterMs } }, null)!;
      assert.ok(outcome.kind === "retry" && outcome.asked === undefined, String(retryAfterMs));
    }
    const error = { retryAfterMs: 5, retryable: false };
    assert.equal(decide(spent, { ended: "threw", error }, null)!.kind, "failed");
  });
});

describe("an error as it is stored", () => {
  it("has the code and message of what was thrown, also by code from elsewhere", () => {
    const { code, message } = toJobError(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }));
    assert.deepEqual([code, message], ["ECONNREFUSED", "refused"]);
    assert.deepEqual(toJobError("just text"), { code: "ERROR", message: "just text" });
    assert.deepEqual(toJobError({ message: "like an error", code: "LIKE" }), {
      code: "LIKE",
      message: "like an error",
    });
    assert.equal(toJobError(new TypeError()).message, "TypeError");
    assert.equal(toJobError(Object.assign(new Error("numbered"), { code: 42 })).code, "ERROR");
  });

  it("has a message to read of whatever was thrown, however strange", () => {
    const trap = (): never => {
      throw new Error("a trap");
    };
    const strange: Record<string, unknown> = {
      bare: Object.create(null),
      symbol: Symbol("odd"),
      bigMessage: Object.assign(new Error("x"), { message: 10n }),
      noStack: Object.assign(new Error("x"), { stack: ["not", "text"] }),
      getter: Object.defineProperty(new Error("x"), "message", { get: trap }),
      huge: new Error("x".repeat(5_000_000)),
      trap: new Proxy({}, { get: trap, has: trap }),
      stubborn: Object.defineProperty(new Error("x"), "retryable", { get: trap }),
    };
    const spent = { failures: 0, interruptions: 0, crashes: 0, maxAttempts: 1 };
    for (const [name, error] of Object.entries(strange)) {
      const outcome = decide(spent, { ended: "threw", error }, null);
      assert.ok(outcome?.kind === "failed" && typeof outcome.error.message === "string", name);
      assert.ok(JSON.stringify(outcome.error).length < 100_000, name);
    }
  });
});
