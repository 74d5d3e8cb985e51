import assert from "node:assert/strict";
import type { ClaimedJob, Recovered } from "../../../src/store/store.ts";
import { HOUR_MS, type Promises, type StoreWorld } from "../../support/store-world.ts";
import { plain } from "../../support/columns.ts";

const GRACE_MS = 30_000;
const TIMEOUT_MS = 5_000;

function overdue(world: StoreWorld): Promise<readonly Recovered[]> {
  return world.recover({ by: "overdue", graceMs: GRACE_MS });
}

/** Time passes, and the worker renews its lease all the while. */
async function alive(world: StoreWorld, run: ClaimedJob, ms: number): Promise<void> {
  assert.equal((await world.store.jobs.renew(run.lease, 24 * HOUR_MS)).held, true);
  await world.clock.advance(ms);
}

/** Runs that go on, and on, under a lease that is renewed. */
export const overduePromises: Promises = {
  "a run that goes on past its timeout and the grace is taken away, though its lease is renewed": async (
    world,
  ) => {
    const run = await world.running({ timeoutMs: TIMEOUT_MS }, { worker: "node-a#7" });
    await alive(world, run, TIMEOUT_MS + GRACE_MS - 1);
    assert.deepEqual(await overdue(world), []);
    assert.equal(await world.status(run.id), "processing");
    await alive(world, run, 1);
    const behind = await world.submit();
    const waits = await world.submit({ timeoutMs: 1, priority: -1 });
    assert.deepEqual(plain(await overdue(world)), [
      { id: run.id, worker: "node-a#7", status: "queued", failures: 1, interruptions: 0, crashes: 0 },
    ]);
    const job = await world.job(run.id);
    assert.deepEqual([job.status, job.worker, job.startedAt], ["queued", null, null]);
    assert.deepEqual([job.attempts, job.failures, job.interruptions, job.crashes], [1, 1, 0, 0]);
    assert.deepEqual([job.runAt, job.updatedAt], [world.clock.now(), world.clock.now()], "due at once");
    assert.equal(job.leaderEpoch, (await world.term()).epoch);
    assert.equal(job.error?.code, "TIMEOUT");
    assert.match(job.error.message, /5000 ms.*node-a#7/);
    assert.deepEqual(job.killed, []);
    assert.deepEqual(await world.counts(), { queued: 3 });
    assert.deepEqual(await overdue(world), [], "it is found once");
    assert.deepEqual(new Set(await world.claimIds({ limit: 2 })), new Set([run.id, behind]));
    assert.deepEqual(await world.claimIds(), [waits]);
  },

  "the time counts from the start of the run, and not from an earlier one": async (world) => {
    const first = await world.running({ timeoutMs: TIMEOUT_MS, delayMs: 0 });
    await alive(world, first, TIMEOUT_MS + GRACE_MS - 1);
    await world.settle(first, { kind: "interrupted" });
    await world.clock.advance(HOUR_MS);
    const second = await world.again(first.id);
    await alive(world, second, TIMEOUT_MS + GRACE_MS - 1);
    assert.deepEqual(await overdue(world), []);
    await world.finish(second);
    await world.clock.advance(HOUR_MS);
    assert.deepEqual(await overdue(world), []);
    assert.equal(await world.status(first.id), "completed");
  },
};
