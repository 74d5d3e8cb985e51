import assert from "node:assert/strict";
import type { JobId } from "../../../src/core/ids.ts";
import { PAST_RUNS_MAX, type PastRun } from "../../../src/store/jobs.ts";
import type { ClaimedJob } from "../../../src/store/store.ts";
import {
  AUTHOR,
  ERROR,
  HOUR_MS,
  lease,
  type Promises,
  STOPPED_ERROR,
  type StoreWorld,
} from "../../support/store-world.ts";
import { column, plain } from "../../support/columns.ts";

async function past(world: StoreWorld, id: JobId): Promise<readonly PastRun[]> {
  return (await world.store.jobs.runs(id)).past;
}

async function outcomes(world: StoreWorld, id: JobId): Promise<string[]> {
  return (await past(world, id)).map(({ outcome }) => outcome);
}

export const pastRunPromises: Promises = {
  "a job that succeeds at once has no past, nor has one that waits, runs, never began or is not there":
    async (world) => {
      await world.settle(await world.running(), { kind: "released" });
      const [run] = (await world.claim()) as [ClaimedJob];
      const waiting = await world.submit();
      assert.deepEqual(await past(world, run.id), []);
      await world.finish(run);
      for (const id of [run.id, waiting, world.newId()]) assert.deepEqual(await past(world, id), []);
    },

  "a run that failed and is tried again is remembered with all that is known of it": async (world) => {
    const id = await world.submit();
    await world.clock.advance(100);
    const run = await world.again(id, { worker: "node-b" });
    const startedAt = world.clock.now();
    await world.clock.advance(50);
    await world.settle(run, { kind: "retry", error: ERROR, delayMs: 10 });
    const endedAt = world.clock.now();
    await world.clock.advance(10);
    const again = await world.again(id);
    await world.finish(again);
    assert.deepEqual(plain(await past(world, id)), [
      {
        jobEpoch: run.jobEpoch,
        worker: "node-b",
        leaderEpoch: AUTHOR.leaderEpoch,
        startedAt,
        endedAt,
        outcome: "failed",
        error: ERROR,
      },
    ]);
  },

  "interruptions, crashes and runs that took too long are told apart, in their order": async (world) => {
    const id = await world.submit({ timeoutMs: 1_000 });
    await world.settle(await world.again(id), { kind: "interrupted" });
    await world.again(id);
    await world.crash();
    await world.again(id);
    await world.clock.advance(2_000);
    await world.recover({ by: "overdue", graceMs: 500 });
    const last = await world.again(id, { lease: lease("node-a/1/2") });
    assert.deepEqual(await outcomes(world, id), ["interrupted", "crashed", "overdue"]);
    const epochs = (await past(world, id)).map(({ jobEpoch }) => jobEpoch);
    assert.deepEqual(
      epochs,
      [...epochs].sort((a, b) => a - b),
    );
    assert.ok(last.jobEpoch > epochs.at(-1)!);
    assert.equal((await past(world, id))[2]!.error?.code, "TIMEOUT");
  },

  "the run that ended a job is not among them, until the job is retried by hand": async (world) => {
    const run = await world.running();
    await world.fail(run);
    assert.deepEqual(await past(world, run.id), []);
    await world.clock.advance(1_000);
    await world.store.jobs.retry(run.id);
    const [failed] = await past(world, run.id);
    assert.deepEqual([failed!.outcome, failed!.error, failed!.jobEpoch], ["failed", ERROR, run.jobEpoch]);
    const again = await world.again(run.id);
    await world.settle(again, { kind: "cancelled", error: STOPPED_ERROR });
    await world.store.jobs.retry(run.id);
    assert.deepEqual(await outcomes(world, run.id), ["failed", "cancelled"]);
    const waiting = await world.submit({ delayMs: HOUR_MS });
    await world.store.jobs.cancel(waiting, null);
    await world.store.jobs.retry(waiting);
    assert.deepEqual(await past(world, waiting), [], "it never ran");
  },

  "only the last of many are told": async (world) => {
    const id = await world.submit({ maxAttempts: 1_000 });
    const epochs: number[] = [];
    for (let n = 0; n < PAST_RUNS_MAX + 5; n++) {
      const run = await world.again(id);
      epochs.push(run.jobEpoch);
      await world.settle(run, { kind: "interrupted" });
    }
    const told = await past(world, id);
    assert.deepEqual(column(told, "jobEpoch"), epochs.slice(-PAST_RUNS_MAX));
  },

  "they go with their job": async (world) => {
    const run = await world.running();
    await world.settle(run, { kind: "interrupted" });
    await world.store.jobs.remove(run.id);
    assert.deepEqual(await past(world, run.id), []);
    const purged = await world.running();
    await world.settle(purged, { kind: "interrupted" });
    await world.finish(await world.again(purged.id));
    await world.clock.advance(HOUR_MS);
    assert.equal(await world.purgeJobs(), 1);
    assert.deepEqual(await past(world, purged.id), []);
  },
};
