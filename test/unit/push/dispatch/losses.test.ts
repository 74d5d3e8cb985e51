import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Message } from "../../../../src/channels/channels.ts";
import { HeldRuns } from "../../../support/node-worker.ts";
import { dispatching, TIMEOUT_MS, type Fate } from "./world.ts";

const isDispatch = (queue: string): boolean => queue.startsWith("job.dispatch.");

describe("a dispatch that goes astray", () => {
  for (const fate of ["drop", "reject"] satisfies Fate[]) {
    it(`is made again after the timeout when its message was lost (${fate})`, async (t) => {
      const { world, runs, leader } = await dispatching(t);
      await world.node("worker", { tasks: { work: runs.quick } });
      let lost = 0;
      leader.channels.fate = (queue) => (isDispatch(queue) && lost++ === 0 ? fate : "pass");
      const startedAt = world.clock.monotonic();
      const ids = await world.submit(5);
      await world.until(ids, "completed");
      assert.ok(world.clock.monotonic() - startedAt >= TIMEOUT_MS * 0.9, "the mark has to time out first");
      runs.assertOnce(ids);
      assert.equal((await world.job(ids[0]!)).attempts, 1, "nothing was burnt");
    });
  }

  it("starts one run when it is delivered twice, to two nodes", async (t) => {
    const { world, runs, leader } = await dispatching(t);
    const twice = new Map<string, readonly Message[]>();
    leader.channels.fate = (queue, messages) => {
      if (isDispatch(queue)) {
        const copies = messages.map(({ key, body }) => ({ key: `${key} again`, body }));
        twice.set(queue, copies);
        void leader.channels.inner.send(queue, copies);
      }
      return "pass";
    };
    for (const name of ["one", "two"])
      await world.node(name, { tasks: { work: runs.slow(1) }, settings: { concurrency: 5 } });
    const ids = await world.submit(100);
    await world.until(ids, "completed");
    assert.ok(twice.size > 0);
    // Sent after the copies, so that the copies have been delivered when these have run.
    const later = await world.submit(20);
    await world.until(later, "completed");
    runs.assertOnce([...ids, ...later]);
  });

  it("goes on to those who know the task when it came to one who does not", async (t) => {
    const { world, runs, leader } = await dispatching(t, { timeoutMs: 60_000 }); // so long that only being sent on helps
    await world.node("knows", { tasks: { work: runs.quick, rare: runs.quick } });
    await world.until(await world.submit(1, { task: "rare" }), "completed");
    // The leader has not heard of this one when it sends to all workers of the queue.
    leader.channels.fate = (queue, messages) => {
      if (!isDispatch(queue)) return "pass";
      void strange.channels.inner.send("job.dispatch.default", messages);
      return "drop";
    };
    const strange = await world.node("strange", { tasks: { work: runs.quick } });
    const ids = await world.submit(20, { task: "rare" });
    await world.until(ids, "completed");
    runs.assertOnce(ids);
  });
});

describe("a worker that is drained", () => {
  it("gives a message that it does not claim to another", async (t) => {
    const { world, runs } = await dispatching(t, { timeoutMs: 60_000 });
    const stuck = await world.node("stuck", { tasks: { work: runs.quick } });
    await world.until(await world.submit(1), "completed"); // it is known, and listens
    stuck.inbox.claim = () => Promise.resolve({ jobs: [], held: true, nextDueInMs: null }); // it takes nothing
    const ids = await world.submit(5);
    await world.node("other", { tasks: { work: runs.quick } });
    await world.until(ids, "completed");
    runs.assertOnce(ids);
  });
});

describe("a worker that hears of nobody who dispatches", () => {
  it("takes jobs from the store, also marked ones, until somebody dispatches again", async (t) => {
    const { world, runs, leader: first } = await dispatching(t, { timeoutMs: 60_000 });
    first.channels.fate = () => "drop";
    await world.node("worker", { tasks: { work: runs.quick } });
    const marked = await world.submit(5);
    await world.eventually("they are marked", () => world.outstanding().size > 0);
    await first.end();
    const waiting = await world.submit(5);
    await world.until([...marked, ...waiting], "completed");
    assert.equal(world.log.about("no leader dispatches jobs"), 1);

    await world.lead(60_000);
    await world.eventually("it is led", () => world.log.about("jobs are dispatched again") === 1);
    const pushed = await world.submit(5);
    await world.until(pushed, "completed");
    runs.assertOnce([...marked, ...waiting, ...pushed]);
    assert.equal(world.log.about("no leader dispatches jobs"), 1);
  });
});

describe("a drain that is called off", () => {
  it("leaves what runs alone, and takes what is dispatched again", async (t) => {
    const held = new HeldRuns();
    const { world } = await dispatching(t);
    const node = await world.node("worker", { tasks: { work: held.polite } });
    const [id] = await world.submit(1);
    await world.eventually("it runs", () => held.started.length === 1);
    const callOff = new AbortController();
    const draining = node.worker.drain({ timeoutMs: 60_000, cleanupMs: 1_000, callOff: callOff.signal });
    const [late] = await world.submit(1);
    await world.pass(100);
    assert.equal((await world.job(late!)).status, "queued");
    callOff.abort();
    assert.equal(await draining, null);
    await world.eventually("the next one runs", () => held.started.length === 2);
    assert.deepEqual(held.reasons, []);
    held.finish(0, "1");
    held.finish(1, "2");
    await world.until([id!, late!], "completed");
    assert.equal((await world.job(id!)).attempts, 1);
  });
});
