import assert from "node:assert/strict";
import { ERROR, HOUR_MS, LEASE_MS, type Promises, STOPPED_ERROR } from "../../support/store-world.ts";

export const cancelAndRetryPromises: Promises = {
  "cancelling a running job is a wish that its claimant learns when it renews, with the first reason": async (
    world,
  ) => {
    await world.submitMany(2);
    const [run, other] = await world.claim();
    for (const reason of ["user asked", "asked again"])
      assert.deepEqual(await world.store.jobs.cancel(run!.id, reason), { outcome: "requested" });
    const job = await world.job(run!.id);
    assert.equal(job.status, "processing");
    assert.equal(job.cancelRequested, true);
    const expected = {
      held: true,
      cancelled: [{ id: run!.id, jobEpoch: run!.jobEpoch, reason: "user asked" }],
    };
    assert.deepEqual(await world.store.jobs.renew(run!.lease, LEASE_MS), expected);
    // Told again until it is done: an answer may be lost.
    assert.deepEqual(await world.store.jobs.renew(run!.lease, LEASE_MS), expected);
    assert.equal(await world.settle(run!, { kind: "cancelled", error: STOPPED_ERROR }), "accepted");
    assert.equal(await world.status(run!.id), "cancelled");
    assert.deepEqual(await world.store.jobs.renew(other!.lease, LEASE_MS), { held: true, cancelled: [] });
  },

  "a run of a job that was to be cancelled is charged as any other, and the job ends with the reason": async (
    world,
  ) => {
    const charged = {
      interrupted: { attempts: 1, failures: 0, interruptions: 1 },
      released: { attempts: 0, failures: 0, interruptions: 0 },
      retry: { attempts: 1, failures: 1, interruptions: 0 },
    };
    for (const outcome of [
      { kind: "interrupted" },
      { kind: "released" },
      { kind: "retry", error: ERROR, delayMs: 50 },
    ] as const) {
      for (const reason of ["stop it", null]) {
        const run = await world.running();
        await world.store.jobs.cancel(run.id, reason);
        await world.settle(run, outcome);
        const { status, attempts, failures, interruptions, error } = await world.job(run.id);
        assert.equal(status, "cancelled");
        assert.deepEqual({ attempts, failures, interruptions }, charged[outcome.kind], outcome.kind);
        assert.deepEqual(error, { code: "CANCELLED", message: reason ?? "cancelled" });
      }
    }
    for (const reason of ["not needed", null]) {
      const waiting = await world.submit();
      await world.store.jobs.cancel(waiting, reason);
      const { finishedAt, error } = await world.job(waiting);
      assert.equal(finishedAt, world.clock.now());
      assert.equal(error!.message, reason ?? "cancelled before it started");
    }
  },

  "a job that is not there can be neither cancelled, retried nor removed": async (world) => {
    const id = world.newId();
    assert.deepEqual(await world.store.jobs.cancel(id, null), { outcome: "missing" });
    assert.equal(await world.store.jobs.retry(id), "missing");
    assert.equal(await world.store.jobs.remove(id), "missing");
    assert.equal(await world.store.jobs.get(id), null);
    assert.equal(await world.store.jobs.result(id), null);
  },

  "a failed job that is retried by hand starts afresh": async (world) => {
    const first = await world.running();
    await world.progress(first, 0.4, "so far");
    await world.log(first, "a line");
    await world.settle(first, { kind: "interrupted" });
    const second = await world.again(first.id);
    await world.crash();
    const third = await world.again(second.id);
    await world.progress(third, 0.7, "further");
    await world.fail(third);
    await world.clock.advance(HOUR_MS);

    assert.equal(await world.store.jobs.retry(first.id), "retried");
    const job = await world.job(first.id);
    assert.equal(job.status, "queued");
    assert.deepEqual([job.failures, job.interruptions, job.crashes], [0, 0, 0]);
    assert.deepEqual(
      [job.error, job.progress, job.progressMessage, job.finishedAt],
      [null, null, null, null],
    );
    assert.equal(job.cancelRequested, false);
    assert.equal(job.runAt, world.clock.now());
    assert.equal(job.updatedAt, world.clock.now());
    assert.deepEqual(await world.counts(), { queued: 1 });
    assert.equal((await world.logs(first.id)).length, 1);
    assert.deepEqual(job.killed, []);

    // No longer a suspect, and under a new epoch.
    const [fourth] = await world.claim({ suspect: false });
    assert.equal(fourth!.id, first.id);
    assert.ok(fourth!.jobEpoch > third.jobEpoch);
    assert.deepEqual([fourth!.failures, fourth!.interruptions, fourth!.crashes], [0, 0, 0]);
    assert.equal(await world.settle(third, { kind: "completed", result: "1" }), "stale");
    await world.finish(fourth!);
  },

  "a removed job is gone with its logs and its place in line": async (world) => {
    const run = await world.running();
    await world.log(run, "a line");
    assert.equal(await world.store.jobs.remove(run.id), "running");
    assert.equal((await world.logs(run.id)).length, 1);
    await world.finish(run, "1");
    assert.equal(await world.store.jobs.remove(run.id), "removed");
    const waiting = [
      await world.submit(),
      await world.submit({ delayMs: 10 }),
      await world.submit({ priority: 3 }),
    ];
    for (const id of waiting) assert.equal(await world.store.jobs.remove(id), "removed");
    await world.clock.advance(10);
    for (const id of [run.id, ...waiting]) {
      assert.equal(await world.store.jobs.get(id), null);
      assert.equal(await world.store.jobs.result(id), null);
      assert.deepEqual(await world.logs(id), []);
      assert.equal(await world.store.jobs.remove(id), "missing");
    }
    assert.deepEqual(await world.claimIds(), []);
    assert.deepEqual(await world.counts(), {});
    assert.deepEqual((await world.store.jobs.list({ limit: 10 })).jobs, []);
  },

  "jobs that wait, run or are completed are not retried by hand": async (world) => {
    const scheduled = await world.submit({ delayMs: HOUR_MS });
    const run = await world.running();
    const queued = await world.submit();
    assert.equal(await world.store.jobs.retry(scheduled), "scheduled");
    assert.equal(await world.store.jobs.retry(queued), "queued");
    assert.equal(await world.store.jobs.retry(run.id), "processing");
    await world.finish(run, "7");
    assert.equal(await world.store.jobs.retry(run.id), "completed");
    assert.equal(await world.store.jobs.result(run.id), "7");
    assert.deepEqual(await world.counts(), { scheduled: 1, queued: 1, completed: 1 });
  },
};
