import assert from "node:assert/strict";
import { isFinal, type JobError, type JobStatus } from "../../../src/core/jobs/job.ts";
import type { Outcome, Settlement } from "../../../src/store/store.ts";
import { ERROR, lease, type Promises, settleRuns, STOPPED_ERROR } from "../../support/store-world.ts";

const COMPLETED: Outcome = { kind: "completed", result: '{"ok":true}' };

const WHOLE_ERROR: JobError = {
  code: "ERROR",
  message: "no",
  stack: "at line 1\n  at line 2",
  cause: { code: "E1", list: [1, 2] },
};

/** Each with the status and the error that its job has then, its attempts, failures and interruptions. */
const ENDS: readonly (readonly [Outcome, JobStatus, JobError | null, ...spent: number[]])[] = [
  [COMPLETED, "completed", null, 1, 0, 0],
  [{ kind: "retry", error: ERROR, delayMs: 5_000 }, "scheduled", ERROR, 1, 1, 0],
  [{ kind: "failed", error: WHOLE_ERROR, spends: "failure" }, "failed", WHOLE_ERROR, 1, 1, 0],
  [{ kind: "failed", error: ERROR, spends: "interruption" }, "failed", ERROR, 1, 0, 1],
  [{ kind: "cancelled", error: STOPPED_ERROR }, "cancelled", STOPPED_ERROR, 1, 0, 0],
  [{ kind: "interrupted" }, "queued", null, 1, 0, 1],
  [{ kind: "released" }, "queued", null, 0, 0, 0],
];

export const settlePromises: Promises = {
  "every end of a run is told with its instant, its error and what it spent, and takes the job from its worker":
    async (world) => {
      for (const [outcome, status, error, ...spent] of ENDS) {
        const run = await world.running();
        await world.clock.advance(250);
        assert.equal(await world.settle(run, outcome), "accepted");
        const job = await world.job(run.id);
        const now = world.clock.now();
        assert.deepEqual([job.status, job.error, job.updatedAt], [status, error, now]);
        assert.deepEqual([job.attempts, job.failures, job.interruptions], spent, outcome.kind);
        assert.equal(job.finishedAt, isFinal(status) ? now : null, outcome.kind);
        if (!isFinal(status)) assert.deepEqual([job.worker, job.startedAt], [null, null], outcome.kind);
        await world.store.jobs.remove(run.id);
      }
    },

  "a failure that may be retried waits for its delay, and is not shown any more once the job completes":
    async (world) => {
      const run = await world.running();
      await world.settle(run, { kind: "retry", error: ERROR, delayMs: 5_000 });
      assert.equal(await world.nextDueInMs(), 5_000);
      await world.clock.advance(5_000);
      await world.finish(await world.again(run.id));
      assert.equal((await world.job(run.id)).error, null);
    },

  "a result or a report under a lease that does not hold the job is stale": async (world) => {
    const run = await world.running();
    await world.running({}, { lease: lease("node-b/1") });
    const thief = { id: run.id, jobEpoch: run.jobEpoch, lease: lease("node-b/1") };
    assert.equal(await world.settle(thief, COMPLETED), "stale");
    assert.equal(await world.settle({ ...thief, lease: lease("node-z/1") }, COMPLETED), "stale");
    assert.equal(await world.log(thief, "not mine"), "stale");
    assert.equal(await world.progress(thief, 0.9), "stale");
    assert.deepEqual(await world.logs(run.id), []);
    const { status, progress } = await world.job(run.id);
    assert.deepEqual([status, progress], ["processing", null]);
    await world.finish(run);
  },

  "a result of a job that waits is stale": async (world) => {
    const id = await world.submit();
    for (const jobEpoch of [0, 1]) {
      assert.equal(await world.settle({ id, jobEpoch, lease: lease("node-a/1") }, COMPLETED), "stale");
    }
    assert.equal(await world.status(id), "queued");
    assert.deepEqual(await world.claimIds(), [id]);
  },

  "the first answer stands when a run is settled in another way": async (world) => {
    const run = await world.running();
    await world.settle(run, COMPLETED);
    const before = await world.job(run.id);
    await world.clock.advance(10);
    const second: Outcome = { kind: "failed", error: ERROR, spends: "failure" };
    assert.equal(await world.settle(run, second), "replayed");
    assert.equal(await world.settle(run, { kind: "completed", result: '"other"' }), "replayed");
    assert.deepEqual(await world.job(run.id), before);
    assert.deepEqual(JSON.parse((await world.store.jobs.result(run.id))!), { ok: true });
  },

  "a batch of results that cannot be applied as a whole changes nothing": async (world) => {
    await world.submitMany(2);
    const [a, b] = await world.claim();
    const unreadable: Settlement = {
      run: b!,
      get outcome(): Outcome {
        throw new Error("this outcome cannot be read");
      },
    };
    await assert.rejects(async () => settleRuns(world.store, [{ run: a!, outcome: COMPLETED }, unreadable]));
    assert.deepEqual(await world.counts(), { processing: 2 });
    assert.equal(await world.settle(a!, COMPLETED), "accepted");
    assert.equal(await world.settle(b!, COMPLETED), "accepted");
  },
};
