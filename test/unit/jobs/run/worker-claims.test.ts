import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import type { JobId } from "../../../../src/core/ids.ts";
import type { Handler } from "../../../../src/jobs/tasks/task.ts";
import { HeldRuns, WorkerWorld, heldWorld, QUICK } from "../../../support/node-worker.ts";

/** Counts how many run at once; each ends after a number of turns of the event loop. */
function crowd() {
  const seen = { now: 0, most: 0, order: [] as JobId[] };
  const run: Handler = async (turns, { job }) => {
    seen.order.push(job.id);
    seen.most = Math.max(seen.most, ++seen.now);
    for (let turn = 0; turn < (turns as number); turn++)
      await new Promise((resolve) => setImmediate(resolve));
    seen.now--;
  };
  return { seen, run };
}

async function allFinished(world: WorkerWorld, ids: readonly JobId[]): Promise<void> {
  for (const id of ids) await world.until(id, "completed");
}

describe("concurrency", () => {
  it("is never exceeded, whatever the jobs take, and every job runs once", async (t) => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 7 }),
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 60 }),
        async (concurrency, turns) => {
          const { seen, run } = crowd();
          const world = await WorkerWorld.open(t, { tasks: [["work", run]], settings: { concurrency } });
          const answers = await world.jobs.submit(turns.map((payload) => ({ task: "work", payload })));
          for (const { id } of answers) await world.until(id, "completed");
          assert.ok(seen.most <= concurrency, `${seen.most} ran at once`);
          assert.equal(new Set(seen.order).size, turns.length);
          assert.equal(seen.order.length, turns.length);
          await world.stop();
        },
      ),
      { numRuns: 12 },
    );
  });

  it("is used up: as many slow jobs run as there are slots", async (t) => {
    const { world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 3 } });
    await world.submitMany(5, "held");
    await world.rest();
    assert.equal(world.worker.active, 3);
    assert.equal(world.worker.list().length, 3);
  });

  it("lets ten thousand handlers that never wait run without a deep stack", async (t) => {
    const world = await WorkerWorld.open(t, {
      tasks: [["sync", () => 1]],
      settings: { concurrency: 10_000, prefetchMax: 10_000 },
    });
    const ids = await world.submitMany(10_000, "sync");
    await allFinished(world, ids.slice(-1));
    assert.ok((await world.statuses(ids)).every((status) => status === "completed"));
  });
});

describe("claiming ahead", () => {
  it("does not happen for slow jobs: a crash would strand them", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 2 } });
    const ids = await world.submitMany(10, "held");
    for (let done = 0; done < 4; done++) {
      await world.advance(60_000);
      const statuses = await world.statuses(ids);
      assert.equal(statuses.filter((status) => status === "processing").length, 2);
      held.finish(done);
    }
  });

  it("follows the rate of short jobs, up to its limit, and ends with it", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite", {
      tasks: QUICK,
      settings: { concurrency: 1, prefetchMax: 20 },
    });
    await allFinished(world, await world.submitMany(200, "quick"));
    const ids = await world.submitMany(100, "held");
    await world.rest();
    const claimed = (await world.statuses(ids)).filter((status) => status === "processing").length;
    assert.ok(claimed > 1 && claimed <= 21, `${claimed} claimed`);
    assert.equal(held.started.length, 1);
    for (let run = 0; run < claimed; run++) {
      await world.advance(1_000);
      held.finish(run);
    }
    await world.advance(1_000);
    const later = (await world.statuses(ids)).filter((status) => status === "processing").length;
    assert.equal(later, 1, "the jobs have become slow");
  });
});

describe("a queue", () => {
  it("that is paused keeps its jobs, says so, and goes on when it is resumed", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["work", () => {}]] });
    await world.store.queues.setPaused("mail", true);
    const id = await world.submit("work", { queue: "mail" });
    const other = await world.submit("work");
    await world.until(other, "completed");
    assert.equal((await world.jobs.get(id))?.waitingFor?.code, "queue_paused");
    await world.store.queues.setPaused("mail", false);
    world.worker.wake();
    await world.until(id, "completed");
  });

  it("that this node does not serve is left alone, and the job says so", async (t) => {
    const world = await WorkerWorld.open(t, {
      tasks: [["work", () => {}]],
      settings: { queues: new Set(["mail"]) },
    });
    const id = await world.submit("work");
    const served = await world.submit("work", { queue: "mail" });
    await world.until(served, "completed");
    const job = await world.jobs.get(id);
    assert.deepEqual([job?.status, job?.waitingFor?.code], ["queued", "no_worker"]);
  });
});

