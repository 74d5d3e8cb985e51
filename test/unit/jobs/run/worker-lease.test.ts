import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HeldRuns, WorkerWorld, heldWorld } from "../../../support/node-worker.ts";
import { column } from "../../../support/columns.ts";

const LEASE_MS = 10_000;
const RENEW_MS = 2_000;

describe("a lease that was ended", () => {
  it("is noticed by the next claim, without waiting for a renewal", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 2 } });
    const first = await world.running("held");
    await world.takeLeases();
    const next = await world.submit("held"); // wakes the worker
    await world.rest();
    assert.deepEqual(held.reasons, ["lease_lost"]);
    for (const id of [first, next]) await world.until(id, "processing");
    assert.deepEqual(
      [(await world.job(first)).attempts, (await world.job(next)).attempts],
      [2, 1],
      "both run under a new lease",
    );
    await world.advance(60_000);
    assert.deepEqual(held.reasons, ["lease_lost"], "and keep that");
    assert.equal(world.log.about("the lease on running jobs is lost"), 1);
  });

  it("is not taken again by a worker whose handlers have not heard of it", async (t) => {
    const held = new HeldRuns();
    const world = await WorkerWorld.open(t, {
      tasks: [
        ["held", held.stubborn],
        ["quick", () => "quick"],
      ],
      settings: { concurrency: 2 },
    });
    const first = await world.running("held", { maxAttempts: 1 });
    await world.takeLeases();
    await world.jobs.cancel(first, null); // it waits again, and is gone
    await world.until(await world.submit("quick"), "completed");
    assert.equal(world.worker.active, 1, "the deaf one is still there");
    await world.advance(RENEW_MS * 2);
    assert.equal(world.log.about("the lease on running jobs is lost"), 1, "it is lost once");
    await world.until(await world.submit("quick"), "completed");
  });

  it("may be opened anew while an old renewal is still under way, and its new jobs are left alone", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 1 } });
    const first = await world.running("held");
    await world.takeLeases();
    await world.jobs.cancel(first, null);
    const letGo = world.faults.holdAnswers("renew");
    await world.advance(RENEW_MS); // the store has refused, and the worker does not know it yet
    const second = await world.submit("held");
    held.finish(0); // stale; now nothing is held
    await world.until(second, "processing");
    letGo();
    await world.advance(LEASE_MS * 3);
    assert.deepEqual(held.reasons, []);
    assert.deepEqual(await world.reap(), []);
    held.finish(1, "under the lease that was opened anew");
    await world.until(second, "completed");
  });
});

describe("a lease that is not renewed", () => {
  for (const [how, hinder] of [
    ["renewals fail", (world: WorkerWorld) => world.faults.fail("renew")],
    ["a renewal hangs", (world: WorkerWorld) => void world.faults.holdAnswers("renew")],
  ] as const) {
    it(`ends at its deadline when ${how}`, async (t) => {
      const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 1 } });
      await world.until(await world.submit("held"), "processing");
      hinder(world);
      await world.advance(LEASE_MS - 10);
      assert.deepEqual(held.reasons, [], "until then it runs on");
      await world.advance(20);
      assert.deepEqual(held.reasons, ["lease_lost"]);
      world.faults.heal();
    });
  }
});

describe("an idle lease", () => {
  it("that ran out is opened anew with the next job", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["work", () => {}]] });
    await world.until(await world.submit("work"), "completed");
    world.faults.fail("claim"); // an idle worker keeps its lease by looking for work
    await world.advance(LEASE_MS * 2);
    assert.deepEqual(await world.reap(), []);
    world.faults.heal();
    await world.until(await world.submit("work"), "completed");
  });
});

describe("a claim whose answer is lost", () => {
  it("strands nothing: what runs goes on, new jobs run, and what it gave is found when its lease runs out", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 5 } });
    const before = await world.running("held");
    world.faults.loseAnswers("claim");
    const stranded = await world.submit("held");
    await world.rest();
    world.faults.heal();
    assert.equal((await world.job(stranded)).status, "processing", "given, and nobody runs it");
    const after = await world.submit("held");
    await world.advance(250);
    await world.until(after, "processing");
    assert.equal(held.started.length, 2);

    // As long as something runs under the same lease, it is renewed.
    await world.advance(LEASE_MS * 3);
    assert.deepEqual(await world.reap(), []);
    held.finish(0, "claimed before");
    await world.until(before, "completed");
    await world.advance(LEASE_MS + RENEW_MS);
    assert.deepEqual(column(await world.reap(), "id"), [stranded]);
    await world.advance(1_000);
    assert.equal((await world.until(stranded, "processing")).attempts, 2);
    assert.deepEqual(held.reasons, []);
    held.finish(1);
    await world.until(after, "completed");
  });
});

describe("a claim that is answered when its lease is lost already", () => {
  it("gives back what it was given, which runs under the next lease", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 2 } });
    await world.until(await world.submit("held"), "processing");
    const letGo = world.faults.holdAnswers("claim");
    const late = await world.submit("held");
    await world.rest();
    assert.equal((await world.job(late)).status, "processing");
    world.faults.fail("renew");
    await world.advance(LEASE_MS + RENEW_MS);
    assert.deepEqual(held.reasons, ["lease_lost"]);
    world.faults.heal();
    letGo();
    await world.advance(1_000);
    const job = await world.until(late, "processing");
    assert.deepEqual(world.outcomes(late), ["released"]);
    assert.deepEqual([job.attempts, job.crashes], [1, 0]);
    await world.advance(LEASE_MS * 2);
    assert.deepEqual(held.reasons, ["lease_lost"]);
  });
});

describe("whether new jobs fit", () => {
  it("is whether all of them could start at once, and never while the worker drains", async (t) => {
    const { world } = await heldWorld(t, "held", "polite", {
      settings: { concurrency: 3, exceptQueues: new Set(["calls"]) },
    });
    const fits = (count: number, task = "held", queue = "default"): boolean =>
      world.worker.fits(Array.from({ length: count }, () => ({ task, queue })));
    assert.deepEqual([fits(3), fits(4)], [true, false]);
    assert.equal(fits(1, "unheard-of"), false, "a task that is not known here");
    assert.equal(fits(1, "held", "calls"), false, "a queue that is not served here");
    await world.submitMany(2, "held");
    await world.rest();
    assert.deepEqual([fits(1), fits(2)], [true, false]);
    await world.submitMany(5, "held");
    await world.rest();
    assert.equal(fits(1), false);
    await world.worker.drain({ timeoutMs: 0, cleanupMs: 0 });
    assert.equal(fits(1), false);
  });
});
