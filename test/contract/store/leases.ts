import assert from "node:assert/strict";
import type { Promises } from "../../support/store-world.ts";
import { HOUR_MS, LEASE_MS, lease, node } from "../../support/store-world.ts";

export const leasePromises: Promises = {
  "a renewed lease goes on, and every renewal counts from itself": async (world) => {
    const run = await world.running();
    for (let i = 0; i < 4; i++) {
      await world.clock.advance(LEASE_MS - 1);
      assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, true);
    }
    assert.deepEqual(await world.recover(), []);
    assert.equal(await world.status(run.id), "processing");
  },

  "a lease that has run out is not held and not revived by a renewal": async (world) => {
    const run = await world.running();
    await world.clock.advance(LEASE_MS + 1);
    assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, false);
    assert.equal((await world.store.jobs.renew(run.lease, HOUR_MS)).held, false);
    assert.deepEqual(
      (await world.recover()).map((job) => job.id),
      [run.id],
    );
    assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, false);
  },

  "a lease that has run out is not revived by another claim": async (world) => {
    const run = await world.running();
    await world.clock.advance(LEASE_MS + 1);
    await world.submit();
    await world.claim();
    assert.ok((await world.recover()).some((job) => job.id === run.id));
  },

  "a lease that nobody has is not held": async (world) => {
    await world.running();
    assert.deepEqual(await world.store.jobs.renew(lease("node-z/9"), LEASE_MS), {
      held: false,
      cancelled: [],
    });
  },

  "a later claim under the same lease keeps the earlier jobs": async (world) => {
    const first = await world.running();
    await world.clock.advance(LEASE_MS - 10);
    const second = await world.running();
    await world.clock.advance(LEASE_MS - 10);
    assert.deepEqual(await world.recover(), []);
    await world.finish(first);
    await world.finish(second);
  },

  "leases of different claimants run out on their own": async (world) => {
    const short = await world.running({}, { lease: lease("node-a/1"), leaseMs: 1_000 });
    const long = await world.running(
      {},
      { lease: lease("node-b/1"), leaseMs: 9_000, worker: node("node-b") },
    );
    await world.clock.advance(1_001);
    assert.deepEqual(
      (await world.recover()).map((job) => job.id),
      [short.id],
    );
    assert.equal(await world.status(long.id), "processing");
    assert.equal((await world.store.jobs.renew(long.lease, LEASE_MS)).held, true);
  },
};
