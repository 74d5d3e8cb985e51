import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { JobAborted } from "../../../../src/jobs/run/job-run.ts";
import { GRACE_MS, heldWorld, QUICK } from "../../../support/node-worker.ts";

describe("a run that takes longer than its timeout", () => {
  it("gets one abort with the reason timeout, and its job is tried again", async (t) => {
    const { held, world } = await heldWorld(t, "slow", "polite");
    const id = await world.running("slow", { timeoutMs: 1_000 });
    await world.advance(999);
    assert.deepEqual(held.reasons, []);
    await world.advance(1);
    assert.deepEqual(held.reasons, ["timeout"]);
    assert.ok(held.aborts[0] instanceof JobAborted);
    const job = await world.until(id, "scheduled");
    assert.deepEqual([job.failures, job.error?.code], [1, "TIMEOUT"]);
    assert.match(job.error!.message, /1000 ms/);
    await world.advance(60_000);
    assert.equal(held.aborts.length, held.started.length, "each run hears it once");
    assert.deepEqual(new Set(held.reasons), new Set(["timeout"]));
  });

  it("tells also what the handler threw on its way out, when that is something else", async (t) => {
    const { held, world } = await heldWorld(t, "slow", "stubborn");
    const id = await world.running("slow", { timeoutMs: 10, maxAttempts: 1 });
    await world.advance(10);
    held.fail(0, new Error("connection lost while tidying up"));
    const { error } = await world.until(id, "failed");
    assert.equal(error?.code, "TIMEOUT");
    assert.match(error.message, /connection lost while tidying up/);
  });

  it("is watched on its own: the nearest of many deadlines is met, whatever ends before it", async (t) => {
    const { held, world } = await heldWorld(t, "slow", "polite");
    const ids = [];
    for (const timeoutMs of [300, 100, 200])
      ids.push(await world.submit("slow", { timeoutMs, maxAttempts: 1 }));
    await world.rest();
    held.finish(1);
    await world.until(ids[1]!, "completed");
    await world.advance(199);
    assert.deepEqual(held.reasons, []);
    await world.advance(1);
    assert.deepEqual(await world.statuses(ids), ["processing", "completed", "failed"]);
    await world.advance(100);
    assert.deepEqual(await world.statuses(ids), ["failed", "completed", "failed"]);
  });
});

describe("a handler that ignores its signal", () => {
  it("is given up after the grace, and its late result is refused", async (t) => {
    const { held, world } = await heldWorld(t, "deaf", "stubborn", { settings: { concurrency: 1 } });
    const id = await world.submit("deaf", { timeoutMs: 10, maxAttempts: 2 });
    const next = await world.submit("deaf");
    await world.until(id, "processing");
    await world.advance(10 + GRACE_MS - 1);
    assert.equal((await world.job(id)).status, "processing");
    assert.equal(held.started.length, 1, "its slot is not free yet");
    await world.advance(1);
    const job = await world.until(id, "scheduled");
    assert.deepEqual([job.failures, job.error?.code], [1, "TIMEOUT"]);
    await world.until(next, "processing");
    held.started[0]!.log("still here");
    held.finish(0, "too late");
    await world.rest();
    assert.equal((await world.job(id)).status, "scheduled");
    assert.equal(await world.store.jobs.result(id), null);
    assert.deepEqual(await world.logs(id), []);
    assert.equal(world.worker.active, 1);
  });
});

