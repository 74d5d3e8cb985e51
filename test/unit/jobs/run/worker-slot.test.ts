import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { topics } from "../../../../src/channels/channel-names.ts";
import { FakeSlots } from "../../../support/node-slots.ts";
import { HeldRuns, WorkerWorld, type WorkerWorldOptions } from "../../../support/node-worker.ts";

const LIMITS = { timeoutMs: 10_000, cleanupMs: 2_000 };

/** A worker with an open slot, a task whose runs the test ends, and one that ends at once. */
async function slotWorld(t: TestContext, options: Partial<WorkerWorldOptions> = {}) {
  const held = new HeldRuns();
  const slots = new FakeSlots();
  const ran: string[] = [];
  const world = await WorkerWorld.open(t, {
    tasks: [
      ["held", held.polite],
      ["quick", (_payload, { job }) => void ran.push(job.id)],
    ],
    slots,
    ...options,
  });
  await world.rest();
  assert.ok(slots.lease, "an idle worker opens its slot");
  return { world, slots, held, ran };
}

describe("the slot of a worker", () => {
  it("has its jobs started as soon as they are heard of, and under a lease that is renewed", async (t) => {
    const { world, slots, held } = await slotWorld(t);
    await world.advance(60_000);
    const job = await slots.put(world, "held");
    world.worker.give(job);
    assert.equal(held.started.length, 1);
    await world.advance(60_000);
    held.finish(0, "done");
    await world.until(job.id, "completed");
    assert.equal((await world.job(job.id)).attempts, 1);
    assert.deepEqual(await world.reap(), []);
  });

  it("is looked into every second: a job whose hint is lost starts once, even if the hint is only late", async (t) => {
    const { world, slots, ran } = await slotWorld(t);
    const job = await slots.put(world, "quick");
    await world.advance(1_000);
    await world.until(job.id, "completed");
    world.worker.give(job);
    await world.advance(3_000);
    assert.deepEqual(ran, [job.id]);
  });

  it("has jobs of other processes read once, however often they are hinted at", async (t) => {
    const { world, slots, ran } = await slotWorld(t);
    const job = await slots.put(world, "quick");
    const hint = { key: "", body: { lease: job.lease, ref: job.ref } };
    const { promise, resolve } = Promise.withResolvers<void>();
    slots.held = promise;
    await world.publish(topics.jobGiven("1"), hint, hint);
    await world.rest();
    await world.advance(1_000); // a look meets the reading
    resolve();
    await world.until(job.id, "completed");
    await world.publish(topics.jobGiven("1"), hint);
    await world.advance(3_000);
    assert.deepEqual(ran, [job.id]);
  });

  it("ignores hints of jobs that it runs", async (t) => {
    const { world, slots, held } = await slotWorld(t);
    const job = await slots.put(world, "held");
    world.worker.give(job);
    await world.publish(topics.jobGiven("1"), { key: "", body: { lease: job.lease, ref: job.ref } });
    await world.advance(3_000);
    assert.equal(held.started.length, 1);
  });

  it("gives a job once that is heard of, and has ended, during a look", async (t) => {
    const { world, slots, ran } = await slotWorld(t);
    const job = await slots.put(world, "quick");
    const { promise, resolve } = Promise.withResolvers<void>();
    slots.held = promise;
    await world.advance(1_000);
    assert.deepEqual(ran, []);
    world.worker.give(job);
    await world.until(job.id, "completed");
    resolve();
    await world.advance(3_000);
    assert.deepEqual(ran, [job.id]);
  });

  it("does not show runs whose results are not stored yet", async (t) => {
    const { world, slots, ran } = await slotWorld(t);
    const job = await slots.put(world, "quick");
    const letGo = world.faults.holdAnswers("record");
    world.worker.give(job);
    await world.advance(5_000);
    letGo();
    await world.rest();
    assert.deepEqual(ran, [job.id]);
  });

  it("is closed when all places have been taken for a while, and what came too late goes to others", async (t) => {
    const { world, slots, held } = await slotWorld(t, { settings: { concurrency: 2 } });
    for (let place = 0; place < 2; place++) world.worker.give(await slots.put(world, "held"));
    const late = await slots.put(world, "held");
    world.worker.give(late);
    await world.until(late.id, "queued");
    const { attempts, interruptions, crashes } = await world.job(late.id);
    assert.deepEqual({ attempts, interruptions, crashes }, { attempts: 0, interruptions: 0, crashes: 0 });
    await world.advance(1_000);
    assert.equal(slots.lease, null);
    held.finish(0);
    held.finish(1);
    await world.until(late.id, "processing");
    held.finish(2);
    await world.advance(2_000);
    assert.ok(slots.lease, "there is room again");
  });

  it("is open while the only run waits for another job, and closed when that run goes on", async (t) => {
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const went: string[] = [];
    const { world, slots } = await slotWorld(t, {
      settings: { concurrency: 1 },
      tasks: [
        [
          "parent",
          async (_payload, { call }) => {
            await call("elsewhere", null).catch(() => went.push("on"));
            await over;
          },
        ],
        ["held", () => void went.push("meanwhile")],
      ],
    });
    const parent = await slots.put(world, "parent");
    world.worker.give(parent);
    await world.advance(1_000);
    assert.ok(slots.lease, "its place is free");
    const other = await slots.put(world, "held");
    world.worker.give(other);
    await world.until(other.id, "completed");
    const { jobs } = await world.store.jobs.list({ task: "elsewhere", limit: 1 });
    await world.store.jobs.cancel(jobs[0]!.id, null);
    await world.advance(1_200); // followers look every second
    assert.deepEqual(went, ["meanwhile", "on"]);
    assert.equal(slots.lease, null);
    end();
    await world.until(parent.id, "completed");
  });

  it("is not touched by batches of short jobs", async (t) => {
    const { world, slots } = await slotWorld(t, { settings: { concurrency: 2, prefetchMax: 500 } });
    for (let batch = 0; batch < 3; batch++) {
      const ids = await world.submitMany(200, "quick");
      await world.until(ids.at(-1)!, "completed");
    }
    assert.deepEqual(slots.calls, ["open"]);
  });

  it("is closed while handlers hold up the process", async (t) => {
    const busy = () => world.clock.hold(150);
    const { world, slots } = await slotWorld(t, { tasks: [["busy", busy]] });
    world.worker.give(await slots.put(world, "busy"));
    await world.advance(1_000);
    assert.equal(slots.lease, null);
    await world.advance(8_000);
    assert.equal(slots.lease, null);
    await world.advance(2_000);
    assert.ok(slots.lease);
  });

  it("is closed by a drain, and what was put there before goes to others without an attempt burnt", async (t) => {
    const { world, slots, held } = await slotWorld(t);
    const [heard, unheard] = [await slots.put(world, "held"), await slots.put(world, "held")];
    slots.failing = true;
    const drained = world.worker.drain(LIMITS);
    world.worker.give(heard);
    await world.advance(500);
    slots.failing = false;
    await world.advance(500);
    assert.deepEqual(await drained, { interrupted: 0 });
    assert.equal(slots.lease, null);
    assert.equal(held.started.length, 0);
    for (const { id } of [heard, unheard]) {
      const { status, attempts, interruptions, crashes } = await world.job(id);
      assert.deepEqual([status, attempts, interruptions, crashes], ["queued", 0, 0, 0]);
    }
  });

  it("is open again after a drain that was called off", async (t) => {
    const { world, slots } = await slotWorld(t);
    const callOff = new AbortController();
    world.worker.give(await slots.put(world, "held"));
    const drained = world.worker.drain({ ...LIMITS, callOff: callOff.signal });
    await world.advance(100);
    assert.equal(slots.lease, null);
    callOff.abort();
    await world.rest();
    assert.equal(await drained, null);
    await world.advance(1_000);
    assert.ok(slots.lease);
  });

  it("goes with its lease: what is heard of later is not run, and the next slot has another lease", async (t) => {
    const { world, slots, held } = await slotWorld(t);
    const job = await slots.put(world, "held");
    const { lease } = slots;
    await world.takeLeases();
    await world.advance(3_000);
    world.worker.give(job);
    await world.rest();
    assert.notEqual(slots.lease, lease);
    assert.equal(held.started.filter((run) => run.job.jobEpoch === 1).length, 0);
    await world.until(job.id, "processing");
    assert.equal((await world.job(job.id)).crashes, 1);
  });

  it("is closed before another is opened, if it is not known whether it is open", async (t) => {
    const { world, slots } = await slotWorld(t);
    slots.failing = true;
    await world.advance(1_500);
    slots.failing = false;
    slots.calls.length = 0;
    await world.advance(1_500);
    assert.equal(slots.calls[0], "close");
    assert.ok(slots.lease);
  });
});
