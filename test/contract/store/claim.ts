import assert from "node:assert/strict";
import type { JobId } from "../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { ERROR, lease, LEASE_MS, NODE, type Promises } from "../../support/store-world.ts";

/** Under these a job that has crashed once is a suspect. */
const LAST_CHANCE = { ...DEFAULT_BUDGETS, crashesMax: 2 };

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

  "higher priorities go first, and among equals the one that came first": async (world) => {
    const low = await world.submit({ priority: -5 });
    const first = await world.submit();
    const high = await world.submit({ priority: 9 });
    const second = await world.submit();
    const top = await world.submit({ priority: 100 });
    assert.deepEqual(await world.claimIds(), [top, high, first, second, low]);
  },

  "fresh, delayed, retried, interrupted, resumed and once unknown jobs form one line": async (world) => {
    const unknown = await world.submit({ task: "later-known" });
    const interrupted = await world.running();
    await world.clock.advance(10);
    await world.store.queues.setPaused("held", true);
    const held = await world.submit({ queue: "held" });
    await world.clock.advance(10);
    const retried = await world.running({}, { limit: 1 });
    await world.settle(retried, { kind: "retry", error: ERROR, delayMs: 20 });
    const fresh = await world.submit();
    const delayed = await world.submit({ delayMs: 30 });
    const urgent = await world.submit({ priority: 1, delayMs: 25 });
    assert.equal((await world.claimIds({ limit: 1 }))[0], fresh);
    await world.clock.advance(30);
    await world.settle(interrupted, { kind: "interrupted" });
    await world.store.queues.setPaused("held", false);
    const newest = await world.submit();
    assert.deepEqual(await world.claimIds({ tasks: new Set(["work", "later-known"]) }), [
      urgent,
      unknown,
      interrupted.id,
      held,
      retried.id,
      delayed,
      newest,
    ]);
  },

  "a job of an unknown task stays, blocks nobody, and is found by who knows it": async (world) => {
    const strange = await world.submitMany(50, { task: "unheard-of", priority: 10 });
    const known = await world.submitMany(3);
    assert.deepEqual(await world.claimIds({ limit: 2 }), known.slice(0, 2));
    const later = await world.submit();
    assert.deepEqual(await world.claimIds(), [known[2], later]);
    assert.deepEqual(await world.claimIds(), []);
    assert.deepEqual(await world.counts(), { queued: 50, processing: 4 });
    assert.deepEqual(await world.claimIds({ tasks: new Set(["unheard-of", "work"]) }), strange);
  },

  "only the queues that were asked for are looked at": async (world) => {
    const a = await world.submit({ queue: "a" });
    const b = await world.submit({ queue: "b" });
    const c = await world.submit({ queue: "c" });
    assert.deepEqual(await world.claimIds({ queues: new Set() }), []);
    assert.deepEqual(await world.claimIds({ queues: new Set(["b", "nowhere"]) }), [b]);
    assert.deepEqual(await world.claimIds({ queues: new Set(["b"]) }), []);
    assert.deepEqual(await world.claimIds(), [a, c]);
  },

  "queues that are excepted are left alone, also when they were asked for": async (world) => {
    const a = await world.submit({ queue: "a", priority: 5 });
    const b = await world.submit({ queue: "b" });
    const c = await world.submit({ queue: "c", delayMs: 10 });
    await world.clock.advance(10);
    const exceptQueues = new Set(["a", "c", "nowhere"]);
    assert.deepEqual(await world.claimIds({ exceptQueues, queues: new Set(["a"]) }), []);
    assert.deepEqual(await world.claimIds({ exceptQueues }), [b]);
    assert.deepEqual(await world.claimIds({ exceptQueues }), []);
    assert.deepEqual(await world.claimIds({ exceptQueues: new Set(["b"]) }), [a, c]);
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

  "a paused queue keeps its jobs, and resuming keeps their order": async (world) => {
    const waiting = [await world.submit({ queue: "q" }), await world.submit({ queue: "q", priority: 3 })];
    await world.store.queues.setPaused("q", true);
    const other = await world.submit({ queue: "other" });
    const added = await world.submit({ queue: "q", priority: 1 });
    assert.deepEqual(await world.claimIds(), [other]);
    assert.deepEqual(await world.claimIds({ queues: new Set(["q"]) }), []);
    await world.clock.advance(LEASE_MS / 2);
    const last = await world.submit({ queue: "q" });
    await world.store.queues.setPaused("q", false);
    assert.deepEqual(await world.claimIds(), [waiting[1], added, waiting[0], last]);
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
      await world.crash(LAST_CHANCE);
      const fresh = await world.submitMany(2);
      assert.deepEqual(await world.claimIds({ limit: 1 }), [fresh[0]]);
      const mixed = await world.claimIds({ suspect: true });
      assert.deepEqual([...mixed].sort(), [fresh[1]!, suspects[0]!].sort());
      assert.deepEqual(await world.claimIds(), []);
      assert.deepEqual(await world.claimIds({ suspect: true }), [suspects[1]]);
      assert.deepEqual(await world.claimIds({ suspect: true }), [suspects[2]]);
      assert.deepEqual(await world.claimIds({ suspect: true }), []);
    },

  "suspects obey tasks, queues and pauses like all others": async (world) => {
    const id = await world.submit({ queue: "q" });
    await world.claim();
    await world.crash(LAST_CHANCE);
    assert.deepEqual(await world.claimIds({ suspect: true, tasks: new Set(["other"]) }), []);
    assert.deepEqual(await world.claimIds({ suspect: true, queues: new Set(["other"]) }), []);
    assert.deepEqual(await world.claimIds({ suspect: true, exceptQueues: new Set(["q"]) }), []);
    await world.store.queues.setPaused("q", true);
    assert.deepEqual(await world.claimIds({ suspect: true }), []);
    await world.store.queues.setPaused("q", false);
    assert.deepEqual(await world.claimIds({ suspect: true, limit: 0 }), []);
    assert.deepEqual(await world.claimIds({ suspect: true }), [id]);
  },
};
