import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { WorkerWorld, heldWorld } from "../../../support/node-worker.ts";

describe("while the store refuses results", () => {
  it("keeps them, tells it once, and settles each once when the store is back", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 3 } });
    const ids = await world.submitMany(3, "held");
    await world.rest();
    world.faults.fail("record");
    for (const index of [0, 1, 2]) {
      held.finish(index, index);
      await world.advance(1_000);
    }
    assert.deepEqual(await world.statuses(ids), Array(3).fill("processing"));
    assert.equal(world.log.about("could not store results"), 1);
    world.faults.heal();
    await world.advance(250);
    for (const [index, id] of ids.entries()) {
      assert.equal((await world.until(id, "completed")).attempts, 1);
      assert.equal(await world.result(id), index);
      assert.deepEqual(world.outcomes(id), ["completed"]);
    }
  });

  it("claims no more, so that results do not pile up, and goes on by itself afterwards", async (t) => {
    let runs = 0;
    const world = await WorkerWorld.open(t, {
      tasks: [["quick", () => new Promise((done) => setImmediate(done, runs++))]],
      settings: { concurrency: 2, prefetchMax: 1 },
    });
    world.faults.fail("record");
    const ids = await world.submitMany(50, "quick");
    await world.advance(5_000);
    assert.ok(runs < 10, `${runs} ran`);
    world.faults.heal();
    await world.advance(2_000);
    for (const id of ids) await world.until(id, "completed");
    assert.equal(runs, 50, "none ran twice");
  });

  it("does not write log lines twice when they were refused together with results", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["chatty", (_p, { log }) => log("once")]] });
    world.faults.fail("record");
    const id = await world.submit("chatty");
    await world.advance(2_000);
    world.faults.heal();
    await world.advance(500);
    await world.until(id, "completed");
    assert.deepEqual(await world.logs(id), ["once"]);
  });

  it("does not lose log lines that were refused", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite");
    const id = await world.submit("held");
    await world.until(id, "processing");
    world.faults.fail("record");
    for (const text of ["one", "two", "three"]) {
      held.started[0]!.log(text);
      await world.advance(100);
    }
    world.faults.heal();
    await world.advance(500);
    assert.deepEqual(await world.logs(id), ["one", "two", "three"]);
  });

  it("keeps the lease of runs that have ended, so that their results are still taken", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite");
    const id = await world.submit("held");
    await world.until(id, "processing");
    world.faults.fail("record");
    held.finish(0, "kept");
    await world.advance(60_000); // six times the lease
    assert.deepEqual(await world.reap(), []);
    world.faults.heal();
    await world.advance(500);
    assert.equal((await world.until(id, "completed")).attempts, 1);
    assert.equal(await world.result(id), "kept");
  });
});

describe("while the store refuses claims", () => {
  it("tries again and again, tells it once, and goes on when the store is back", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["work", () => {}]] });
    world.faults.fail("claim");
    const id = await world.submit("work");
    await world.advance(5_000);
    assert.equal((await world.job(id)).status, "queued");
    assert.equal(world.log.about("could not claim jobs"), 1);
    world.faults.heal();
    await world.advance(250);
    await world.until(id, "completed");
    world.faults.fail("claim");
    await world.advance(5_000);
    assert.equal(world.log.about("could not claim jobs"), 2, "a new failure is told again");
  });
});
