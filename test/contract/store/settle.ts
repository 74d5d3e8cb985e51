import assert from "node:assert/strict";
import type { Outcome, Settlement } from "../../../src/store/store.ts";
import {
  ERROR,
  lease,
  LEASE_MS,
  type Promises,
  settleRuns,
  STOPPED_ERROR,
} from "../../support/store-world.ts";

const COMPLETED: Outcome = { kind: "completed", result: '{"ok":true}' };

export const settlePromises: Promises = {
  "a completed job has its result and is finished": async (world) => {
    const run = await world.running();
    await world.clock.advance(250);
    assert.equal(await world.settle(run, COMPLETED), "accepted");
    const job = await world.job(run.id);
    assert.equal(job.status, "completed");
    assert.equal(job.finishedAt, world.clock.now());
    assert.equal(job.updatedAt, world.clock.now());
    assert.equal(job.error, null);
    assert.deepEqual([job.attempts, job.failures, job.interruptions, job.crashes], [1, 0, 0, 0]);
    assert.deepEqual(JSON.parse((await world.store.jobs.result(run.id))!), { ok: true });
    assert.deepEqual(await world.claimIds({ suspect: true }), []);
  },

  "a failure that may be retried is counted and waits for its delay": async (world) => {
    const run = await world.running();
    await world.clock.advance(100);
    assert.equal(await world.settle(run, { kind: "retry", error: ERROR, delayMs: 5_000 }), "accepted");
    const job = await world.job(run.id);
    assert.equal(job.status, "scheduled");
    assert.equal(job.runAt, world.clock.now() + 5_000);
    assert.equal(job.updatedAt, world.clock.now());
    assert.equal(job.finishedAt, null);
    assert.equal(job.worker, null);
    assert.deepEqual(job.error, ERROR);
    assert.deepEqual([job.attempts, job.failures, job.interruptions, job.crashes], [1, 1, 0, 0]);
    assert.equal(await world.nextDueInMs(), 5_000);
    await world.clock.advance(4_999);
    assert.deepEqual(await world.claimIds(), []);
    await world.clock.advance(1);
    const second = await world.again(run.id);
    assert.deepEqual([second.attempts, second.failures], [2, 1]);
  },

  "a job that completes after failures shows no error": async (world) => {
    const first = await world.running();
    await world.settle(first, { kind: "retry", error: ERROR, delayMs: 0 });
    await world.finish(await world.again(first.id));
    const job = await world.job(first.id);
    assert.equal(job.error, null);
    assert.deepEqual([job.attempts, job.failures], [2, 1]);
  },

  "a final failure is charged to the budget that it names": async (world) => {
    const failed = await world.running();
    await world.settle(failed, { kind: "failed", error: ERROR, spends: "failure" });
    const tired = await world.running();
    const error = { code: "INTERRUPTED_TOO_OFTEN", message: "51 times" };
    await world.settle(tired, { kind: "failed", error, spends: "interruption" });

    const first = await world.job(failed.id);
    assert.equal(first.status, "failed");
    assert.deepEqual(first.error, ERROR);
    assert.equal(first.finishedAt, world.clock.now());
    assert.deepEqual([first.attempts, first.failures, first.interruptions], [1, 1, 0]);
    const second = await world.job(tired.id);
    assert.equal(second.status, "failed");
    assert.deepEqual(second.error, error);
    assert.deepEqual([second.attempts, second.failures, second.interruptions], [1, 0, 1]);
    assert.equal(await world.store.jobs.result(failed.id), null);
    assert.deepEqual(await world.claimIds({ suspect: true }), []);
  },

  "an error is kept with all its fields": async (world) => {
    const run = await world.running();
    const error = {
      code: "ERROR",
      message: "no",
      stack: "at line 1\n  at line 2",
      cause: { code: "E1", list: [1, 2] },
    };
    await world.settle(run, { kind: "failed", error, spends: "failure" });
    assert.deepEqual((await world.job(run.id)).error, error);
  },

  "a cancelled run spends no budget": async (world) => {
    const run = await world.running();
    await world.settle(run, { kind: "cancelled", error: STOPPED_ERROR });
    const job = await world.job(run.id);
    assert.equal(job.status, "cancelled");
    assert.deepEqual(job.error, STOPPED_ERROR);
    assert.equal(job.finishedAt, world.clock.now());
    assert.deepEqual([job.attempts, job.failures, job.interruptions, job.crashes], [1, 0, 0, 0]);
  },

  "an interrupted job is counted as such and returns to its place in line": async (world) => {
    const run = await world.running();
    await world.clock.advance(1_000);
    const behind = await world.submit();
    await world.clock.advance(1_000);
    assert.equal(await world.settle(run, { kind: "interrupted" }), "accepted");
    const job = await world.job(run.id);
    assert.equal(job.status, "queued");
    assert.deepEqual([job.worker, job.startedAt], [null, null]);
    assert.equal(job.updatedAt, world.clock.now());
    assert.deepEqual([job.attempts, job.failures, job.interruptions, job.crashes], [1, 0, 1, 0]);
    assert.deepEqual(await world.claimIds(), [run.id, behind]);
  },

  "a released job is as if it had never been claimed": async (world) => {
    const run = await world.running();
    await world.clock.advance(1_000);
    const behind = await world.submit();
    assert.equal(await world.settle(run, { kind: "released" }), "accepted");
    const job = await world.job(run.id);
    assert.equal(job.status, "queued");
    assert.equal(job.worker, null);
    assert.equal(job.startedAt, null);
    assert.deepEqual([job.attempts, job.failures, job.interruptions, job.crashes], [0, 0, 0, 0]);
    const [again, next] = await world.claim();
    assert.equal(again!.id, run.id);
    assert.equal(again!.attempts, 1);
    assert.ok(again!.jobEpoch > run.jobEpoch);
    assert.equal(next!.id, behind);
  },

  "a result under an old epoch is stale and changes nothing": async (world) => {
    const old = await world.running();
    await world.crash();
    const current = await world.again(old.id);
    const before = await world.job(old.id);
    await world.clock.advance(10);
    for (const outcome of [
      COMPLETED,
      { kind: "retry", error: ERROR, delayMs: 0 },
      { kind: "failed", error: ERROR, spends: "failure" },
      { kind: "cancelled", error: STOPPED_ERROR },
      { kind: "interrupted" },
      { kind: "released" },
    ] as const) {
      assert.equal(await world.settle(old, outcome), "stale", outcome.kind);
      // The lease has the same name in both lives; the epoch alone must tell them apart.
      assert.equal(await world.settle({ ...old, lease: current.lease }, outcome), "stale", outcome.kind);
    }
    assert.deepEqual(await world.job(old.id), before);
    assert.equal(await world.store.jobs.result(old.id), null);
    await world.finish(current);
  },

  "a result under a lease that does not hold the job is stale": async (world) => {
    const run = await world.running();
    await world.running({}, { lease: lease("node-b/1") });
    const thief = { id: run.id, jobEpoch: run.jobEpoch, lease: lease("node-b/1") };
    assert.equal(await world.settle(thief, COMPLETED), "stale");
    assert.equal(await world.settle({ ...thief, lease: lease("node-z/1") }, COMPLETED), "stale");
    assert.equal(await world.status(run.id), "processing");
    await world.finish(run);
  },

  "a run is known by id, epoch and lease alone": async (world) => {
    const run = await world.running();
    const bare = { id: run.id, jobEpoch: run.jobEpoch, lease: run.lease };
    assert.equal(await world.log(bare, "from outside"), "accepted");
    assert.equal(await world.settle(bare, COMPLETED), "accepted");
    assert.equal(await world.status(run.id), "completed");
  },

  "a result of a job that waits is stale": async (world) => {
    const id = await world.submit();
    for (const jobEpoch of [0, 1]) {
      assert.equal(await world.settle({ id, jobEpoch, lease: lease("node-a/1") }, COMPLETED), "stale");
    }
    assert.equal(await world.status(id), "queued");
    assert.deepEqual(await world.claimIds(), [id]);
  },

  "a result of a job that is not there is missing": async (world) => {
    const run = { id: world.newId(), jobEpoch: 1, lease: lease("node-a/1") };
    assert.equal(await world.settle(run, COMPLETED), "missing");
    const removed = await world.running();
    await world.finish(removed);
    await world.store.jobs.remove(removed.id);
    assert.equal(await world.settle(removed, COMPLETED), "missing");
  },

  "the same result twice is replayed and changes nothing": async (world) => {
    for (const outcome of [
      COMPLETED,
      { kind: "failed", error: ERROR, spends: "failure" },
      { kind: "cancelled", error: STOPPED_ERROR },
      { kind: "retry", error: ERROR, delayMs: 60_000 },
      { kind: "interrupted" },
      { kind: "released" },
    ] as const) {
      const run = await world.running({ queue: outcome.kind }, { queues: new Set([outcome.kind]) });
      assert.equal(await world.settle(run, outcome), "accepted", outcome.kind);
      const before = await world.job(run.id);
      const counts = await world.counts(outcome.kind);
      await world.clock.advance(10);
      assert.equal(await world.settle(run, outcome), "replayed", outcome.kind);
      assert.deepEqual(await world.job(run.id), before, outcome.kind);
      assert.deepEqual(await world.counts(outcome.kind), counts, outcome.kind);
    }
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

  "a stale run does not hold up the others in its batch": async (world) => {
    await world.submitMany(3);
    const [a, b, c] = await world.claim();
    const ghost = { id: world.newId(), jobEpoch: 1, lease: a!.lease };
    const verdicts = await settleRuns(world.store, [
      { run: a!, outcome: COMPLETED },
      { run: { ...b!, jobEpoch: b!.jobEpoch + 7, ref: undefined }, outcome: COMPLETED },
      { run: ghost, outcome: COMPLETED },
      { run: a!, outcome: { kind: "interrupted" } },
      { run: c!, outcome: { kind: "failed", error: ERROR, spends: "failure" } },
    ]);
    assert.deepEqual(verdicts, ["accepted", "stale", "missing", "replayed", "accepted"]);
    assert.deepEqual(await world.counts(), { completed: 1, processing: 1, failed: 1 });
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

  "a result that comes after its lease ran out is accepted while nobody has taken the job": async (world) => {
    const run = await world.running();
    await world.clock.advance(LEASE_MS * 2);
    assert.equal(await world.settle(run, COMPLETED), "accepted");
    assert.deepEqual(await world.recover(), []);
    assert.equal(await world.status(run.id), "completed");
  },
};
