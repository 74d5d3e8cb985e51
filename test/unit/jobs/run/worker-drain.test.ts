import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HeldRuns, WorkerWorld, heldWorld, QUICK } from "../../../support/node-worker.ts";

const LIMITS = { timeoutMs: 10_000, cleanupMs: 2_000 };

describe("a drain", () => {
  it("waits for what runs and starts nothing new", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite");
    const id = await world.running("held");
    const drained = world.worker.drain(LIMITS);
    const late = await world.submit("held");
    await world.advance(5_000);
    assert.deepEqual(held.reasons, []);
    assert.equal((await world.job(late)).status, "queued");
    held.finish(0, "finished in peace");
    assert.deepEqual(await drained, { interrupted: 0 });
    assert.equal((await world.job(id)).status, "completed");
  });

  it("tells the rest to stop with the reason drain, and burns no attempt", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", { maxAttempts: 1 });
    const id = await world.running("held");
    const drained = world.worker.drain(LIMITS);
    await world.advance(7_999);
    assert.deepEqual(held.reasons, []);
    await world.advance(1);
    assert.deepEqual(held.reasons, ["drain"]);
    assert.deepEqual(await drained, { interrupted: 1 });
    const job = await world.job(id);
    assert.deepEqual(
      [job.status, job.failures, job.interruptions, job.crashes, job.attempts],
      ["queued", 0, 1, 0, 1],
    );
  });

  it("gives up a handler that does not listen, and puts its job back all the same", async (t) => {
    const { held, world } = await heldWorld(t, "deaf", "stubborn");
    const id = await world.running("deaf");
    const drained = world.worker.drain(LIMITS);
    await world.advance(9_999);
    assert.equal((await world.job(id)).status, "processing");
    await world.advance(1);
    assert.deepEqual(await drained, { interrupted: 1 });
    assert.deepEqual(world.outcomes(id), ["interrupted"]);
    held.finish(0, "too late");
    await world.rest();
    assert.equal((await world.job(id)).status, "queued");
  });

  it("is hurried by a signal: handlers are told at once and have a second", async (t) => {
    const { held, world } = await heldWorld(t, "deaf", "stubborn");
    const id = await world.running("deaf");
    const hurry = new AbortController();
    const drained = world.worker.drain({ ...LIMITS, hurry: hurry.signal });
    await world.advance(1_000);
    assert.deepEqual(held.reasons, []);
    hurry.abort();
    await world.rest();
    assert.deepEqual(held.reasons, ["drain"]);
    await world.advance(1_000);
    assert.deepEqual(await drained, { interrupted: 1 });
    assert.equal((await world.job(id)).interruptions, 1);
  });

  it("is hurried also while handlers tidy up", async (t) => {
    const { held, world } = await heldWorld(t, "deaf", "stubborn");
    await world.until(await world.submit("deaf"), "processing");
    const hurry = new AbortController();
    let over = false;
    const limits = { timeoutMs: 60_000, cleanupMs: 60_000, hurry: hurry.signal };
    const drained = world.worker.drain(limits).then(() => (over = true));
    await world.advance(100);
    assert.deepEqual(held.reasons, ["drain"]);
    hurry.abort();
    await world.advance(999);
    assert.equal(over, false);
    await world.advance(1);
    await drained;
  });

  it("releases what was claimed ahead as if it had never been claimed", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", {
      tasks: QUICK,
      settings: { concurrency: 1 },
    });
    await world.submitMany(50, "quick");
    const ids = await world.submitMany(4, "held");
    await world.rest();
    await world.rest();
    assert.deepEqual(await world.statuses(ids), Array(4).fill("processing"));
    held.finish(0);
    void world.worker.drain(LIMITS);
    await world.rest();
    for (const id of ids.slice(2)) {
      const job = await world.job(id);
      assert.deepEqual(
        [job.status, job.attempts, job.failures, job.interruptions, job.crashes],
        ["queued", 0, 0, 0, 0],
      );
      assert.deepEqual(world.outcomes(id), ["released"]);
    }
  });

  it("fails a job that was interrupted too often, and says what to do", async (t) => {
    const held = new HeldRuns();
    const { store, clock } = await WorkerWorld.open(t, { tasks: [] });
    const options = { tasks: [["held", held.polite] as [string, typeof held.polite]], store, clock };
    const first = await WorkerWorld.open(t, { ...options, budgets: { interruptionsMax: 2 } });
    const id = await first.submit("held");
    for (let count = 1; count <= 3; count++) {
      await first.until(id, "processing");
      await first.worker.stop();
      assert.equal((await first.job(id)).interruptions, count);
      await first.worker.start();
    }
    const job = await first.job(id);
    assert.deepEqual([job.status, job.failures, job.error?.code], ["failed", 0, "INTERRUPTED_TOO_OFTEN"]);
    assert.match(job.error!.message, /retry it by hand/);
  });

  it("does not wait for ever for a store that takes no results", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite");
    await world.until(await world.submit("held"), "processing");
    world.faults.fail("record");
    let over = false;
    const drained = world.worker.drain(LIMITS).then(() => (over = true));
    held.finish(0, "nobody will know");
    await world.advance(1_900);
    assert.equal(over, false, "it tries for a while");
    await world.advance(600);
    await drained;
    assert.equal(world.log.about("could not store results before the end"), 1);
  });

  for (const silent of ["record", "claim"] as const) {
    it(`does not wait for ever for a store that does not answer a ${silent}`, async (t) => {
      const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 2 } });
      await world.until(await world.submit("held"), "processing");
      const letGo = world.faults.holdAnswers(silent);
      t.after(letGo);
      if (silent === "claim") await world.submit("held");
      let over = false;
      const drained = world.worker.drain(LIMITS).then(() => (over = true));
      held.finish(0, "nobody will know");
      await world.advance(1_900);
      assert.equal(over, false, "it waits for a while");
      await world.advance(200);
      await drained;
    });
  }
});
