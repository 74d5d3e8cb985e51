import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  compareNames,
  judgePoll,
  judgePromises,
  judgeRenewal,
  majorityOf,
  type Heard,
  type PollAnswer,
  type PromiseAnswer,
  type Round,
} from "../../../../src/core/leadership/bully.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import {
  compareSets,
  foundSet,
  namesOf,
  removalOf,
  renumbered,
  withMember,
  withoutMember,
} from "../../../../src/core/leadership/peer-set.ts";

const name = (text: string): NodeName => text as NodeName;

function round<Answer>(
  answers: readonly Heard<Answer>[],
  more: Partial<Omit<Round<Answer>, "answers">> = {},
): Round<Answer> {
  const heard = new Map(answers.map((answer, i) => [name(`node-${i}`), answer]));
  return { quorum: "majority", voters: 3, awaited: [], over: false, ...more, answers: heard };
}

describe("the order of names", () => {
  test("is that of text, or of the numbers in them", () => {
    const sorted = (order: "text" | "natural") =>
      ["node9", "node10", "node1", "node2", "node"].sort((a, b) => compareNames(a, b, order));
    assert.deepEqual(sorted("text"), ["node", "node1", "node10", "node2", "node9"]);
    assert.deepEqual(sorted("natural"), ["node", "node1", "node2", "node9", "node10"]);
    assert.ok(
      compareNames("a9007199254740993", "a9007199254740992", "natural") > 0,
      "more digits than a number has",
    );
  });

  test("is a total order: of two different names one is higher, and never in a circle", () => {
    const names = fc.stringMatching(/^[a-z0-9]{1,6}$/);
    for (const order of ["text", "natural"] as const) {
      fc.assert(
        fc.property(names, names, names, (a, b, c) => {
          assert.equal(Math.sign(compareNames(a, b, order)), 0 - Math.sign(compareNames(b, a, order))); // no -0
          assert.equal(compareNames(a, b, order) === 0, a === b);
          if (compareNames(a, b, order) > 0 && compareNames(b, c, order) > 0)
            assert.ok(compareNames(a, c, order) > 0);
        }),
      );
    }
  });
});

describe("a round of questions", () => {
  const yes: PollAnswer = { willing: true, stands: false };
  const no: PollAnswer = { willing: false, stands: false };
  const stands: PollAnswer = { willing: true, stands: true };

  test("whoever is above us and stands goes first, however many are willing", () => {
    assert.equal(judgePoll(round([yes, yes, stands])), "stand back");
  });

  test("a candidate stands with a majority, when everybody above it that lives has answered", () => {
    assert.equal(judgePoll(round([yes])), null);
    assert.equal(judgePoll(round([yes, yes])), "stand");
    assert.equal(judgePoll(round([yes, yes], { awaited: [name("node-9")] })), null);
    assert.equal(judgePoll(round([yes, yes], { awaited: [name("node-9")], over: true })), "stand");
    assert.equal(judgePoll(round<PollAnswer>([yes, "refused", "refused"])), "hopeless");
    assert.equal(judgePoll(round([yes, no, no])), "hopeless");
    assert.equal(judgePoll(round([yes], { over: true })), "hopeless");
  });

  test("without a quorum one is enough, and one that knows a leader is too many", () => {
    const alone = { quorum: "none", over: true } as const;
    assert.equal(judgePoll(round([yes], alone)), "stand");
    assert.equal(judgePoll(round([yes, no], alone)), "hopeless");
    assert.equal(judgePromises(round(["granted"], alone)), "won");
    assert.equal(judgeRenewal(round(["acknowledged", "denied"], alone)), false);
  });

  test("a renewal is over only when no majority can acknowledge it any more", () => {
    assert.equal(judgeRenewal(round(["acknowledged", "acknowledged"])), true);
    assert.equal(judgeRenewal(round(["acknowledged", "denied"])), null);
    assert.equal(judgeRenewal(round(["acknowledged", "denied", "denied"])), false);
    assert.equal(judgeRenewal(round(["behind", "behind"])), false);
    assert.equal(
      judgeRenewal(round<"acknowledged">(["acknowledged", "refused", "refused"], { over: true })),
      null,
    );
  });

  test("two candidates never win with the promises of one and the same epoch", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.infiniteStream(fc.constantFrom(0, 1, 2)),
        (voters, to) => {
          // Each voter promises to one of two, or to nobody.
          const choices = [...to.take(voters)];
          const wins = [1, 2].map((who) => {
            const answers = choices.map((choice): PromiseAnswer => (choice === who ? "granted" : "denied"));
            return judgePromises(round(answers, { voters })) === "won";
          });
          assert.ok(!(wins[0] && wins[1]));
          assert.equal(wins[0], choices.filter((choice) => choice === 1).length >= majorityOf(voters));
        },
      ),
    );
  });
});

describe("the set of peers", () => {
  test("changes by one node, so that majorities before and after always share one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), (count) => {
        assert.ok(majorityOf(count) + majorityOf(count + 1) > count + 1);
      }),
    );
  });

  test("the same join does nothing, a new address is a change, a removal is remembered with its life", () => {
    const one = foundSet("c", name("a"), "http://a:1");
    assert.equal(withMember(one, name("a"), "http://a:1"), null);
    const moved = withMember(one, name("a"), "http://a:2")!;
    assert.ok(compareSets(moved, one) > 0);
    const two = withMember(moved, name("constructor"), "http://b:1")!;
    assert.deepEqual(namesOf(two), ["a", "constructor"]);
    assert.equal(withoutMember(one, { name: "constructor", incarnation: "x", why: "removed" }), null);
    const left = withoutMember(two, { name: "constructor", incarnation: "x", why: "removed" })!;
    assert.equal(removalOf(left, "constructor", "x"), "removed");
    assert.equal(removalOf(left, "constructor", "y"), null);
    assert.ok(compareSets(renumbered(one, 2), left) > 0, "a later leader's set is newer");
  });
});
