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
