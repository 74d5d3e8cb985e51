import assert from "node:assert/strict";
import { crashError, DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import type { Outcome } from "../../../src/store/store.ts";
import { ERROR, lease, LEASE_MS, type Promises } from "../../support/store-world.ts";
import { plain } from "../../support/columns.ts";

const COMPLETED: Outcome = { kind: "completed", result: "1" };

export const recoverPromises: Promises = {
  "a job whose lease has run out returns to its place in line": async (world) => {
    const run = await world.running({}, { worker: "node-a#7" });
    await world.clock.advance(LEASE_MS - 1);
    assert.deepEqual(await world.recover(), []);
    const behind = await world.submit();
    await world.clock.advance(2);
    assert.deepEqual(plain(await world.recover()), [
      { id: run.id, worker: "node-a#7", status: "queued", failures: 0, interruptions: 0, crashes: 1 },
    ]);
    const job = await world.job(run.id);
    assert.equal(job.status, "queued");
    assert.equal(job.worker, null);
    assert.equal(job.updatedAt, world.clock.now());
    assert.equal(job.leaderEpoch, (await world.term()).epoch);
    assert.deepEqual(job.killed, ["node-a#7"]);
    assert.deepEqual([job.attempts, job.failures, job.interruptions, job.crashes], [1, 0, 0, 1]);
    assert.deepEqual(await world.counts(), { queued: 2 });
    assert.deepEqual(await world.claimIds({ suspect: true }), [run.id, behind]);
  },

  "a job that was to be cancelled is cancelled when its run is taken away": async (world) => {
    for (const [which, message] of [
      [{ by: "incarnations", incarnations: ["1"] }, "cancelled while its node died"],
      [{ by: "holders", names: ["node-a/1"] }, "cancelled"],
      [{ by: "overdue", graceMs: 0 }, "cancelled"],
    ] as const) {
      for (const reason of ["no longer", null]) {
        const run = await world.running({ timeoutMs: 1 });
        await world.store.jobs.cancel(run.id, reason);
        await world.clock.advance(1);
        const [recovered] = await world.recover(which);
        const { status, error, finishedAt, jobEpoch } = await world.job(run.id);
        assert.deepEqual(
          [recovered!.status, status, finishedAt],
          ["cancelled", "cancelled", world.clock.now()],
        );
        assert.deepEqual(error, { code: "CANCELLED", message: reason ?? message });
        assert.ok(jobEpoch > run.jobEpoch);
        assert.equal(await world.settle(run, COMPLETED), "stale");
      }
    }
    assert.deepEqual(await world.claimIds({ suspect: true }), []);
    assert.deepEqual(await world.counts(), { cancelled: 6 });
  },

  "a node that has the store to itself takes back everybody's jobs but its own": async (world) => {
    const renamed = await world.running({}, { lease: lease("node-old/1"), worker: "node-old" });
    const earlier = await world.running({}, { lease: lease("node-a/1"), worker: "node-a" });
    const own = await world.running({}, { lease: lease("node-a/2/0"), worker: "node-a" });
    const found = await world.recover({ by: "everybody", except: "2" });
    assert.deepEqual(found.map((job) => job.id).sort(), [renamed.id, earlier.id].sort());
    await world.finish(own);
  },

  "lives, nodes and claimants that are called alike are not mixed up": async (world) => {
    const others = ["node-a/10", "node-a/1x", "node-a/x1/0", "1/10", "node-a/7/1", "node-b/11/0", "1/_"];
    const runs = await Promise.all(others.map((name) => world.submit({ queue: name })));
    for (const name of others) await world.claim({ lease: lease(name), queues: new Set([name]) });
    const one = await world.running({}, { lease: lease("node-a/1/0") });
    const found = await world.recover({ by: "incarnations", incarnations: ["1", "_", "%"] });
    assert.deepEqual(found.map((job) => job.id).sort(), [one.id, runs.at(-1)!].sort());
    for (const id of runs.slice(0, -1)) assert.equal(await world.status(id), "processing");
  },

  "a job that took its node down too often is quarantined": async (world) => {
    const budgets = { ...DEFAULT_BUDGETS, crashesMax: 3 };
    const id = await world.submit();
    for (const [index, worker] of ["node-a", "node-b"].entries()) {
      await world.again(id, { worker });
      const [recovered] = await world.crash(budgets);
      assert.equal(recovered!.status, "queued");
      assert.equal(recovered!.crashes, index + 1);
    }
    const last = await world.again(id, { worker: "node-c" });
    assert.equal(last.crashes, 2);
    assert.deepEqual(plain(await world.crash(budgets)), [
      { id, worker: "node-c", status: "failed", failures: 0, interruptions: 0, crashes: 3 },
    ]);
    const job = await world.job(id);
    const killed = ["node-a", "node-b", "node-c"];
    assert.equal(job.status, "failed");
    assert.equal(job.crashes, 3);
    assert.equal(job.finishedAt, world.clock.now());
    assert.deepEqual(job.killed, killed);
    assert.equal(job.error?.code, "QUARANTINED");
    assert.deepEqual(
      job.error,
      crashError({ failures: 0, interruptions: 0, crashes: 2, maxAttempts: 5 }, budgets, killed),
    );
    assert.equal(await world.settle(last, { kind: "completed", result: "1" }), "stale");
    assert.deepEqual(await world.claimIds({ suspect: true }), []);
    assert.deepEqual(await world.counts(), { failed: 1 });
  },

  "whatever a run says that was taken away is stale, even while its job waits": async (world) => {
    for (const which of [{ by: "expiry" }, { by: "overdue", graceMs: 0 }] as const) {
      const run = await world.running({ timeoutMs: 5_000 });
      await world.clock.advance(which.by === "expiry" ? LEASE_MS + 1 : 5_000);
      await world.recover(which);
      const { id, jobEpoch, lease: held } = run;
      const waiting = await world.job(id);
      assert.ok(waiting.jobEpoch > jobEpoch);
      for (const late of [run, { id, jobEpoch, lease: held }]) {
        assert.equal(await world.settle(late, COMPLETED), "stale");
        assert.equal(await world.settle(late, { kind: "retry", error: ERROR, delayMs: 0 }), "stale");
        assert.equal(await world.settle(late, { kind: "released" }), "stale");
        assert.equal(await world.log(late, "still here"), "stale");
      }
      assert.deepEqual(await world.job(id), waiting);
      const next = await world.again(id);
      assert.ok(next.jobEpoch > waiting.jobEpoch);
      assert.equal(await world.settle(run, COMPLETED), "stale");
      await world.finish(next, "2");
      assert.equal(await world.settle(run, COMPLETED), "stale");
      assert.equal(await world.store.jobs.result(id), "2");
    }
  },
};
