import assert from "node:assert/strict";
import { HOUR_MS, LEASE_MS, type Promises } from "../../support/store-world.ts";
import { column } from "../../support/columns.ts";

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
    assert.deepEqual(column(await world.recover(), "id"), [run.id]);
    assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, false);
  },

  "a lease that has run out with jobs under it is not revived by another claim, which is told so": async (
    world,
  ) => {
    const run = await world.running();
    await world.clock.advance(LEASE_MS + 1);
    const waiting = await world.submit();
    for (const opens of [false, true]) {
      const claimed = await world.store.jobs.claim(world.request({ opens }));
      assert.deepEqual([claimed.held, claimed.jobs], [false, []]);
    }
    assert.equal(await world.status(waiting), "queued");
    assert.ok((await world.recover()).some((job) => job.id === run.id));
  },

  "a lease that nobody has opened gives nothing to a claimant that may not open it": async (world) => {
    const id = await world.submit();
    const before = await world.job(id);
    const claimed = await world.store.jobs.claim(world.request({ opens: false }));
    assert.deepEqual([claimed.held, claimed.jobs], [false, []]);
    assert.deepEqual(await world.job(id), before);
    assert.deepEqual(await world.claimIds({ opens: true }), [id]);
  },

  "a lease that was ended does not come back for a claimant that believes to hold jobs under it": async (
    world,
  ) => {
    const run = await world.running();
    for (const end of [() => world.crash(), () => world.recover({ by: "everybody", except: "9" })]) {
      await end();
      const claimed = await world.store.jobs.claim(world.request({ opens: false, suspect: true }));
      assert.deepEqual([claimed.held, claimed.jobs], [false, []]);
      assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, false);
      assert.equal(await world.status(run.id), "queued");
      // One that has let everything go may begin anew under the same name.
      const again = await world.store.jobs.claim(world.request({ opens: true, suspect: true }));
      assert.deepEqual([again.held, again.jobs.map((job) => job.id)], [true, [run.id]]);
      assert.equal(await world.settle(run, { kind: "completed", result: "1" }), "stale");
    }
  },

  "a lease that ran out while it was idle is opened anew, but only by who holds nothing": async (world) => {
    await world.finish(await world.running());
    await world.clock.advance(LEASE_MS + 1);
    const id = await world.submit();
    const refused = await world.store.jobs.claim(world.request({ opens: false }));
    assert.deepEqual([refused.held, refused.jobs], [false, []]);
    const run = await world.again(id, { opens: true });
    assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, true);
    assert.deepEqual(await world.recover(), []);
    await world.finish(run);
  },

  "a lease that is held needs no opening, whether there is anything to claim or not": async (world) => {
    const run = await world.running();
    const empty = await world.store.jobs.claim(world.request({ opens: false }));
    assert.deepEqual([empty.held, empty.jobs], [true, []]);
    const next = await world.running({}, { opens: false });
    await world.finish(next);
    await world.finish(run);
  },
};
