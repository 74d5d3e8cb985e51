import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  judgeWork,
  UNANSWERED_MS,
  UNTAKEN_MS,
  type ClaimFacts,
  type WorkFacts,
} from "../../../../src/core/health/work-health.ts";

const CLAIMS: ClaimFacts = {
  unansweredMs: 0,
  underWayMs: null,
  failure: null,
  idleMs: 0,
  resultsFailingMs: null,
};
const LATE = UNANSWERED_MS + 1_000;

function judged(facts: Partial<WorkFacts>, claims: Partial<ClaimFacts> = {}) {
  return judgeWork({
    state: "working",
    slots: 4,
    running: 0,
    tasks: 1,
    ready: 0,
    oldestMs: null,
    stuck: [],
    ...facts,
    claims: { ...CLAIMS, ...claims },
  });
}

describe("a node works", () => {
  it("when it asks for jobs and is answered, whether there are any or not", () => {
    assert.deepEqual(judged({}), {
      ok: true,
      code: "working",
      reason: "0 of 4 places are in use; nothing waits for it",
    });
    assert.equal(judged({ ready: 900, running: 3 }).code, "working");
    assert.match(judged({ ready: null }).reason, /^0 of 4 places are in use$/);
  });

  it("when all of its places are in use, for however long it has asked for nothing", () => {
    const full = judged(
      { running: 4, ready: 1_000, oldestMs: 3_600_000 },
      { unansweredMs: LATE, idleMs: 1e9 },
    );
    assert.deepEqual([full.ok, full.code], [true, "full"]);
  });

  it("when it is not meant to: without places or tasks, while it starts and while it drains", () => {
    const lost = { unansweredMs: 1e9, resultsFailingMs: 1e9 };
    assert.equal(judged({ slots: 0, ready: 9 }, lost).code, "no_worker");
    assert.match(judged({ slots: 0 }).reason, /roles or worker\.concurrency/);
    assert.match(judged({ tasks: 0, ready: 9 }, lost).reason, /no tasks/);
    assert.equal(judged({ state: "draining", ready: 9 }, lost).ok, true);
    assert.equal(judged({ state: "starting", ready: 9 }, lost).ok, true);
  });

  it("when nothing waits, although its claims are not answered", () => {
    assert.equal(judged({ ready: 0 }, { unansweredMs: LATE }).ok, true);
  });

  it("when what waits has not waited long, or a job came not long ago", () => {
    assert.equal(judged({ ready: 5, oldestMs: UNTAKEN_MS - 1 }, { idleMs: UNTAKEN_MS }).ok, true);
    assert.equal(judged({ ready: 5, oldestMs: UNTAKEN_MS }, { idleMs: UNTAKEN_MS - 1 }).ok, true);
    assert.equal(judged({ ready: 5, oldestMs: null }, { idleMs: UNTAKEN_MS }).ok, true);
  });
});

describe("a node does not work", () => {
  it("when something waits, or may, and a claim hangs", () => {
    for (const ready of [1, null]) {
      const { ok, code, reason } = judged({ ready }, { unansweredMs: LATE, underWayMs: LATE });
      assert.deepEqual([ok, code], [false, "claims_unanswered"]);
      assert.match(reason, /not been answered for 6\.0 s/);
    }
  });

  it("when it has room and does not ask", () => {
    const { ok, reason } = judged({ ready: 1, running: 3 }, { unansweredMs: 31_000 });
    assert.equal(ok, false);
    assert.match(reason, /none has been asked for in 31 s/);
  });

  it("when its claims fail, with the reason of the last one", () => {
    const { code, reason } = judged(
      { ready: null },
      { unansweredMs: LATE, failure: "no answer within 5000 ms" },
    );
    assert.equal(code, "claims_failing");
    assert.match(reason, /no answer within 5000 ms/);
  });

  it("when its claims are answered and leave lying what it could run", () => {
    const { code, reason } = judged({ ready: 7, running: 1, oldestMs: 20_000 }, { idleMs: 20_000 });
    assert.equal(code, "not_taking");
    assert.match(reason, /3 of 4 places are free, .* waited for 20 s/);
  });

  it("when the store does not take its results", () => {
    assert.equal(judged({}, { resultsFailingMs: UNANSWERED_MS }).code, "results_refused");
    assert.equal(judged({}, { resultsFailingMs: UNANSWERED_MS - 1 }).ok, true);
  });

  it("when a duty of the leader hangs, also where no jobs run", () => {
    const stuck = [{ duty: "schedules", busyMs: 61_000 }];
    const { ok, reason } = judged({ slots: 0, stuck });
    assert.equal(ok, false);
    assert.match(reason, /"schedules" has not come to an end for 61 s/);
  });
});

it("a verdict always has its reason, and trouble only where there is room for jobs or a duty hangs", () => {
  const ms = fc.integer({ min: 0, max: 100_000 });
  fc.assert(
    fc.property(
      fc.record({
        state: fc.constantFrom("working" as const, "starting" as const, "draining" as const),
        slots: fc.integer({ min: 0, max: 5 }),
        running: fc.integer({ min: 0, max: 5 }),
        tasks: fc.integer({ min: 0, max: 2 }),
        ready: fc.option(fc.integer({ min: 0, max: 3 })),
        oldestMs: fc.option(ms),
        stuck: fc.constantFrom([], [{ duty: "nodes", busyMs: 1 }]),
        claims: fc.record({
          unansweredMs: ms,
          underWayMs: fc.option(ms),
          failure: fc.option(fc.constant("x")),
          idleMs: ms,
          resultsFailingMs: fc.option(ms),
        }),
      }),
      (facts) => {
        const { ok, reason } = judgeWork(facts);
        assert.ok(reason.length > 0);
        if (ok || facts.stuck.length > 0) return;
        assert.ok(facts.state === "working" && facts.slots > 0 && facts.tasks > 0);
        assert.ok(facts.running < facts.slots || facts.claims.resultsFailingMs !== null);
      },
    ),
  );
});
