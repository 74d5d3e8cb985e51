import assert from "node:assert/strict";
import { hasCode } from "../../../src/core/errors.ts";
import type { JobId } from "../../../src/core/ids.ts";
import type { NewJob, Submitted } from "../../../src/store/store.ts";
import { AUTHOR, type Promises, type StoreWorld } from "../../support/store-world.ts";

/** Of one job with the key `k`. */
async function keyed(world: StoreWorld, fields: Partial<NewJob> = {}): Promise<Submitted> {
  const job = world.newJob({ idempotencyKey: "k", ...fields });
  return (await world.store.jobs.submit([job], AUTHOR))[0]!;
}

async function failedWithKey(world: StoreWorld, fields: Partial<NewJob> = {}): Promise<JobId> {
  const run = await world.running({ idempotencyKey: "k", ...fields });
  await world.fail(run);
  return run.id;
}

async function refused(attempt: Promise<unknown>, first: JobId, field = "idempotency_key"): Promise<void> {
  await assert.rejects(attempt, (error) => {
    assert.ok(hasCode(error, "IDEMPOTENCY_CONFLICT"), String(error));
    assert.deepEqual([error.details["job_id"], error.details.field], [first, field]);
    assert.ok(error.message.includes(first));
    return true;
  });
}

export const idempotencyPromises: Promises = {
  "a key belongs to one task: that of another task makes a job of its own": async (world) => {
    const first = await keyed(world);
    const other = await keyed(world, { task: "other", payload: "[2]" });
    assert.deepEqual([first.existed, other.existed], [false, false]);
    assert.deepEqual(await keyed(world), { ...first, existed: true });
    assert.deepEqual(await keyed(world, { task: "other", payload: "[2]" }), { ...other, existed: true });
    assert.equal((await world.job(other.id)).idempotencyKey, "k");
  },

  "a key is the same in another queue": async (world) => {
    const { id } = await keyed(world);
    assert.equal((await keyed(world, { queue: "other", priority: 3 })).id, id);
  },

  "the same key with another payload is refused, with the first job's id, and stores nothing": async (
    world,
  ) => {
    const { id } = await keyed(world, { payload: '{"a":1}' });
    await refused(keyed(world, { payload: '{"a":2}' }), id);
    const run = await world.again(id);
    await refused(keyed(world, { payload: '{"a":1,"b":1}' }), id);
    await world.finish(run);
    await refused(keyed(world, { payload: "[1]" }), id);
    assert.equal((await keyed(world, { payload: '{"a":1}' })).status, "completed");
    assert.equal((await world.store.jobs.list({ limit: 10 })).jobs.length, 1);
  },

  "the same payload may be written in another way": async (world) => {
    const { id } = await keyed(world, { payload: '{"a":[1,{"b":null}],"c":"ä\\u0000"}' });
    const same = { payload: ' {"c": "\\u00e4\\u0000", "a": [1.0, {"b": null}]}' };
    await assert.doesNotReject(keyed(world, same));
    const again = await keyed(world, same);
    assert.deepEqual([again.id, again.existed], [id, true]);
    await refused(keyed(world, { payload: '{"a":[1,{"b":0}],"c":"ä\\u0000"}' }), id);
    await refused(keyed(world, { payload: '{"a":[1,{"d":null}],"c":"ä\\u0000"}' }), id);
    await refused(keyed(world, { payload: '{"a":{"0":1,"1":{"b":null}},"c":"ä\\u0000"}' }), id);
  },

  "a list with a conflict stores nothing at all": async (world) => {
    const { id } = await keyed(world, { payload: "1" });
    const list = [
      world.newJob({ idempotencyKey: "new" }),
      world.newJob(),
      world.newJob({ idempotencyKey: "k", payload: "2" }),
    ];
    await refused(world.store.jobs.submit(list, AUTHOR), id, "[2].idempotency_key");
    for (const job of list) assert.equal(await world.store.jobs.get(job.id), null);
    assert.equal((await keyed(world, { idempotencyKey: "new", payload: "3" })).existed, false);
  },

  "two jobs of one list with the same key and different payloads are refused": async (world) => {
    const [one, two] = [world.newJob().id, world.newJob().id];
    for (const ids of [
      [one, two],
      [two, one],
    ]) {
      const list = ids.map((id) => world.newJob({ id, idempotencyKey: "k", payload: JSON.stringify(id) }));
      await assert.rejects(world.store.jobs.submit(list, AUTHOR), {
        code: "IDEMPOTENCY_CONFLICT",
        message: /^\[1\]\.idempotency_key "k" of task work belongs to \[0\] of the same list/,
      });
    }
    assert.deepEqual(await world.claim(), []);
  },

  "a conflict of one caller is no concern of another whose job is stored with it": async (world) => {
    const { id } = await keyed(world, { payload: "1" });
    const jobs = [
      world.newJob({ idempotencyKey: "before" }),
      world.newJob({ idempotencyKey: "k", payload: "2" }),
      world.newJob(),
      world.newJob({ idempotencyKey: "k", payload: "1" }),
    ];
    const submitting = world.store.jobs.submit(jobs, AUTHOR, false, undefined, true);
    await assert.doesNotReject(submitting);
    assert.deepEqual(await submitting, [
      { id: jobs[0]!.id, status: "queued", existed: false },
      { id, status: "queued", existed: true, conflict: true },
      { id: jobs[2]!.id, status: "queued", existed: false },
      { id, status: "queued", existed: true },
    ]);
    assert.equal(await world.store.jobs.get(jobs[1]!.id), null);
  },

  "after a failure the key makes a new job, whatever its payload, once": async (world) => {
    const failed = await failedWithKey(world);
    const second = await keyed(world, { payload: "[2]" });
    assert.deepEqual([second.existed, second.status], [false, "queued"]);
    assert.deepEqual(await keyed(world, { payload: "[2]" }), { ...second, existed: true });
    assert.equal((await world.job(failed)).idempotencyKey, "k");
    assert.equal(await world.status(failed), "failed");
    await world.fail(await world.again(second.id));
    assert.equal((await keyed(world, { payload: "[3]" })).existed, false);
  },

  "in a list and with other callers' jobs as well": async (world) => {
    for (const apart of [false, true]) {
      const key = `k-${apart}`;
      await failedWithKey(world, { idempotencyKey: key });
      const jobs = [
        world.newJob({ idempotencyKey: `first ${key}` }),
        world.newJob({ idempotencyKey: key, payload: "[2]" }),
        world.newJob({ idempotencyKey: key, payload: "[2]" }),
      ];
      const answers = await world.store.jobs.submit(jobs, AUTHOR, false, undefined, apart);
      assert.deepEqual(answers, [
        { id: jobs[0]!.id, status: "queued", existed: false },
        { id: jobs[1]!.id, status: "queued", existed: false },
        { id: jobs[1]!.id, status: "queued", existed: true },
      ]);
    }
  },

  "a key that is never to be used again names the failed job": async (world) => {
    const id = await failedWithKey(world, { payload: "1" });
    const again = await keyed(world, { payload: "1", keyReuse: "never" });
    assert.deepEqual(again, { id, status: "failed", existed: true });
    await refused(keyed(world, { payload: "2", keyReuse: "never" }), id);
  },

  "a cancelled job keeps its key: a repeated request does not undo the cancel": async (world) => {
    const { id } = await keyed(world);
    await world.store.jobs.cancel(id, null);
    assert.deepEqual(await keyed(world), { id, status: "cancelled", existed: true });
  },

  "the same id is the same request, also when its job has failed": async (world) => {
    const job = world.newJob({ idempotencyKey: "k" });
    await world.store.jobs.submit([job], AUTHOR);
    await world.fail(await world.again(job.id));
    const [again] = await world.store.jobs.submit([job], AUTHOR);
    assert.deepEqual(again, { id: job.id, status: "failed", existed: true });
  },

  "a failed job can be retried, unless its key has made another job since": async (world) => {
    const failed = await failedWithKey(world);
    assert.equal(await world.store.jobs.retry(failed), "retried");
    assert.equal((await keyed(world)).id, failed);
    await world.fail(await world.again(failed));
    const { id } = await keyed(world);
    assert.equal(await world.store.jobs.retry(failed), "superseded");
    assert.equal(await world.status(failed), "failed");
    await world.fail(await world.again(id));
    assert.equal(await world.store.jobs.retry(id), "retried");
    assert.equal(await world.store.jobs.retry(failed), "superseded");
  },

  "a key is free again when its job is removed": async (world) => {
    const { id } = await keyed(world, { payload: "1" });
    await world.store.jobs.remove(id);
    assert.equal((await keyed(world, { payload: "2" })).existed, false);
  },

  "of many that use the key of a failed job at the same time, one makes a job": async (world) => {
    await failedWithKey(world);
    const answers = await Promise.all(Array.from({ length: 10 }, () => keyed(world)));
    assert.equal(answers.filter(({ existed }) => !existed).length, 1);
    assert.equal(new Set(answers.map(({ id }) => id)).size, 1);
  },
};
