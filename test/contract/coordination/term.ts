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
  "a renewal and a release are for the very term, and for another one they do nothing": async (world) => {
    const { lock, ttlMs, elapse } = world;
    const term = await granted(lock, ada, ttlMs);
    await elapse(ttlMs * 0.6);
    for (const [difference, impostor] of Object.entries(impostors(term))) {
      assert.equal(await lock.renew(impostor, ttlMs), false, difference);
      await lock.release(impostor);
      assert.deepEqual(await lock.read(), term, difference);
    }
    await elapse(ttlMs * 0.6);
    assert.equal(await lock.read(), null, "nothing was prolonged");
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
