import assert from "node:assert/strict";
import type { Term } from "../../../src/core/leadership/term.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import type { LockWorld } from "../../support/lock-world.ts";
import type { Promises } from "../promises.ts";

const ada = candidate("ada");
const bob = candidate("bob");

/** Each differs from the term in one thing that makes it another. */
function impostors(term: Term): Record<string, Term> {
  return {
    "another name": { ...term, leader: bob.name },
    "another incarnation": { ...term, incarnation: "ada/2" },
    "an older epoch": { ...term, epoch: term.epoch - 1 },
    "a newer epoch": { ...term, epoch: term.epoch + 1 },
  };
}

export const termPromises: Promises<LockWorld> = {
  "a renewal is for the very term: name, incarnation and epoch": async ({ lock, ttlMs }) => {
    const term = await granted(lock, ada, ttlMs);
    for (const [difference, impostor] of Object.entries(impostors(term))) {
      assert.equal(await lock.renew(impostor, ttlMs), false, difference);
    }
    assert.deepEqual(await lock.read(), term);
    assert.equal(await lock.renew(term, ttlMs), true);
  },

  "a refused renewal prolongs nothing": async ({ lock, ttlMs, elapse }) => {
    const term = await granted(lock, ada, ttlMs);
    await elapse(ttlMs * 0.6);
    for (const impostor of Object.values(impostors(term))) await lock.renew(impostor, ttlMs);
    await elapse(ttlMs * 0.6);
    assert.equal(await lock.read(), null);
  },

  "a term that ran out and was granted anew cannot be renewed": async ({ lock, ttlMs, elapse }) => {
    const old = await granted(lock, ada, ttlMs);
    await elapse(ttlMs * 1.2);
    const next = await granted(lock, bob, ttlMs);
    assert.equal(await lock.renew(old, ttlMs), false);
    assert.deepEqual(await lock.read(), next);
    assert.equal(await lock.renew(next, ttlMs), true);
  },

  "a released term cannot be renewed": async ({ lock, ttlMs }) => {
    const term = await granted(lock, ada, ttlMs);
    await lock.release(term);
    assert.equal(await lock.renew(term, ttlMs), false);
    assert.equal(await lock.read(), null);
  },

  "a release of an earlier term leaves the later one alone": async ({ lock, ttlMs, elapse }) => {
    const old = await granted(lock, ada, ttlMs);
    await elapse(ttlMs * 1.2);
    const next = await granted(lock, ada, ttlMs);
    await lock.release(old);
    assert.deepEqual(await lock.read(), next);
    assert.equal(await lock.renew(next, ttlMs), true);
  },

  "a release is for the very term: name, incarnation and epoch": async ({ lock, ttlMs }) => {
    const term = await granted(lock, ada, ttlMs);
    for (const [difference, impostor] of Object.entries(impostors(term))) {
      await lock.release(impostor);
      assert.deepEqual(await lock.read(), term, difference);
    }
  },

  "a second release does nothing, also when somebody else leads by then": async ({ lock, ttlMs }) => {
    const term = await granted(lock, ada, ttlMs);
    await lock.release(term);
    await lock.release(term);
    const next = await granted(lock, bob, ttlMs);
    await lock.release(term);
    assert.deepEqual(await lock.read(), next);
  },

  "a lease that ran out is not shown as a term": async ({ lock, ttlMs, elapse }) => {
    const term = await granted(lock, ada, ttlMs);
    await elapse(ttlMs * 0.4);
    assert.deepEqual(await lock.read(), term);
    await elapse(ttlMs * 0.8);
    assert.equal(await lock.read(), null);
  },

  "a tenure is the term with the times of its grant and of its lease's end": async ({
    lock,
    ttlMs,
    elapse,
  }) => {
    assert.equal(await lock.tenure(), null, "before the first grant");
    const term = await granted(lock, ada, ttlMs);
    const first = await lock.tenure();
    assert.ok(first);
    const { acquiredAt, leaseUntil, ...rest } = first;
    assert.deepEqual(rest, term);
    assert.equal(leaseUntil - acquiredAt, ttlMs);

    await elapse(ttlMs * 0.6);
    await lock.renew(term, ttlMs);
    const renewed = await lock.tenure();
    assert.equal(renewed?.acquiredAt, acquiredAt, "a renewal is no grant");
    assert.ok(renewed.leaseUntil >= leaseUntil + ttlMs * 0.5);

    await lock.release(term);
    assert.equal(await lock.tenure(), null, "after the release");
    await granted(lock, bob, ttlMs);
    const next = await lock.tenure();
    assert.ok(next && next.leader === bob.name && next.acquiredAt > acquiredAt);
    await elapse(ttlMs * 1.2);
    assert.equal(await lock.tenure(), null, "after it ran out");
  },
};
