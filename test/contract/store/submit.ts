import assert from "node:assert/strict";
import type { NewJob } from "../../../src/store/store.ts";
import { AUTHOR, ERROR, HOUR_MS, NODE, type Promises, STOPPED_ERROR } from "../../support/store-world.ts";
import { column } from "../../support/columns.ts";

export const submitPromises: Promises = {
  "a submitted job is stored with all that was asked for": async (world) => {
    const payload = JSON.stringify({
      text: "żółć ☂ \u0000 'quoted' \"twice\"",
      list: [1, 2.5, null],
      deep: { a: {} },
    });
    const asked = world.newJob({
      task: "resize",
      queue: "images",
      priority: 7,
      payload,
      maxAttempts: 9,
      timeoutMs: 1_234,
      idempotencyKey: "picture-1",
      tags: ["holiday", "raw"],
    });
    const answers = await world.store.jobs.submit([asked], { node: NODE, ownerEpoch: 3, leaderEpoch: 8 });
    assert.deepEqual(answers, [{ id: asked.id, status: "queued", existed: false }]);

    const job = await world.job(asked.id);
    assert.deepEqual(JSON.parse(job.payload), JSON.parse(payload));
    const now = world.clock.now();
    assert.deepEqual(
      { ...job, payload: null },
      {
        id: asked.id,
        task: "resize",
        queue: "images",
        status: "queued",
        priority: 7,
        payload: null,
        progress: null,
        progressMessage: null,
        attempts: 0,
        failures: 0,
        interruptions: 0,
        crashes: 0,
        maxAttempts: 9,
        timeoutMs: 1_234,
        idempotencyKey: "picture-1",
        trace: null,
        schedule: null,
        cancelRequested: false,
        createdAt: now,
        updatedAt: now,
        runAt: now,
        startedAt: null,
        finishedAt: null,
        owner: NODE,
        worker: null,
        jobEpoch: 0,
        ownerEpoch: 3,
        leaderEpoch: 8,
        error: null,
        killed: [],
        tags: ["holiday", "raw"],
      },
    );
    assert.equal(await world.store.jobs.result(asked.id), null);
    assert.deepEqual(await world.logs(asked.id), []);
  },

  "an empty batch is fine and stores nothing": async (world) => {
    assert.deepEqual(await world.store.jobs.submit([], AUTHOR), []);
    assert.deepEqual((await world.store.jobs.list({ limit: 10 })).jobs, []);
  },

  "a large batch is answered and kept in its order": async (world) => {
    const jobs = Array.from({ length: 1_500 }, (_, index) => world.newJob({ payload: `${index}` }));
    const answers = await world.store.jobs.submit(jobs, AUTHOR);
    assert.deepEqual(column(answers, "id"), column(jobs, "id"));
    const claimed = await world.claim({ limit: 2_000 });
    assert.deepEqual(column(claimed, "payload"), column(jobs, "payload"));
  },

  "batches submitted at the same time are all stored": async (world) => {
    const batches = Array.from({ length: 20 }, () => [world.newJob(), world.newJob()]);
    const answers = await Promise.all(batches.map((batch) => world.store.jobs.submit(batch, AUTHOR)));
    assert.deepEqual(
      answers.map((batch) => batch.map((answer) => answer.id)),
      batches.map((batch) => batch.map((job) => job.id)),
    );
    assert.deepEqual(await world.counts(), { queued: 40 });
  },

  "a batch that cannot be stored as a whole stores nothing": async (world) => {
    const unreadable: NewJob = {
      ...world.newJob(),
      get payload(): string {
        throw new Error("this payload cannot be read");
      },
    };
    const batch = [world.newJob({ idempotencyKey: "first" }), unreadable, world.newJob()];
    await assert.rejects(async () => world.store.jobs.submit(batch, AUTHOR));
    assert.deepEqual((await world.store.jobs.list({ limit: 10 })).jobs, []);
    assert.deepEqual(await world.counts(), {});
    assert.deepEqual(await world.claim(), []);
    const [answer] = await world.store.jobs.submit([world.newJob({ idempotencyKey: "first" })], AUTHOR);
    assert.equal(answer!.existed, false);
  },

  "the same idempotency key in a later batch is the same job": async (world) => {
    const first = await world.submit({ idempotencyKey: "invoice-7" });
    const answers = await world.store.jobs.submit(
      [
        world.newJob({ idempotencyKey: "invoice-7", payload: "2" }),
        world.newJob({ idempotencyKey: "invoice-8" }),
      ],
      AUTHOR,
    );
    assert.deepEqual(answers[0], { id: first, status: "queued", existed: true });
    assert.equal(answers[1]!.existed, false);
    assert.equal((await world.job(first)).payload, "{}");
    assert.deepEqual(await world.counts(), { queued: 2 });
  },

  "the same idempotency key twice in one batch makes one job": async (world) => {
    const batch = [
      world.newJob({ idempotencyKey: "twin", payload: "1" }),
      world.newJob({ payload: "2" }),
      world.newJob({ idempotencyKey: "twin", payload: "3" }),
    ];
    const answers = await world.store.jobs.submit(batch, AUTHOR);
    assert.deepEqual(answers, [
      { id: batch[0]!.id, status: "queued", existed: false },
      { id: batch[1]!.id, status: "queued", existed: false },
      { id: batch[0]!.id, status: "queued", existed: true },
    ]);
    assert.deepEqual(column(await world.claim(), "payload"), ["1", "2"]);
    assert.equal(await world.store.jobs.get(batch[2]!.id), null);
  },

  "an idempotency key answers with the state that its job is in now": async (world) => {
    const key = { idempotencyKey: "stateful" };
    const again = async (): Promise<unknown> =>
      (await world.store.jobs.submit([world.newJob(key)], AUTHOR))[0];
    const id = await world.submit({ ...key, delayMs: HOUR_MS });
    assert.deepEqual(await again(), { id, status: "scheduled", existed: true });
    await world.clock.advance(HOUR_MS);
    assert.deepEqual(await again(), { id, status: "queued", existed: true });
    const run = await world.again(id);
    assert.deepEqual(await again(), { id, status: "processing", existed: true });
    await world.finish(run);
    assert.deepEqual(await again(), { id, status: "completed", existed: true });
  },

  "an idempotency key holds after its job has failed or was cancelled": async (world) => {
    const failed = await world.running({ idempotencyKey: "will-fail" });
    await world.settle(failed, { kind: "failed", error: ERROR, spends: "failure" });
    const cancelled = await world.running({ idempotencyKey: "will-stop" });
    await world.settle(cancelled, { kind: "cancelled", error: STOPPED_ERROR });
    const answers = await world.store.jobs.submit(
      [world.newJob({ idempotencyKey: "will-fail" }), world.newJob({ idempotencyKey: "will-stop" })],
      AUTHOR,
    );
    assert.deepEqual(answers, [
      { id: failed.id, status: "failed", existed: true },
      { id: cancelled.id, status: "cancelled", existed: true },
    ]);
  },

  "an idempotency key is free again once its job is removed": async (world) => {
    const first = await world.submit({ idempotencyKey: "once" });
    assert.equal(await world.store.jobs.remove(first), "removed");
    const [answer] = await world.store.jobs.submit([world.newJob({ idempotencyKey: "once" })], AUTHOR);
    assert.equal(answer!.existed, false);
    assert.notEqual(answer!.id, first);
  },

  "the same id a second time is harmless, because the first answer may have been lost": async (world) => {
    const job = world.newJob({ payload: "1" });
    await world.store.jobs.submit([job], AUTHOR);
    const [answer] = await world.store.jobs.submit([job], AUTHOR);
    assert.deepEqual(answer, { id: job.id, status: "queued", existed: true });
    assert.deepEqual(await world.claimIds(), [job.id]);
    assert.deepEqual(await world.counts(), { processing: 1 });
  },

  "a job with a delay is scheduled and becomes queued at its time": async (world) => {
    const id = await world.submit({ delayMs: 5_000 });
    const job = await world.job(id);
    assert.equal(job.status, "scheduled");
    assert.equal(job.runAt, world.clock.now() + 5_000);
    assert.deepEqual(await world.counts(), { scheduled: 1 });
    await world.clock.advance(4_999);
    assert.equal(await world.status(id), "scheduled");
    assert.deepEqual(await world.claimIds(), []);
    await world.clock.advance(1);
    assert.equal(await world.status(id), "queued");
    assert.deepEqual(await world.counts(), { queued: 1 });
    assert.deepEqual(column((await world.store.jobs.list({ status: "queued", limit: 5 })).jobs, "id"), [id]);
    assert.deepEqual(await world.claimIds(), [id]);
  },

  "a job with an instant to run at waits for it, whatever its delay says": async (world) => {
    const runAt = world.clock.now() + HOUR_MS;
    const id = await world.submit({ runAt, delayMs: 1 });
    assert.equal((await world.job(id)).runAt, runAt);
    await world.clock.advance(HOUR_MS - 1);
    assert.deepEqual(await world.claimIds(), []);
    await world.clock.advance(1);
    assert.deepEqual(await world.claimIds(), [id]);
  },

  "an instant in the past is due at once and goes before what came due later": async (world) => {
    const fresh = await world.submit();
    const overdue = await world.submit({ runAt: world.clock.now() - HOUR_MS });
    assert.equal(await world.status(overdue), "queued");
    assert.deepEqual(await world.claimIds(), [overdue, fresh]);
  },
};
