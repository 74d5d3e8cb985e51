import assert from "node:assert/strict";
import { systemClock } from "../../../src/platform/clock.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { ROLE, type LockWorld } from "../../support/lock-world.ts";
import type { Promises } from "../promises.ts";

const ada = candidate("ada");
const bob = candidate("bob");

export const grantPromises: Promises<LockWorld> = {
  "a free lock is granted to whoever asks, in its own name": async ({ lock, ttlMs }) => {
    const term = await granted(lock, ada, ttlMs);
    const { epoch, ...rest } = term;
    assert.deepEqual(rest, { role: ROLE, leader: "ada", incarnation: "ada/1" });
    assert.ok(Number.isSafeInteger(epoch) && epoch >= 1, `epoch ${epoch}`);
  },

  "while a lease is valid nobody else is granted one": async ({ lock, ttlMs, elapse }) => {
    const term = await granted(lock, ada, ttlMs);
    assert.equal(await lock.acquire(bob, ttlMs), null);
    await elapse(ttlMs * 0.4);
    assert.equal(await lock.acquire(bob, ttlMs), null);
    assert.equal(await lock.acquire(candidate("ada", "ada/2"), ttlMs), null, "a later life is somebody else");
    assert.deepEqual(await lock.read(), term);
  },

  "a renewed lease keeps the others out beyond its first end": async ({ lock, ttlMs, elapse }) => {
    const term = await granted(lock, ada, ttlMs);
    for (let i = 0; i < 3; i++) {
      await elapse(ttlMs * 0.6);
      assert.equal(await lock.renew(term, ttlMs), true);
    }
    assert.equal(await lock.acquire(bob, ttlMs), null);
  },

  "a lease that ran out is granted to the next candidate under a higher epoch": async (world) => {
    const { lock, ttlMs, elapse } = world;
    const first = await granted(lock, ada, ttlMs);
    await elapse(ttlMs * 1.2);
    const second = await granted(lock, bob, ttlMs);
    assert.ok(second.epoch > first.epoch);
    assert.deepEqual(await lock.read(), second);
  },

  "a holder that asks again gets a new term, and its earlier one is over": async ({ lock, ttlMs }) => {
    const first = await granted(lock, ada, ttlMs);
    const second = await granted(lock, ada, ttlMs);
    assert.ok(second.epoch > first.epoch);
    assert.equal(await lock.renew(first, ttlMs), false);
    assert.equal(await lock.renew(second, ttlMs), true);
  },

  "an epoch is never given out twice: not after a release, an expiry or a restart": async (world) => {
    const { ttlMs } = world;
    let lock = world.lock;
    let highest = 0;
    for (let i = 0; i < 4; i++) {
      for (const end of ["release", "expiry", "restart"] as const) {
        const term = await granted(lock, i % 2 ? ada : bob, ttlMs);
        assert.ok(term.epoch > highest, `epoch ${term.epoch} after ${highest}`);
        highest = term.epoch;
        if (end === "release") await lock.release(term);
        if (end !== "release") await world.elapse(ttlMs * 1.2);
        if (end === "restart") lock = await world.reopen();
      }
    }
  },

  "a release is hinted at to whoever listens": async ({ lock, ttlMs }) => {
    const over = new AbortController();
    const hints = lock.released(over.signal)[Symbol.asyncIterator]();
    const hint = hints.next();
    await lock.release(await granted(lock, ada, ttlMs));
    const silence = systemClock.sleep(2_000, over.signal).then(() => "silence" as const);
    const first = await Promise.race([hint, silence]);
    over.abort();
    assert.deepEqual(first, { done: false, value: undefined });
  },

  "listening for hints ends with its signal": async ({ lock }) => {
    const over = new AbortController();
    const listening = (async () => {
      for await (const _ of lock.released(over.signal));
    })();
    over.abort();
    const limit = new AbortController();
    const verdict = await Promise.race([
      listening.then(() => "ended"),
      systemClock.sleep(2_000, limit.signal).then(() => "goes on"),
    ]);
    limit.abort();
    assert.equal(verdict, "ended");
  },
};
