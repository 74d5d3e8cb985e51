import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { JobId } from "../../../../src/core/ids.ts";
import { childJobs } from "../../../../src/jobs/run/run-jobs.ts";
import type { Handler } from "../../../../src/jobs/tasks/task.ts";
import { HeldRuns, WorkerWorld } from "../../../support/node-worker.ts";

const double: Handler = (n) => (n as number) * 2;
const quadruple: Handler = async (n, { call }) => (await call<number>("double", n)) * 2;

function open(t: TestContext, concurrency: number, tasks: Readonly<Record<string, Handler>>) {
  return WorkerWorld.open(t, { tasks: Object.entries(tasks), settings: { concurrency, prefetchMax: 1 } });
}

describe("a run that waits for another job", () => {
  it("gives its slot away: a parent and its child need one slot, also three levels of them", async (t) => {
    const sixteen: Handler = async (n, { call }) => (await call<number>("quadruple", n)) * 4;
    const world = await open(t, 1, { double, quadruple, sixteen });
    const id = await world.submit("sixteen", { payload: 1 });
    await world.until(id, "completed");
    assert.equal(await world.result(id), 16);
  });

  it("does not keep other parents from their children", async (t) => {
    const world = await open(t, 2, { double, quadruple });
    const ids = await world.submitMany(20, "quadruple", { payload: 3 });
    for (const id of ids) await world.until(id, "completed");
  });

  it("may wait for several at once, or for the handle of a job that it submitted", async (t) => {
    const sum: Handler = async (n, { call, submit }) => {
      const handle = await submit<number>("double", n);
      const all = await Promise.all([call<number>("double", n), call<number>("double", n), handle.result()]);
      return all.reduce((total, each) => total + each, 0);
    };
    const world = await open(t, 1, { double, sum });
    const id = await world.submit("sum", { payload: 5 });
    await world.until(id, "completed");
    assert.equal(await world.result(id), 30);
    const { jobs } = await world.store.jobs.list({ task: "double", limit: 10 });
    assert.equal(jobs.length, 3);
  });

  it("goes on when a slot is free, before jobs that have not begun", async (t) => {
    const held = new HeldRuns();
    const order: string[] = [];
    const parent: Handler = async (_, { call }) => {
      await call("child", null);
      order.push("parent");
    };
    const world = await open(t, 1, { parent, child: held.stubborn, next: () => void order.push("next") });
    const id = await world.submit("parent");
    await world.rest();
    const busy = await world.submit("child", { priority: 2 });
    const next = await world.submitMany(3, "next", { priority: 1 });
    held.finish(0);
    await world.rest();
    assert.deepEqual([held.started.length, order], [2, []], "the slot is taken by what is urgent");
    held.finish(1);
    for (const each of [id, busy, ...next]) await world.until(each, "completed");
    assert.deepEqual(order, ["parent", "next", "next", "next"]);
  });

  it("never runs with more others than there are slots", async (t) => {
    let now = 0;
    let most = 0;
    const counted = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
      most = Math.max(most, ++now);
      const answer = await work();
      now--;
      return answer;
    };
    const step = (): Promise<void> => counted(() => new Promise((resolve) => setImmediate(resolve)));
    const parent: Handler = async (_, { call }) => {
      await step();
      await call("child", null);
      await step();
      await call("child", null);
      await step();
    };
    const world = await open(t, 2, { parent, child: step });
    for (const id of await world.submitMany(12, "parent")) await world.until(id, "completed");
    assert.equal(most, 2);
  });

  it("is cancelled at once, and leaves its slot in order", async (t) => {
    const held = new HeldRuns();
    const parent: Handler = (_, { call }) => call("child", null);
    const world = await open(t, 1, { parent, child: held.polite, double });
    const id = await world.running("parent");
    await world.rest();
    await world.jobs.cancel(id, "no longer wanted");
    assert.equal((await world.until(id, "cancelled")).error?.message, "no longer wanted");
    held.finish(0);
    for (const each of await world.submitMany(3, "double", { payload: 1 }))
      await world.until(each, "completed");
    assert.equal(world.worker.active, 0);
  });

  it("counts its timeout while it waits", async (t) => {
    const held = new HeldRuns();
    const parent: Handler = (_, { call }) => call("child", null);
    const world = await open(t, 1, { parent, child: held.polite });
    const id = await world.running("parent", { timeoutMs: 1_000, maxAttempts: 1 });
    await world.advance(1_001);
    assert.equal((await world.until(id, "failed")).error?.code, "TIMEOUT");
    held.finish(0);
    await world.rest();
    assert.equal(world.worker.active, 0);
  });

  it("is interrupted by a drain, and its next run gets the result of the same child", async (t) => {
    let children = 0;
    const parent: Handler = (_, { call }) => call("child", { of: 1 });
    const held = new HeldRuns();
    const child: Handler = (payload, context) => {
      children++;
      return children === 1 ? held.polite(payload, context) : "done";
    };
    const world = await open(t, 2, { parent, child });
    const id = await world.running("parent");
    await world.rest();
    const drained = world.worker.drain({ timeoutMs: 10, cleanupMs: 10 });
    await world.advance(1_000);
    assert.deepEqual(await drained, { interrupted: 2 });
    assert.equal((await world.job(id)).status, "queued");
    await world.worker.stop();
    await world.worker.start();
    await world.until(id, "completed");
    assert.equal(await world.result(id), "done");
    assert.equal((await world.store.jobs.list({ task: "child", limit: 10 })).jobs.length, 1);
  });

  it("meets the children of its earlier attempt, and tries those again that failed", async (t) => {
    const runs: Record<string, number> = {};
    const count = (name: string): number => (runs[name] = (runs[name] ?? 0) + 1);
    const world = await open(t, 1, {
      good: () => count("good"),
      bad: () => {
        if (count("bad") === 1) throw Object.assign(new Error("not yet"), { retryable: false });
        return "fine";
      },
      parent: async (_, { call }) => [await call("good", null), await call("bad", null)],
    });
    const id = await world.submit("parent", { maxAttempts: 2 });
    await world.until(id, "scheduled");
    assert.match((await world.job(id)).error!.message, /failed: not yet/);
    await world.advance(5_000);
    await world.until(id, "completed");
    assert.deepEqual(await world.result(id), [1, "fine"]);
    assert.deepEqual(runs, { good: 1, bad: 2 });
  });

  it("says so where jobs cannot be submitted, as on a thread or in an agent", async () => {
    const waiter = {
      signal: new AbortController().signal,
      wait: <Answer>(work: () => Promise<Answer>) => work(),
    };
    const { submit, call } = childJobs(undefined, { id: "a-1" as JobId, trace: null, waiter });
    await assert.rejects(submit("double", 1), { code: "NOT_AVAILABLE" });
    await assert.rejects(call("double", 1), { code: "NOT_AVAILABLE" });
  });

  it("ends in order when it does not wait for what it called", async (t) => {
    let now = 0;
    let most = 0;
    const held = new HeldRuns();
    const world = await open(t, 1, {
      hasty: (_, { call }) => void call("child", null).catch(() => {}),
      child: held.stubborn,
      counted: async () => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setImmediate(resolve));
        now--;
      },
    });
    const id = await world.submit("hasty");
    await world.until(id, "completed");
    await world.rest();
    held.finish(0);
    for (const each of await world.submitMany(5, "counted")) await world.until(each, "completed");
    assert.deepEqual([most, world.worker.active], [1, 0]);
  });
});