describe("a job of a task that nobody knows", () => {
  it("waits, says why, and runs once a node has the task", async (t) => {
    const first = await WorkerWorld.open(t, { tasks: [["other", () => {}]] });
    const ids = [await first.submit("newcomer"), await first.submit("newcomer", { priority: 5 })];
    await first.until(await first.submit("other"), "completed");
    for (const id of ids) {
      const job = await first.jobs.get(id);
      assert.deepEqual([job?.status, job?.attempts, job?.waitingFor?.code], ["queued", 0, "unknown_task"]);
      assert.match(job!.waitingFor!.message, /newcomer.*--tasks/);
    }
    await first.worker.stop();
    const { store, clock } = first;
    const second = await WorkerWorld.open(t, {
      tasks: [["newcomer", () => "hello"]],
      store,
      clock,
      incarnation: "2",
    });
    await allFinished(second, ids);
  });
});

describe("jobs that were running when their node died", () => {
  async function afterCrashes(t: TestContext, crashes: number) {
    const held = new HeldRuns();
    const first = await WorkerWorld.open(t, { tasks: [["held", held.stubborn]] });
    const ids = await first.submitMany(3, "held");
    for (let count = 1; count <= crashes; count++) {
      for (const id of ids) await first.until(id, "processing");
      await first.takeLeases();
      if (count < crashes) await first.advance(2_000); // until the worker hears of it and claims again
    }
    await first.worker.stop();
    const runs = new HeldRuns();
    const { store, clock } = first;
    const tasks: [string, Handler][] = [["held", runs.polite]];
    const world = await WorkerWorld.open(t, { tasks, store, clock, incarnation: "2" });
    return { world, ids, runs };
  }

  it("all run again at once after a first crash", async (t) => {
    const { world, ids, runs } = await afterCrashes(t, 1);
    await world.rest();
    const found = runs.started.map(({ job, attempt }) => [job.id, job.crashes, attempt]);
    const expected = ids.map((id) => [id, 1, 2]);
    assert.deepEqual(found, expected);
  });

  it("run one at a time on their last chance, beside others that are not under suspicion", async (t) => {
    const { world, ids: suspects, runs } = await afterCrashes(t, 2);
    const fresh = await world.submitMany(2, "held");
    await world.advance(10_000);
    const running = runs.started.map(({ job }) => job.id);
    assert.equal(running.filter((id) => suspects.includes(id)).length, 1);
    assert.equal(running.filter((id) => fresh.includes(id)).length, 2);
    const waiting = suspects.find((id) => !running.includes(id))!;
    assert.equal((await world.jobs.get(waiting))?.waitingFor?.code, "suspect");
    for (let count = 2; count <= 3; count++) {
      runs.finish(runs.started.findLastIndex(({ job }) => suspects.includes(job.id)));
      await world.rest();
      assert.equal(runs.started.filter(({ job }) => suspects.includes(job.id)).length, count);
    }
  });
});

describe("a delayed job", () => {
  it("starts when it is due and not before, without being polled for", async (t) => {
    const { seen, run } = crowd();
    const world = await WorkerWorld.open(t, { tasks: [["work", run]] });
    const id = await world.submit("work", { payload: 0, delayMs: 12_345 });
    assert.equal((await world.jobs.get(id))?.waitingFor?.code, "not_due");
    await world.advance(12_344);
    assert.equal(seen.order.length, 0);
    await world.advance(1);
    assert.equal((await world.until(id, "completed")).startedAt, (await world.job(id)).runAt);
  });

  it("does not hold up one that is due before it", async (t) => {
    const { seen, run } = crowd();
    const world = await WorkerWorld.open(t, { tasks: [["work", run]] });
    const late = await world.submit("work", { payload: 0, delayMs: 60_000 });
    const soon = await world.submit("work", { payload: 0, delayMs: 100 });
    await world.advance(100);
    assert.deepEqual(seen.order, [soon]);
    await world.advance(59_900);
    assert.deepEqual(seen.order, [soon, late]);
  });
});

describe("a job that is submitted while a claim is under way", () => {
  it("starts as soon as that claim is answered, without waiting for the next look", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["work", () => {}]] });
    await world.rest();
    const letGo = world.faults.holdAnswers("claim");
    world.worker.wake(); // finds nothing, and does not know it yet
    const id = await world.submit("work");
    await world.rest();
    assert.equal((await world.job(id)).status, "queued");
    letGo();
    await world.until(id, "completed");
  });
});

describe("an idle worker", () => {
  it("sleeps: it asks the store once a second and no more", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["work", () => {}]] });
    await world.rest();
    const before = world.faults.count("claim");
    await world.advance(10_000);
    assert.ok(world.faults.count("claim") - before <= 10);
  });

  it("asks nothing while all its slots are taken", async (t) => {
    const { world } = await heldWorld(t, "held", "polite", { settings: { concurrency: 1 } });
    await world.submitMany(3, "held");
    await world.advance(100);
    const before = world.faults.count("claim");
    await world.advance(60_000);
    assert.equal(world.faults.count("claim"), before);
  });
});
