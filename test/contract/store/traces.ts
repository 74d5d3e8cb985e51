import assert from "node:assert/strict";
import type { NewJob } from "../../../src/store/store.ts";
import { AUTHOR, ERROR, lease, type Promises } from "../../support/store-world.ts";
import { columns } from "../../support/columns.ts";

const trace = (n: number): string => `00-${String(n).padStart(32, "0")}-00f067aa0ba902b7-01`;
/** With a space in it, as a list of vendors may have. */
const WITH_STATE = `${trace(7)} vendor=one, other=two`;

export const tracePromises: Promises = {
  "each job of a batch has its own trace, or none, whatever else it asks for": async (world) => {
    const many = Array.from({ length: 70 }, (_, n) => (n % 3 === 0 ? {} : { trace: trace(n + 1) }));
    const odd: Partial<NewJob>[] = [
      { trace: trace(101), idempotencyKey: "a" },
      { trace: trace(102), priority: 5 },
      { priority: 5 },
      { trace: trace(103), runAt: world.clock.now() - 1 },
      { trace: null, idempotencyKey: "b" },
    ];
    const jobs = [...many, ...odd].map((fields) => world.newJob(fields));
    await world.store.jobs.submit(jobs, AUTHOR);
    const claimed = new Map((await world.claim()).map((job) => [job.id, job.trace ?? null]));
    assert.deepEqual(
      jobs.map(({ id }) => claimed.get(id)),
      jobs.map((job) => job.trace ?? null),
    );
    const listed = new Map((await world.store.jobs.list({ limit: 100 })).jobs.map((job) => [job.id, job]));
    for (const job of jobs) assert.equal(listed.get(job.id)!.trace, job.trace ?? null);
  },

  "a job has the same trace in every run, when it has ended, and when it is retried by hand": async (
    world,
  ) => {
    const first = await world.running({ trace: WITH_STATE });
    assert.equal(first.trace, WITH_STATE);
    await world.settle(first, { kind: "retry", error: ERROR, delayMs: 0 });
    const second = await world.again(first.id);
    assert.equal(second.trace, WITH_STATE);
    await world.fail(second);
    assert.equal((await world.job(first.id)).trace, WITH_STATE);
    await world.store.jobs.retry(first.id);
    assert.equal((await world.again(first.id)).trace, WITH_STATE);
  },

  "a leader's submits and claims carry traces as any other": async (world) => {
    const fence = await world.term();
    const [answer] = await world.store.jobs.submit([world.newJob({ trace: trace(4) })], AUTHOR, false, fence);
    const claimed = await world.claim({ fence, lease: lease("agent:a/1") });
    assert.deepEqual(columns(claimed, "id", "trace"), [[answer!.id, trace(4)]]);
  },
};
