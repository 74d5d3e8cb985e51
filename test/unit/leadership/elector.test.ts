import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Elector } from "../../../src/leadership/elector.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { candidate } from "../../support/lock-candidates.ts";
import { Election, SETTINGS } from "../../support/lock-election.ts";
import { MemoryLeaseLock } from "../../support/lock-memory.ts";
import { ROLE } from "../../support/lock-world.ts";

const { leaseMs, renewMs, retryMs } = SETTINGS;

describe("an elector", () => {
  test("leads at once when nobody else does", async () => {
    await using election = new Election();
    const { elector, term } = await election.leader("ada");
    assert.deepEqual(term, { role: ROLE, leader: "ada", incarnation: "ada/1", epoch: 1 });
    assert.deepEqual(elector.held(), term);
    assert.deepEqual(elector.current(), term);
  });

  test("holds nothing before its start and after its stop", async () => {
    await using election = new Election();
    const { elector, heard } = election.stander("ada");
    assert.equal(elector.held(), null);
    await elector.start();
    await election.pass(0);
    assert.ok(elector.held());
    await elector.stop();
    assert.equal(elector.held(), null);
    assert.equal(elector.current(), null);
    await election.pass(0);
    assert.deepEqual(heard, [1, null]);
    assert.equal(await election.lock.read(), null, "the term was not released");
  });

  test("of two, one leads; the other knows who and says so", async () => {
    await using contest = await Election.contested();
    const { election, ada, bob } = contest;
    await election.pass(10 * leaseMs);
    assert.deepEqual(ada.elector.held(), ada.term);
    assert.equal(bob.elector.held(), null);
    assert.deepEqual(bob.elector.current(), ada.term);
    assert.throws(
      () => bob.elector.require(),
      (error: unknown) => {
        assert.ok(hasCode(error, "NOT_LEADER"));
        assert.deepEqual({ ...error.details }, { role: ROLE, leader: "ada", epoch: 1 });
        return true;
      },
    );
  });

  test("keeps its term as long as renewals are acknowledged, with one of them under way at a time", async () => {
    await using election = new Election();
    const { elector, term, lock, heard } = await election.leader("ada");
    for (let i = 0; i < 100; i++) {
      await election.pass(leaseMs / 8);
      assert.deepEqual(elector.held(), term);
    }
    assert.equal(lock.inFlightMax.renew, 1);
    assert.equal(lock.calls.acquire, 1);
    assert.deepEqual(heard, [1]);
  });

  test("takes over from a dead leader when its lease has run out, and not before", async () => {
    await using contest = await Election.contested();
    const { election, ada, bob } = contest;
    ada.clock.pause();
    await election.pass(leaseMs - 1);
    assert.equal(bob.elector.held(), null);
    await election.pass(1 + 1.25 * retryMs);
    assert.equal(bob.elector.held()?.epoch, 2);
  });

  test("takes over without any delay when the leader stops, because the release is hinted at", async () => {
    await using contest = await Election.contested();
    const { election, ada, bob } = contest;
    await election.pass(retryMs / 10);
    const before = election.world.monotonic();
    await ada.elector.stop();
    await election.pass(0);
    assert.equal(bob.elector.held()?.epoch, 2);
    assert.equal(election.world.monotonic(), before);
  });

  test("does not miss a hint that comes while it is asking", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    const bob = election.stander("bob");
    bob.lock.break("answers late", "acquire");
    await bob.elector.start();
    await election.pass(0);
    bob.lock.mend();
    await ada.elector.stop();
    bob.lock.answer();
    await election.pass(0);
    assert.equal(bob.elector.held()?.epoch, 2);
  });

  test("renews at once at a hint while it leads, and steps down at once if the term is over", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    await election.pass(renewMs / 2);
    assert.equal(ada.lock.calls.renew, 0);
    ada.lock.hint();
    await election.pass(0);
    assert.equal(ada.lock.calls.renew, 1);
    assert.deepEqual(ada.elector.held(), ada.term, "a hint alone ends nothing");
    await election.pass(renewMs - 1);
    assert.equal(ada.lock.calls.renew, 1, "the next one is due a whole interval later");

    await election.lock.release(ada.term);
    await election.pass(0);
    assert.equal(ada.lock.calls.renew, 2);
    assert.deepEqual(ada.heard.slice(0, 2), [1, null]);
  });

  test("answers a storm of hints with one renewal at a time", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("answers late", "renew");
    for (let hints = 0; hints < 50; hints++) {
      ada.lock.hint();
      await election.pass(0);
    }
    assert.equal(ada.lock.calls.renew, 1);
    ada.lock.mend();
    ada.lock.answer();
    await election.pass(0);
    assert.equal(ada.lock.calls.renew, 2, "hints that came meanwhile are answered together");
    assert.deepEqual(ada.elector.held(), ada.term);
  });

  test("trusts its term no longer because a renewal that was hinted at failed, and no shorter", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("throws", "renew", "acquire");
    ada.lock.hint();
    const { marginMs } = SETTINGS;
    await election.pass(leaseMs - marginMs - 1);
    assert.deepEqual(ada.elector.held(), ada.term);
    await election.pass(1);
    assert.equal(ada.elector.held(), null);
  });

  test("goes on polling when the lock gives no hints, or breaks while giving them", async () => {
    for (const hints of ["none", "throws"]) {
      const clock = new ManualClock();
      const lock = new (class extends MemoryLeaseLock {
        // oxlint-disable-next-line require-yield
        override async *released(): AsyncGenerator<void> {
          if (hints === "throws") throw new Error("no subscription");
        }
      })(ROLE, clock);
      const holder = await lock.acquire(candidate("zoe"), leaseMs);
      const options = { lock, clock, role: ROLE, random: seededRandom(1), settings: SETTINGS };
      await using elector = new Elector({ ...options, identity: candidate("ada") });
      await elector.start();
      await clock.advance(retryMs);
      assert.equal(elector.held(), null);
      await lock.release(holder!);
      await clock.advance(1.25 * retryMs);
      assert.equal(elector.held()?.epoch, 2, hints);
    }
  });

  test("tries at intervals that are spread, so that standbys do not ask in step", async () => {
    await using election = new Election();
    await election.leader("ada");
    const bob = election.stander("bob");
    const cyd = election.stander("cyd");
    const asked: Record<string, Set<number>> = { bob: new Set(), cyd: new Set() };
    await Promise.all([bob.elector.start(), cyd.elector.start()]);
    let seen = { bob: 0, cyd: 0 };
    for (let ms = 0; ms < 8 * retryMs; ms += 10) {
      await election.pass(10);
      if (bob.lock.calls.acquire > seen.bob) asked["bob"]!.add(ms);
      if (cyd.lock.calls.acquire > seen.cyd) asked["cyd"]!.add(ms);
      seen = { bob: bob.lock.calls.acquire, cyd: cyd.lock.calls.acquire };
    }
    assert.ok(seen.bob >= 6 && seen.bob <= 12, `asked ${seen.bob} times in 8 intervals`);
    assert.notDeepEqual(asked["bob"], asked["cyd"]);
  });

  test("asks less often where changes come as hints, and still at once at a hint", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    const bob = election.stander("bob");
    Object.assign(bob.lock, { quietMs: () => 4 * retryMs });
    await bob.elector.start();
    await election.pass(20 * retryMs);
    const { acquire } = bob.lock.calls;
    assert.ok(acquire >= 4 && acquire <= 8, `asked ${acquire} times in 20 intervals`);
    await ada.elector.stop();
    await election.pass(0);
    assert.equal(bob.elector.held()?.epoch, 2);
  });

  test("lets the others try first after it resigned", async () => {
    await using contest = await Election.contested();
    const { election, ada, bob } = contest;
    await election.pass(0);
    await ada.elector.resign();
    assert.equal(ada.elector.held(), null);
    await election.pass(0);
    assert.equal(bob.elector.held()?.epoch, 2);
    await election.pass(3 * leaseMs);
    assert.equal(bob.elector.held()?.epoch, 2);
    assert.deepEqual(ada.elector.current(), bob.elector.held());
    assert.deepEqual(ada.heard, [1, null]);
  });

  test("leads again under a new epoch when it resigned and nobody else stood", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    await ada.elector.resign();
    await election.pass(retryMs);
    assert.equal(ada.elector.held(), null);
    await election.pass(2 * retryMs);
    assert.equal(ada.elector.held()?.epoch, 2);
    assert.deepEqual(ada.heard, [1, null, 2]);
  });

  test("takes a resignation without a term for nothing", async () => {
    await using contest = await Election.contested();
    const { election, ada, bob } = contest;
    await bob.elector.resign();
    await election.pass(0);
    await ada.elector.stop();
    await election.pass(0);
    assert.equal(bob.elector.held()?.epoch, 2);
  });

  test("tells every change to every follower, in order and none merged, however slowly it reads", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    const over = new AbortController();
    const slow = ada.elector.changes(over.signal)[Symbol.asyncIterator]();
    const other = ada.elector.changes(over.signal)[Symbol.asyncIterator]();
    for (let i = 0; i < 3; i++) {
      await ada.elector.resign();
      await election.pass(3 * retryMs);
    }
    over.abort();
    const expected = [1, null, 2, null, 3, null, 4];
    assert.deepEqual(await epochs(slow), expected);
    assert.deepEqual(await epochs(other), expected);
    assert.deepEqual(ada.heard, expected);
  });

  test("tells the end of a term before the lock is asked to release it", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("arrives late", "release");
    const stopping = ada.elector.stop();
    await election.pass(0);
    assert.deepEqual(ada.heard, [1, null]);
    assert.ok(await election.lock.read(), "released before the followers were heard");
    ada.lock.answer();
    await stopping;
  });

  test("follows no more when the follower breaks off", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    const over = new AbortController();
    for await (const term of ada.elector.changes(over.signal)) {
      assert.equal(term?.epoch, 1);
      break;
    }
    const ended = AbortSignal.abort();
    assert.deepEqual(await epochs(ada.elector.changes(ended)[Symbol.asyncIterator]()), [1]);
  });

  for (const [title, settings, field] of [
    ["a lease that renewal and margin use up", { ...SETTINGS, leaseMs: 2_000 }, "leaseMs"],
    ["a renewal interval of nothing", { ...SETTINGS, renewMs: 0 }, "renewMs"],
    ["a retry interval that is no number", { ...SETTINGS, retryMs: Number.NaN }, "retryMs"],
    ["a margin below nothing", { ...SETTINGS, marginMs: -1 }, "marginMs"],
  ] as const) {
    test(`refuses ${title}, and names the field`, () => {
      const election = new Election();
      assert.throws(
        () => election.stander("ada", { settings }),
        (error: unknown) => hasCode(error, "BAD_CONFIG") && error.details.field === field,
      );
    });
  }

  lifecycleStress("the elector", async () => {
    const clock = new ManualClock();
    const elector = new Elector({
      lock: new MemoryLeaseLock(ROLE, clock),
      identity: candidate("ada"),
      role: ROLE,
      clock,
      random: seededRandom(1),
      settings: SETTINGS,
    });
    return {
      service: elector,
      works: async () => {
        await clock.advance(2 * retryMs);
        elector.require();
      },
      close: async () => assert.equal(clock.waiting, 0, "a timer is left behind"),
    };
  });
});

async function epochs(changes: AsyncIterator<Term | null>): Promise<(number | null)[]> {
  const heard: (number | null)[] = [];
  for (;;) {
    const next = await changes.next();
    if (next.done) return heard;
    heard.push(next.value?.epoch ?? null);
  }
}
