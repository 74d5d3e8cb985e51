import assert from "node:assert/strict";
import type { NewJob } from "../../../src/store/store.ts";
import { AUTHOR, HOUR_MS, NODE, type Promises } from "../../support/store-world.ts";
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

  "the same idempotency key twice in one batch makes one job": async (world) => {
    const batch = [
      world.newJob({ idempotencyKey: "twin", payload: "1" }),
      world.newJob({ payload: "2" }),
      world.newJob({ idempotencyKey: "twin", payload: "1" }),
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

  "the same id a second time is harmless, because the first answer may have been lost": async (world) => {
    const job = world.newJob({ payload: "1" });
    await world.store.jobs.submit([job], AUTHOR);
    const [answer] = await world.store.jobs.submit([job], AUTHOR);
    assert.deepEqual(answer, { id: job.id, status: "queued", existed: true });
    assert.deepEqual(await world.claimIds(), [job.id]);
    assert.deepEqual(await world.counts(), { processing: 1 });
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
