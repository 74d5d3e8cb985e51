/** What the elector does when time, the process or the lock misbehaves. The numbers are rows of the failure catalogue. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { Election, SETTINGS, type Stander } from "../../support/lock-election.ts";

const { leaseMs, marginMs, renewMs, retryMs } = SETTINGS;
const windowMs = leaseMs - marginMs;
const HOUR_MS = 3_600_000;

async function stopsInTime(election: Election, { elector }: Stander): Promise<void> {
  let stopped = false;
  const stopping = elector.stop().then(() => (stopped = true));
  await election.pass(windowMs - renewMs);
  assert.ok(stopped);
  await stopping;
}

describe("an elector whose process or clock misbehaves", () => {
  test("S03: paused for two leases, it knows at the first look that its term is over, and stands by", async () => {
    await using contest = await Election.contested();
    const { election, ada, bob } = contest;
    ada.clock.pause();
    await election.pass(2 * leaseMs);
    assert.equal(bob.elector.held()?.epoch, 2);
    assert.equal(ada.elector.held(), null, "it acts although no turn of its loop has run");
    ada.clock.resume();
    assert.equal(ada.elector.held(), null);
    await election.pass(0);
    assert.deepEqual(ada.heard, [1, null]);
    await election.pass(1.25 * retryMs);
    assert.deepEqual(ada.elector.current(), bob.elector.held());
    assert.deepEqual(bob.heard, [2]);
  });

  test("S05: paused for 0.4 of a lease, it keeps its term", async () => {
    await using contest = await Election.contested();
    const { election, ada, bob } = contest;
    for (let i = 0; i < 5; i++) {
      ada.clock.pause();
      await election.pass(0.4 * leaseMs);
      assert.deepEqual(ada.elector.held(), ada.term);
      ada.clock.resume();
      await election.pass(renewMs);
    }
    assert.deepEqual(ada.heard, [1]);
    assert.equal(bob.elector.held(), null);
  });

  test("S03: paused past the trust window but short of the lease, it stops acting before anybody else may", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.clock.pause();
    await election.pass(windowMs - 1);
    assert.deepEqual(ada.elector.held(), ada.term);
    await election.pass(1);
    assert.equal(ada.elector.held(), null);
    assert.deepEqual(await election.lock.read(), ada.term, "the lock still counts the term as valid");
  });

  for (const leap of [HOUR_MS, -HOUR_MS]) {
    test(`S08: a wall clock set by ${leap / HOUR_MS} h costs no term`, async () => {
      await using contest = await Election.contested();
      const { election, ada, bob } = contest;
      ada.clock.jumpWall(leap);
      bob.clock.jumpWall(-leap);
      // A leap ahead looks like a sleep: one confirmation, at the first look, settles it.
      ada.elector.held();
      await election.pass(0);
      assert.deepEqual(ada.elector.held(), ada.term);
      await election.pass(5 * leaseMs);
      assert.deepEqual(ada.elector.held(), ada.term);
      assert.deepEqual(ada.heard, [1]);
      assert.deepEqual(bob.heard, []);
    });
  }

  for (const rate of [1 / 1.3, 1.3]) {
    test(`S12: at a rate of ${rate.toFixed(2)} it never acts while another may be granted the lock`, async () => {
      await using election = new Election();
      const ada = await election.leader("ada", { rate });
      const bob = election.stander("bob", { rate: 1 });
      await bob.elector.start();
      await election.pass(3 * leaseMs);
      assert.deepEqual(ada.elector.held(), ada.term, "the rate alone must not cost the term");
      ada.lock.break("hangs", "renew", "acquire", "release");
      for (let ms = 0; ms < 2 * leaseMs; ms += 10) {
        await election.pass(10);
        if (ada.elector.held()) {
          assert.deepEqual(await election.lock.read(), ada.term, `acts after its lease, at ${ms} ms`);
        }
      }
      assert.equal(ada.elector.held(), null);
      assert.equal(bob.elector.held()?.epoch, 2);
    });
  }

  test("S12: a clock slower than the margin allows does act too long, which only the store's fence makes harmless", async () => {
    await using election = new Election();
    const ada = await election.leader("ada", { rate: 0.5 });
    ada.lock.break("hangs", "renew");
    await election.pass(leaseMs);
    assert.equal(await election.lock.read(), null);
    assert.ok(ada.elector.held());
  });

  test("S13: after a suspend it holds nothing until it has asked, and steps down when another leads", async () => {
    await using contest = await Election.contested();
    const { election, ada, bob } = contest;
    ada.clock.suspend();
    await election.pass(2 * leaseMs);
    assert.equal(bob.elector.held()?.epoch, 2);
    ada.clock.wake();
    assert.equal(ada.elector.held(), null, "its monotonic clock stood still, so only the wall tells");
    await election.pass(0);
    assert.deepEqual(ada.heard, [1, null]);
    await election.pass(1.25 * retryMs);
    assert.deepEqual(ada.elector.current(), bob.elector.held());
  });

  test("S13: a suspend is noticed at the next turn also when nobody looks", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.clock.suspend();
    await election.pass(2 * leaseMs);
    await granted(election.lock, candidate("bob"), leaseMs);
    ada.clock.wake();
    await election.pass(renewMs);
    assert.deepEqual(ada.heard, [1, null]);
  });

  test("S13: after a suspend a lock that cannot be asked ends the term", async () => {
    for (const fault of ["throws", "hangs"] as const) {
      await using election = new Election();
      const ada = await election.leader("ada");
      ada.clock.jumpWall(leaseMs);
      ada.lock.break(fault, "renew", "acquire");
      assert.equal(ada.elector.held(), null);
      await election.pass((windowMs - renewMs) / 2);
      assert.deepEqual(ada.heard, [1, null], fault);
    }
  });

  test("S13: a renewal sent before a suspend does not confirm the term after it", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("answers late", "renew");
    await election.pass(renewMs);
    assert.equal(ada.lock.calls.renew, 1);
    ada.clock.jumpWall(leaseMs);
    ada.lock.break("arrives late", "renew");
    ada.lock.answer();
    await election.pass(0);
    assert.equal(ada.lock.calls.renew, 2, "it asks again at once");
    assert.equal(ada.elector.held(), null);
    ada.lock.answer();
    await election.pass(0);
    assert.deepEqual(ada.elector.held(), ada.term);
  });
});

describe("an elector whose lock misbehaves", () => {
  test("S15: the reply of a renewal lost, it tries again and keeps its epoch", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("loses the reply", "renew");
    await election.pass(renewMs);
    assert.equal(ada.lock.calls.renew, 1);
    ada.lock.mend();
    await election.pass(windowMs);
    assert.deepEqual(ada.elector.held(), ada.term);
    assert.deepEqual(ada.heard, [1]);
  });

  for (const fault of ["throws", "hangs", "arrives late", "answers late"] as const) {
    test(`a renewal that ${fault} is tried again inside the window`, async () => {
      await using election = new Election();
      const ada = await election.leader("ada");
      ada.lock.break(fault, "renew");
      await election.pass(renewMs);
      ada.lock.mend();
      await election.pass(windowMs - renewMs);
      assert.deepEqual(ada.elector.held(), ada.term);
      assert.ok(ada.lock.calls.renew >= 2);
      ada.lock.answer();
      await election.pass(leaseMs);
      assert.deepEqual(ada.heard, [1]);
    });
  }

  test("trust counts from the sending of a renewal, not from its answer", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("answers late", "renew");
    await election.pass(renewMs);
    const sent = election.world.monotonic();
    await election.pass(500);
    ada.lock.break("hangs", "renew", "acquire");
    ada.lock.answer();
    await election.pass(sent + windowMs - 1 - election.world.monotonic());
    assert.deepEqual(ada.elector.held(), ada.term);
    await election.pass(1);
    assert.equal(ada.elector.held(), null);
  });

  test("a lock that hangs for ever costs the term when the window is over, and is asked again and again", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("hangs", "acquire", "renew", "release", "read");
    await election.pass(windowMs - 1);
    assert.deepEqual(ada.heard, [1]);
    await election.pass(1);
    assert.deepEqual(ada.heard, [1, null]);
    const before = ada.lock.calls.acquire;
    await election.pass(5 * leaseMs);
    assert.ok(ada.lock.calls.acquire > before + 3);
    assert.equal(ada.elector.held(), null);
    ada.lock.mend();
    await election.pass(leaseMs);
    assert.equal(ada.elector.held()?.epoch, 2);
  });

  test("a term that could not be confirmed is given back, so that the others need not wait for its end", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("loses the reply", "renew");
    ada.lock.break("throws", "acquire");
    await election.pass(windowMs);
    assert.deepEqual(ada.heard, [1, null]);
    assert.equal(await election.lock.read(), null);
  });

  test("the end of the window is heard in time also when the next try would be later", async () => {
    await using election = new Election();
    const ada = await election.leader("ada", { settings: { ...SETTINGS, retryMs: 450 } });
    ada.lock.break("throws", "renew", "acquire");
    await election.pass(windowMs - 1);
    assert.deepEqual(ada.heard, [1]);
    await election.pass(1);
    assert.deepEqual(ada.heard, [1, null]);
  });

  test("an answer that comes after the window does not revive the term", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("answers late", "renew");
    ada.lock.break("hangs", "acquire");
    await election.pass(windowMs);
    assert.deepEqual(ada.heard, [1, null]);
    ada.lock.answer();
    await election.pass(0);
    assert.equal(ada.elector.held(), null);
    assert.deepEqual(ada.heard, [1, null]);
  });

  test("an answer that lay there while the thread was held up past the window does not revive the term", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("answers late", "renew");
    ada.lock.break("hangs", "acquire");
    await election.pass(renewMs);
    ada.clock.pause();
    // Past the window, yet within the one that this renewal would have opened.
    await election.pass(windowMs - renewMs + 500);
    ada.lock.answer();
    await election.pass(0);
    assert.equal(ada.elector.held(), null);
    assert.deepEqual(ada.heard, [1, null]);
  });

  test("a grant that lay there while the thread was held up past the window is given back", async () => {
    await using election = new Election();
    const ada = election.stander("ada");
    ada.lock.break("answers late", "acquire");
    await ada.elector.start();
    await election.pass(0);
    ada.clock.pause();
    await election.pass(windowMs);
    ada.lock.break("throws", "acquire");
    ada.lock.answer();
    await election.pass(0);
    assert.deepEqual(ada.heard, []);
    assert.equal(await election.lock.read(), null);
  });

  test("a renewal refused ends the term at once", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    await election.lock.release(ada.term);
    const bob = await granted(election.lock, candidate("bob"), leaseMs);
    await election.pass(renewMs);
    assert.deepEqual(ada.heard, [1, null]);
    assert.equal(ada.elector.held(), null);
    assert.deepEqual(ada.elector.current(), bob);
    assert.deepEqual(await election.lock.read(), bob, "the later term was touched");
  });

  test("a lost term is competed for again", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    await election.lock.release(ada.term);
    await granted(election.lock, candidate("bob"), leaseMs);
    await election.pass(leaseMs + 1.25 * retryMs);
    assert.equal(ada.elector.held()?.epoch, 3);
    assert.deepEqual(ada.heard, [1, null, 3]);
  });

  test("a grant whose reply is late is given back in the background", async () => {
    await using election = new Election();
    const ada = election.stander("ada");
    ada.lock.break("answers late", "acquire");
    await ada.elector.start();
    await election.pass(0);
    ada.lock.break("throws", "acquire");
    await election.pass((windowMs - renewMs) / 2);
    assert.equal((await election.lock.read())?.leader, "ada");
    ada.lock.answer();
    await election.pass(0);
    assert.equal(await election.lock.read(), null);
    assert.equal(ada.elector.held(), null);
    assert.deepEqual(ada.heard, []);
  });

  test("a grant whose reply was lost blocks nobody for longer than a lease", async () => {
    await using election = new Election();
    const ada = election.stander("ada");
    const bob = election.stander("bob");
    ada.lock.break("loses the reply", "acquire");
    await ada.elector.start();
    await election.pass(0);
    ada.lock.break("throws", "acquire");
    await bob.elector.start();
    await election.pass(leaseMs + 1.25 * retryMs);
    assert.equal(bob.elector.held()?.epoch, 2);
  });

  test("a stop while a grant is on its way gives it back before it resolves", async () => {
    await using election = new Election();
    const ada = election.stander("ada");
    ada.lock.break("answers late", "acquire");
    await ada.elector.start();
    await election.pass(0);
    assert.equal((await election.lock.read())?.leader, "ada");
    let stopped = false;
    const stopping = ada.elector.stop().then(() => (stopped = true));
    await election.pass(0);
    assert.equal(stopped, false);
    ada.lock.answer();
    await stopping;
    assert.equal(await election.lock.read(), null);
    assert.deepEqual(ada.heard, []);
  });

  for (const fault of ["throws", "hangs"] as const) {
    test(`a release that ${fault} holds up no stop, and is logged, not thrown`, async () => {
      await using election = new Election();
      const ada = await election.leader("ada");
      ada.lock.break(fault, "release");
      await stopsInTime(election, ada);
      assert.ok(ada.logged.some((line) => line.includes("could not release")));
    });
  }

  test("while nothing answers, a stop still comes to its end", async () => {
    await using election = new Election();
    const ada = await election.leader("ada");
    ada.lock.break("hangs", "acquire", "renew", "release", "read");
    await election.pass(leaseMs);
    await stopsInTime(election, ada);
  });
});
