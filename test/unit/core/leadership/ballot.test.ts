import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  BLANK,
  decidePromise,
  decideRelease,
  decideRenewal,
  EPOCH_STEP_MAX,
  holderOf,
  recollect,
  voteAfterRestart,
  type Ballot,
  type HeldTerm,
  type Memory,
  type Vote,
} from "../../../../src/core/leadership/vote-rules.ts";
import { candidate } from "../../../support/lock-candidates.ts";

const ada = candidate("ada");
const bob = candidate("bob");
const TTL = 1_000;
const blank: Vote = { ...BLANK, until: -Infinity };

function promised(who = ada, epoch = 3, at = 0): Vote {
  return { epoch, to: who, ttlMs: TTL, released: false, until: at + TTL };
}

function ask(vote: Vote, who: typeof ada, epoch: number, at: number) {
  return decidePromise(vote, { candidate: who, epoch, ttlMs: TTL }, at, holderOf(vote, at));
}

describe("a ballot", () => {
  test("promises a higher epoch when no lease is valid, and only to one", () => {
    assert.equal(ask(blank, ada, 1, 0).answer, "granted");
    assert.deepEqual(ask(promised(), bob, 4, TTL - 1), { answer: "denied", why: "leased" });
    assert.equal(ask(promised(), bob, 4, TTL).answer, "granted");
    assert.deepEqual(ask(promised(), bob, 3, TTL), { answer: "denied", why: "promised" });
    assert.deepEqual(ask(promised(), ada, 2, TTL), { answer: "denied", why: "promised" });
    assert.equal(ask(promised(), ada, 4, 1).answer, "granted", "the holder may ask for a new term");
  });

  test("a question that comes twice gets the same answer and no longer lease", () => {
    const answer = ask(promised(), ada, 3, 900);
    assert.ok(answer.answer === "granted" && answer.vote.until === TTL);
  });

  test("a promise that was given back is not given again, not even when the question is late", () => {
    const released = decideRelease(promised(), { ...ada, epoch: 3 }, 10);
    assert.equal(holderOf(released, 10), null);
    assert.equal(ask(released, ada, 3, 20).answer, "denied");
    assert.equal(ask(released, bob, 3, 20).answer, "denied");
    assert.equal(ask(released, bob, 4, 20).answer, "granted");
  });

  test("a release that overtakes its promise takes the promise with it", () => {
    const over = decideRelease(blank, { ...ada, epoch: 1 }, 0);
    assert.equal(ask(over, ada, 1, 5).answer, "denied");
    // A valid lease is somebody else's, and stays.
    assert.equal(decideRelease(promised(), { ...bob, epoch: 4 }, 5).until, TTL);
  });

  test("an epoch far above all others is refused, whoever asks", () => {
    const far = 3 + EPOCH_STEP_MAX + 1;
    assert.deepEqual(ask(promised(), ada, far, TTL), { answer: "denied", why: "far" });
    const renewal = { term: { ...ada, epoch: far }, ttlMs: TTL, granted: true };
    assert.deepEqual(decideRenewal(promised(), renewal, 0), { answer: "denied", why: "far" });
    assert.equal(decideRelease(promised(ada, 3, -TTL), { ...ada, epoch: far }, 5).epoch, 3);
  });

  test("a term that a majority granted is taken over by a voter that missed it; an unproven one is not", () => {
    const term: HeldTerm = { ...bob, epoch: 9 };
    assert.equal(decideRenewal(promised(), { term, ttlMs: TTL, granted: false }, 0).answer, "behind");
    const taken = decideRenewal(promised(), { term, ttlMs: TTL, granted: true }, 0);
    assert.ok(taken.answer === "acknowledged" && taken.durable && taken.vote.epoch === 9);
  });

  test("after a restart a whole lease is waited for, except for our own earlier life's", () => {
    const ballot: Ballot = { epoch: 3, to: ada, ttlMs: TTL, released: false };
    assert.equal(voteAfterRestart(ballot, "bob", 50).until, 50 + TTL);
    assert.equal(voteAfterRestart(ballot, "ada", 50).until, -Infinity);
    assert.equal(voteAfterRestart({ ...ballot, released: true }, "bob", 50).until, -Infinity);
  });

  test("whatever is asked, no epoch is promised to two and epochs never go back", () => {
    const step = fc.record({
      what: fc.constantFrom("promise", "renew", "release", "restart"),
      who: fc.constantFrom(ada, candidate("ada", "ada/2"), bob),
      epoch: fc.integer({ min: 1, max: 6 }),
      granted: fc.boolean(),
      passes: fc.integer({ min: 0, max: 800 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let vote = blank;
        let at = 0;
        // A majority grants an epoch to one; the model lets the first who claims it be that one.
        const granted = new Map<number, string>();
        const given = new Map<number, string>();
        for (const { what, who, epoch, granted: claims, passes } of steps) {
          at += passes;
          const before = vote.epoch;
          const term = { ...who, epoch };
          const known = given.get(epoch) ?? granted.get(epoch) ?? who.incarnation;
          if (what === "promise") {
            const decision = ask(vote, who, epoch, at);
            if (decision.answer === "granted") {
              vote = decision.vote;
              assert.equal(given.get(epoch) ?? who.incarnation, who.incarnation, "promised to two");
              given.set(epoch, who.incarnation);
            }
          } else if (what === "renew") {
            const proven = claims && known === who.incarnation;
            if (proven) granted.set(epoch, who.incarnation);
            const decision = decideRenewal(vote, { term, ttlMs: TTL, granted: proven }, at);
            if (decision.answer === "acknowledged") {
              vote = decision.vote;
              given.set(epoch, who.incarnation);
            }
          } else if (what === "release") vote = decideRelease(vote, term, at);
          else vote = voteAfterRestart(vote, "cyd", at);
          assert.ok(vote.epoch >= before, "an epoch went back");
        }
      }),
    );
  });
});

describe("a voter without memory", () => {
  const at = (epoch: number): { votes: boolean; ballot: Ballot } => ({
    votes: true,
    ballot: { epoch, to: epoch > 0 ? ada : null, ttlMs: TTL, released: false },
  });
  const memory: Memory = { voters: 3, others: [], upMs: 0, leader: BLANK, leaderHeardMs: 0, leaseMs: TTL };

  test("votes at once in a cluster that begins, when a majority is there", () => {
    assert.equal(recollect(memory), null);
    assert.equal(recollect({ ...memory, others: [{ ...at(0), votes: false }] })?.epoch, 0);
    assert.equal(recollect({ ...memory, voters: 5, others: [at(0)] }), null);
  });

  test("waits for so many that one of them was in every majority it may have been part of, and for a lease", () => {
    const later = { ...memory, upMs: TTL };
    assert.equal(recollect({ ...later, others: [at(4)] }), null);
    assert.equal(recollect({ ...memory, others: [at(4), at(7)] }), null);
    assert.equal(recollect({ ...later, others: [at(4), at(7)] })?.epoch, 7);
    assert.equal(
      recollect({ ...later, others: [at(4), { ...at(7), votes: false }] }),
      null,
      "one has forgotten too",
    );
  });

  test("or until it has heard one leader for a whole lease", () => {
    const heard = { ...memory, others: [at(4)], leader: at(9).ballot };
    assert.equal(recollect({ ...heard, leaderHeardMs: TTL - 1 }), null);
    assert.equal(recollect({ ...heard, leaderHeardMs: TTL })?.epoch, 9);
  });
});
