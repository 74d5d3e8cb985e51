import assert from "node:assert/strict";
import type { NewJob } from "../../../src/store/store.ts";
import { AUTHOR, ERROR, lease, type Promises, type StoreWorld } from "../../support/store-world.ts";
import { columns } from "../../support/columns.ts";

const trace = (n: number): string => `00-${String(n).padStart(32, "0")}-00f067aa0ba902b7-01`;
/** With a space in it, as a list of vendors may have. */
const WITH_STATE = `${trace(7)} vendor=one, other=two`;

async function claimedTraces(world: StoreWorld, fields = {}): Promise<(string | null)[]> {
  return (await world.claim(fields)).map((job) => job.trace ?? null);
}

export const tracePromises: Promises = {
  "the trace of a job is kept and given to whoever claims it": async (world) => {
    const id = await world.submit({ trace: WITH_STATE });
    assert.equal((await world.job(id)).trace, WITH_STATE);
    assert.deepEqual(await claimedTraces(world), [WITH_STATE]);
  },

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

  "a job has the same trace in every run, and when it has ended": async (world) => {
    const first = await world.running({ trace: WITH_STATE });
    await world.settle(first, { kind: "retry", error: ERROR, delayMs: 0 });
    const second = await world.again(first.id);
    assert.equal(second.trace, WITH_STATE);
    await world.settle(second, { kind: "completed", result: "1" });
    assert.equal((await world.job(first.id)).trace, WITH_STATE);
  },

  "a job retried by hand keeps its trace": async (world) => {
    const run = await world.running({ trace: trace(3) });
    await world.settle(run, { kind: "failed", error: ERROR, spends: "failure" });
    await world.store.jobs.retry(run.id);
    assert.deepEqual(await claimedTraces(world), [trace(3)]);
  },

  "a leader's submits and claims carry traces as any other": async (world) => {
    const fence = await world.term();
    const [answer] = await world.store.jobs.submit([world.newJob({ trace: trace(4) })], AUTHOR, false, fence);
    const claimed = await world.claim({ fence, lease: lease("agent:a/1") });
    assert.deepEqual(columns(claimed, "id", "trace"), [[answer!.id, trace(4)]]);
  },
};