describe("cancelling", () => {
  it("ends a job that is claimed and waits for a slot, without running it", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", {
      tasks: QUICK,
      settings: { concurrency: 1 },
    });
    await world.submitMany(50, "quick"); // a rate at which the worker claims ahead
    await world.submit("held");
    const [waiting, other] = await world.submitMany(2, "held");
    await world.rest();
    await world.rest();
    assert.equal(held.started.length, 1);
    assert.equal((await world.job(waiting!)).status, "processing", "claimed ahead");
    assert.deepEqual(await world.jobs.cancel(waiting!, null), { outcome: "requested" });
    const job = await world.until(waiting!, "cancelled");
    assert.equal(job.error?.code, "CANCELLED");
    held.finish(0);
    await world.rest();
    assert.equal(held.started[1]?.job.id, other);
  });

  it("tells a running handler with the reason cancel and the words of whoever asked", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite");
    const id = await world.running("held");
    assert.deepEqual(await world.jobs.cancel(id, "changed my mind"), { outcome: "requested" });
    const job = await world.until(id, "cancelled");
    assert.deepEqual(held.reasons, ["cancel"]);
    assert.deepEqual(job.error, { code: "CANCELLED", message: "changed my mind" });
    assert.deepEqual(await world.jobs.cancel(id, null), { outcome: "finished", status: "cancelled" });
  });

  it("reaches the worker with the next renewal when the message was lost", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite");
    const id = await world.running("held");
    await world.store.jobs.cancel(id, "asked elsewhere"); // no message
    await world.advance(1_999);
    assert.deepEqual(held.reasons, []);
    await world.advance(1);
    assert.equal((await world.until(id, "cancelled")).error?.message, "asked elsewhere");
  });

  it("keeps the first reason when a timeout follows", async (t) => {
    const { held, world } = await heldWorld(t, "held", "stubborn");
    const id = await world.running("held", { timeoutMs: 100 });
    await world.jobs.cancel(id, "first");
    await world.advance(100);
    assert.deepEqual(held.reasons, ["cancel"]);
    await world.advance(GRACE_MS);
    assert.equal((await world.until(id, "cancelled")).error?.message, "first");
  });
});

describe("a lease that is taken away", () => {
  it("aborts with lease_lost, and nothing the run still says is taken", async (t) => {
    const { held, world } = await heldWorld(t, "held", "stubborn", { settings: { concurrency: 1 } });
    const id = await world.running("held");
    await world.takeLeases();
    await world.advance(2_000);
    assert.deepEqual(held.reasons, ["lease_lost"]);
    held.started[0]!.log("from the first run");
    held.finish(0, "from the first run");
    await world.rest();
    const job = await world.until(id, "processing");
    assert.deepEqual(
      [job.attempts, job.crashes, job.failures],
      [2, 1, 0],
      "it runs again, under a new lease",
    );
    held.finish(1, "from the second run");
    await world.until(id, "completed");
    assert.equal(await world.result(id), "from the second run");
    assert.deepEqual(await world.logs(id), []);
    assert.deepEqual(world.outcomes(id), ["completed"], "the first run kept quiet");
  });

  it("may give the same job to the same worker, whose first run of it is still there", async (t) => {
    const { held, world } = await heldWorld(t, "held", "stubborn");
    const id = await world.running("held");
    await world.takeLeases();
    await world.advance(2_000);
    assert.equal(held.started.length, 2);
    held.finish(0, "from the first run");
    await world.rest();
    assert.equal(world.worker.active, 1, "the second one is still known");
    await world.jobs.cancel(id, "enough");
    await world.rest();
    assert.deepEqual(held.reasons, ["lease_lost", "cancel"]);
    held.fail(1, new Error("stopped"));
    await world.until(id, "cancelled");
    assert.equal(world.worker.active, 0);
  });

  it("does not hold up the jobs behind it", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 1 } });
    const id = await world.submit("held");
    const next = await world.submit("held");
    await world.until(id, "processing");
    await world.takeLeases();
    await world.jobs.cancel(id, null); // back in the queue and gone, so that only the next one is left
    await world.advance(2_000);
    await world.until(next, "processing");
    held.finish(1);
    await world.until(next, "completed");
  });

  it("drops what was claimed ahead under it, and claims it again", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", {
      tasks: QUICK,
      settings: { concurrency: 1 },
    });
    await world.submitMany(50, "quick");
    const ids = await world.submitMany(3, "held");
    await world.rest();
    await world.rest();
    assert.deepEqual(await world.statuses(ids), ["processing", "processing", "processing"]);
    await world.takeLeases();
    await world.advance(2_000);
    for (let run = 1; run <= 3; run++) {
      await world.rest();
      held.finish(run);
    }
    for (const id of ids) await world.until(id, "completed");
    assert.equal(new Set(held.started.slice(1).map(({ job }) => job.id)).size, 3);
  });
});
