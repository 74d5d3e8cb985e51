import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  beginHandoff,
  stepHandoff,
  type HandoffEffect,
  type HandoffEvent,
  type HandoffRules,
  type HandoffState,
} from "../../../../src/core/push/handoff-rules.ts";

const HELD = { incarnation: "a-1", ownerEpoch: 3 };
const RULES: HandoffRules = { ackMs: 5_000, tries: 3, whenSilent: "orphan" };
const OURS: HandoffEvent = { kind: "truth", found: { incarnation: "a-1", ownerEpoch: 3 } };
const OTHERS: HandoffEvent = { kind: "truth", found: { incarnation: "b-1", ownerEpoch: 4 } };

function run(
  events: readonly HandoffEvent[],
  rules = RULES,
): { state: HandoffState; effects: HandoffEffect[] } {
  let { state, effect } = beginHandoff();
  const effects = [effect];
  for (const event of events) {
    ({ state, effect } = stepHandoff(state, event, HELD, rules));
    if (effect) effects.push(effect);
  }
  return { state, effects };
}

/** An offer that nobody answers, from its sending at this time to the look into the store. */
function unanswered(at: number): HandoffEvent[] {
  return [{ kind: "sent", at }, { kind: "time", at: at + 5_000 }, OURS];
}

describe("the decisions of a handoff", () => {
  it("case A: an acknowledgement ends it", () => {
    const { state, effects } = run([
      { kind: "sent", at: 0 },
      { kind: "acknowledged", ownerEpoch: 4 },
    ]);
    assert.deepEqual(state, { phase: "over", end: "handed_over" });
    assert.deepEqual(effects, ["offer"]);
  });

  it("case A: also one that is faster than the answer to the sending", () => {
    const { state } = run([
      { kind: "acknowledged", ownerEpoch: 4 },
      { kind: "sent", at: 0 },
    ]);
    assert.deepEqual(state, { phase: "over", end: "handed_over" });
  });

  it("case B: silence is answered by a look into the store, and only then by another offer", () => {
    const early = run([
      { kind: "sent", at: 0 },
      { kind: "time", at: 4_999 },
    ]);
    assert.deepEqual(early.effects, ["offer"]);
    assert.deepEqual(run(unanswered(0)).effects, ["offer", "read", "offer"]);
    const taken = run([{ kind: "sent", at: 0 }, { kind: "time", at: 5_000 }, OTHERS]);
    assert.deepEqual(taken.state, { phase: "over", end: "handed_over" });
    assert.deepEqual(taken.effects, ["offer", "read"]);
  });

  it("case C: after the last try it belongs to nobody", () => {
    const silent = [...unanswered(0), ...unanswered(5_000), ...unanswered(10_000)];
    const { state, effects } = run(silent);
    assert.deepEqual(effects, ["offer", "read", "offer", "read", "offer", "read", "orphan"]);
    assert.deepEqual(state, { phase: "orphaning" });
    assert.deepEqual(run([...silent, { kind: "released" }]).state, { phase: "over", end: "orphaned" });
    const acknowledged: HandoffEvent = { kind: "acknowledged", ownerEpoch: 4 };
    assert.deepEqual(run([...silent, acknowledged]).state, { phase: "over", end: "handed_over" });
  });

  it("keeps what nobody takes when the owner stays", () => {
    const silent = [...unanswered(0), ...unanswered(5_000), ...unanswered(10_000)];
    const { state, effects } = run(silent, { ...RULES, whenSilent: "keep" });
    assert.deepEqual(state, { phase: "over", end: "kept" });
    assert.equal(effects.filter((effect) => effect === "offer").length, 3);
  });

  it("S70: an acknowledgement of an older or of the same epoch is none", () => {
    for (const ownerEpoch of [0, 2, 3])
      assert.equal(run([{ kind: "acknowledged", ownerEpoch }]).state.phase, "offering");
  });

  it("knows its jobs to have ended by word of the owner, or when the store has no row", () => {
    assert.deepEqual(run([{ kind: "ended" }]).state, { phase: "over", end: "finished" });
    const gone: HandoffEvent = { kind: "truth", found: null };
    assert.deepEqual(run([{ kind: "sent", at: 0 }, gone]).state, { phase: "over", end: "finished" });
  });

  it("is somebody else's concern when a write was refused, or the leader took it away", () => {
    assert.deepEqual(run([{ kind: "lost" }]).state, { phase: "over", end: "handed_over" });
    const nobodys: HandoffEvent = { kind: "truth", found: { incarnation: null, ownerEpoch: 3 } };
    assert.deepEqual(run([nobodys]).state, { phase: "over", end: "orphaned" });
    const later: HandoffEvent = { kind: "truth", found: { incarnation: "a-1", ownerEpoch: 5 } };
    assert.deepEqual(run([later]).state, { phase: "over", end: "handed_over" });
  });

  it("whatever happens: no offer without a look before it, no more than so many, and an end is an end", () => {
    const event = fc.oneof<fc.Arbitrary<HandoffEvent>[]>(
      fc.record({ kind: fc.constant("sent" as const), at: fc.nat(20_000) }),
      fc.record({ kind: fc.constant("acknowledged" as const), ownerEpoch: fc.nat(3) }),
      fc.record({ kind: fc.constant("time" as const), at: fc.nat(40_000) }),
      fc.constantFrom(OURS, OURS, OURS, OTHERS, { kind: "released" as const }, { kind: "lost" as const }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const { state, effects } = run(events);
        const offers = effects.filter((effect) => effect === "offer").length;
        const reads = effects.filter((effect) => effect === "read").length;
        assert.ok(offers <= 3 && offers <= reads + 1);
        if (state.phase === "over") {
          const after = run([...events, OTHERS, { kind: "time", at: 1e9 }, OURS]);
          assert.deepEqual(after.state, state);
          assert.equal(after.effects.length, effects.length);
        }
      }),
    );
  });
});
