import assert from "node:assert/strict";
import type { JobId } from "../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { lease, NODE, type Promises } from "../../support/store-world.ts";

export const claimPromises: Promises = {
  "a claimed job carries what its worker needs": async (world) => {
    const id = await world.submit({ payload: '{"n":1}', priority: 2, queue: "images", timeoutMs: 500 });
    await world.clock.advance(10);
    const [claimed] = await world.claim({
      author: { node: NODE, ownerEpoch: 4, leaderEpoch: 6 },
      worker: "node-a#2",
    });
    const { ref: _ref, ...rest } = claimed!;
    assert.deepEqual(rest, {
      id,
      jobEpoch: 1,
      lease: lease("node-a/1"),
      task: "work",
      queue: "images",
      priority: 2,
      payload: '{"n":1}',
      attempts: 1,
      failures: 0,
      interruptions: 0,
      crashes: 0,
      maxAttempts: 5,
      timeoutMs: 500,
      createdAt: world.clock.now() - 10,
      runAt: world.clock.now() - 10,
      leaderEpoch: 6,
      trace: null,
    });
    const job = await world.job(id);
    assert.equal(job.status, "processing");
    assert.equal(job.worker, "node-a#2");
    assert.equal(job.startedAt, world.clock.now());
    assert.equal(job.updatedAt, world.clock.now());
    assert.equal(job.attempts, 1);
    assert.deepEqual([job.jobEpoch, job.ownerEpoch, job.leaderEpoch], [1, 4, 6]);
  },

  "a job is given out once, also when many ask at the same time": async (world) => {
    const ids = await world.submitMany(30);
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        world.claimIds({ lease: lease(`node-a/1/${index}`), limit: 4 }),
      ),
    );
    assert.deepEqual(answers.flat().sort(), [...ids].sort());
    assert.deepEqual(await world.claimIds(), []);
  },

  "an empty store has nothing to give and nothing to wait for": async (world) => {
    const claimed = await world.store.jobs.claim(world.request());
    assert.deepEqual(claimed, { jobs: [], held: true, nextDueInMs: null });
  },

  "the time until the next scheduled job is told": async (world) => {
    await world.submit({ delayMs: 9_000 });
    await world.submit({ delayMs: 4_000 });
    assert.equal(await world.nextDueInMs(), 4_000);
    await world.clock.advance(1_000);
    assert.equal(await world.nextDueInMs(), 3_000);
    await world.clock.advance(3_000);
    const due = await world.store.jobs.claim(world.request());
    assert.equal(due.jobs.length, 1);
    assert.equal(due.nextDueInMs, 5_000);
    await world.clock.advance(5_000);
    assert.equal(await world.nextDueInMs(), null);
  },

  "a wall clock that is set back leaves no job behind and gives none out twice": async (world) => {
    const before = await world.submitMany(2);
    world.clock.setWall(world.clock.now() - 1_000);
    const after = await world.submitMany(2);
    const delayed = await world.submit({ delayMs: 1 });
    await world.clock.advance(2_000);
    const given: JobId[] = [];
    for (let i = 0; i < 6; i++) given.push(...(await world.claimIds({ limit: 1 })));
    assert.deepEqual([...given].sort(), [...before, ...after, delayed].sort());
    for (const id of given) assert.equal(await world.status(id), "processing");
  },

  "jobs of a node that died once run again side by side": async (world) => {
    const ids = await world.submitMany(3);
    await world.claim();
    await world.crash();
    assert.deepEqual(await world.claimIds(), ids);
  },

  "a job that one more crash would quarantine is given out only to who asks for a suspect, one at a time":
    async (world) => {
      const suspects = await world.submitMany(3);
      await world.claim();
      await world.crash({ ...DEFAULT_BUDGETS, crashesMax: 2 });
      const fresh = await world.submitMany(2);
      assert.deepEqual(await world.claimIds({ limit: 1 }), [fresh[0]]);
      const mixed = await world.claimIds({ suspect: true });
      assert.deepEqual([...mixed].sort(), [fresh[1]!, suspects[0]!].sort());
      assert.deepEqual(await world.claimIds(), []);
      assert.deepEqual(await world.claimIds({ suspect: true }), [suspects[1]]);
      assert.deepEqual(await world.claimIds({ suspect: true }), [suspects[2]]);
      assert.deepEqual(await world.claimIds({ suspect: true }), []);
    },
};
