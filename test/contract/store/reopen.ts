import assert from "node:assert/strict";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import {
  AUTHOR,
  ERROR,
  HOUR_MS,
  lease,
  LEASE_MS,
  type Promises,
  STOPPED_ERROR,
} from "../../support/store-world.ts";
import { column, columns } from "../../support/columns.ts";

/** Only for keepers that find everything again on the same directory. */
export const reopenPromises: Promises = {
  "jobs in every state are found again": async (world) => {
    const completed = await world.running({ idempotencyKey: "done" });
    await world.log(completed, "a", "b");
    await world.progress(completed, 0.5, "half");
    await world.finish(completed, '{"r":1}');
    const failed = await world.running();
    await world.fail(failed);
    const cancelled = await world.running();
    await world.settle(cancelled, { kind: "cancelled", error: STOPPED_ERROR });
    const retried = await world.running();
    await world.settle(retried, { kind: "retry", error: ERROR, delayMs: 5_000 });
    const crashed = await world.running();
    await world.crash();
    const processing = await world.running();
    await world.store.jobs.cancel(processing.id, "stop");
    const rest = [
      await world.submit(),
      await world.submit({ delayMs: HOUR_MS }),
      await world.submit({ priority: 5 }),
      await world.submit({ task: "unheard-of" }),
    ];
    const ids = [completed, failed, cancelled, retried, crashed, processing]
      .map((run) => run.id)
      .concat(rest);
    const before = await Promise.all(ids.map((id) => world.job(id)));
    const counts = await world.counts();
    await world.reopen();
    assert.deepEqual(await Promise.all(ids.map((id) => world.job(id))), before);
    assert.deepEqual(await world.counts(), counts);
    assert.equal(await world.store.jobs.result(completed.id), '{"r":1}');
    assert.deepEqual(column(await world.logs(completed.id), "message"), ["a", "b"]);
    const [answer] = await world.store.jobs.submit([world.newJob({ idempotencyKey: "done" })], AUTHOR);
    assert.deepEqual(answer, { id: completed.id, status: "completed", existed: true });
    assert.deepEqual(column((await world.store.jobs.list({ limit: 50 })).jobs, "id"), [...ids].reverse());
  },

  "the line is in the same order": async (world) => {
    const plain = await world.submitMany(3);
    await world.clock.advance(5);
    const urgent = await world.submit({ priority: 1 });
    const delayed = await world.submit({ delayMs: 10 });
    const [taken] = await world.claim({ queues: new Set(["default"]), limit: 2 });
    assert.equal(taken!.id, urgent);
    await world.reopen();
    await world.clock.advance(10);
    const late = await world.submit();
    assert.deepEqual(await world.claimIds(), [plain[1], plain[2], delayed, late]);
  },

  "leases, epochs and log numbers go on": async (world) => {
    const run = await world.running();
    await world.log(run, "before");
    await world.reopen();
    assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, true);
    assert.equal(await world.log(run, "after"), "accepted");
    assert.deepEqual(columns(await world.logs(run.id), "seq", "message"), [
      [1, "before"],
      [2, "after"],
    ]);
    const found = await world.recover({ by: "incarnations", incarnations: ["1"] });
    assert.deepEqual(column(found, "id"), [run.id]);
    await world.reopen();
    const next = await world.again(run.id, { lease: lease("node-a/2") });
    assert.ok(next.jobEpoch > run.jobEpoch + 1);
    assert.equal(
      await world.settle(
        { id: run.id, jobEpoch: run.jobEpoch, lease: run.lease },
        { kind: "completed", result: "1" },
      ),
      "stale",
    );
    await world.finish(next);
    await world.reopen();
    assert.equal(
      await world.settle(
        { id: next.id, jobEpoch: next.jobEpoch, lease: next.lease },
        { kind: "completed", result: "1" },
      ),
      "replayed",
    );
  },

  "a lease that ran out while the store was closed is recovered": async (world) => {
    const run = await world.running();
    await world.reopen();
    await world.clock.advance(LEASE_MS + 1);
    assert.deepEqual(column(await world.recover(), "id"), [run.id]);
  },

  "pauses are found again": async (world) => {
    await world.store.queues.setPaused("default", true);
    const id = await world.submit();
    await world.reopen();
    assert.deepEqual(await world.claimIds(), []);
    await world.store.queues.setPaused("default", false);
    await world.reopen();
    assert.deepEqual(await world.claimIds(), [id]);
  },

  "schedules and noted occurrences are found again": async (world) => {
    const at = world.clock.now();
    await world.store.schedules.put(world.definition(), at);
    const firing = {
      schedule: "nightly",
      occurrences: [{ at, do: "fire" as const, reason: null, job: world.newJob() }],
      nextAt: at + HOUR_MS,
      expectedNextAt: at,
      overlap: "allow" as const,
    };
    await world.store.schedules.fire(firing, AUTHOR, await world.term());
    const before = await world.store.schedules.get("nightly");
    const history = await world.store.schedules.history("nightly", 5);
    await world.reopen();
    assert.deepEqual(await world.store.schedules.get("nightly"), before);
    assert.deepEqual(await world.store.schedules.history("nightly", 5), history);
    const again = { ...firing, expectedNextAt: at + HOUR_MS };
    assert.deepEqual(await world.store.schedules.fire(again, AUTHOR, await world.term()), ["already"]);
    assert.equal((await world.store.schedules.put(world.definition(), 1)).outcome, "unchanged");
  },

  "terms are remembered, and epochs keep growing": async (world) => {
    const old = await world.term();
    await world.reopen();
    assert.deepEqual(await world.store.terms.read("scheduler"), old);
    const current = await world.nextTerm("2");
    assert.equal(current.epoch, old.epoch + 1);
    await assert.rejects(world.store.jobs.recover({ by: "expiry" }, DEFAULT_BUDGETS, old), {
      code: "STALE_EPOCH",
    });
    await world.store.terms.admit({ ...current, epoch: 90 });
    await world.reopen();
    assert.equal((await world.nextTerm("3")).epoch, 91);
  },

  "agents and their tombstones are found again": async (world) => {
    const term = await world.term();
    const seen = { capabilities: ["work"], version: null, labels: '{"zone":"b"}', running: 1 };
    await world.store.agents.seen(
      ["a", "b"].map((name) => ({ name, ...seen })),
      term,
    );
    await world.store.agents.remove("a", term);
    const before = await world.store.agents.list(true);
    await world.reopen();
    assert.deepEqual(await world.store.agents.list(true), before);
  },

  "what was removed or purged does not come back": async (world) => {
    const removed = await world.submit();
    await world.store.jobs.remove(removed);
    const purged = await world.running();
    await world.log(purged, "a line");
    await world.finish(purged);
    await world.clock.advance(HOUR_MS);
    await world.purgeJobs();
    await world.reopen();
    for (const id of [removed, purged.id]) {
      assert.equal(await world.store.jobs.get(id), null);
      assert.deepEqual(await world.logs(id), []);
    }
    const fresh = await world.running();
    assert.deepEqual(await world.logs(fresh.id), []);
    assert.equal((await world.job(fresh.id)).attempts, 1);
  },
};
