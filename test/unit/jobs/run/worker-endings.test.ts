import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import { defineTask, PermanentError, type Task } from "../../../../src/jobs/tasks/task.ts";
import { WorkerWorld, ran } from "../../../support/node-worker.ts";

const boom = (): never => {
  throw new Error("boom");
};

describe("a job whose handler returns", () => {
  it("has the result null when it returns nothing", async (t) => {
    const { world, id } = await ran(t, () => {});
    assert.equal(await world.result(id), null);
  });

  it("waits for whatever can be awaited, not only for promises", async (t) => {
    const thenable = { then: (done: (value: string) => void) => done("later") };
    const { world, id } = await ran(t, () => thenable);
    assert.equal(await world.result(id), "later");
  });

  it("fails for good when the result cannot be JSON", async (t) => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    const results: Record<string, unknown> = { circular, bigint: 1n, function: () => 1, symbol: Symbol("s") };
    const tasks = Object.entries(results).map(([name, result]): [string, () => unknown] => [
      name,
      () => result,
    ]);
    const world = await WorkerWorld.open(t, { tasks });
    for (const name of Object.keys(results)) {
      const id = await world.submit(name);
      const job = await world.until(id, "failed");
      assert.equal(job.error?.code, "BAD_RESULT", name);
      assert.match(job.error.message, /result cannot be stored/);
      assert.equal(job.attempts, 1, "another attempt would end the same way");
    }
  });

  it("can take its context apart", async (t) => {
    const { world, id, job } = await ran(t, async (_payload, { log, progress, signal, job, attempt }) => {
      progress(40, "on it");
      log.info("halfway");
      return { aborted: signal.aborted, task: job.task, attempt };
    });
    assert.deepEqual(await world.result(id), { aborted: false, task: "work", attempt: 1 });
    assert.deepEqual([job.progress, job.progressMessage], [40, "on it"]);
    assert.deepEqual(await world.logs(id), ["halfway"]);
  });
});

describe("a job whose handler throws", () => {
  it("is tried again after 1 s, 2 s, 4 s, and fails when its attempts are spent", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["fails", boom]] });
    const submittedAt = world.clock.now();
    const id = await world.submit("fails", { maxAttempts: 4 });
    for (const [attempts, dueInMs] of [
      [1, 1_000],
      [2, 3_000],
      [3, 7_000],
    ] as const) {
      const job = await world.until(id, "scheduled");
      assert.deepEqual([job.attempts, job.failures, job.runAt - submittedAt], [attempts, attempts, dueInMs]);
      assert.equal(job.error?.message, "boom", "the last error is told while it waits");
      await world.advance(job.runAt - world.clock.now() - 1);
      assert.equal((await world.job(id)).attempts, attempts, "not before its time");
      await world.advance(1);
    }
    const job = await world.until(id, "failed");
    assert.deepEqual([job.attempts, job.failures, job.error?.code], [4, 4, "ERROR"]);
    await world.advance(3_600_000);
    assert.equal((await world.job(id)).attempts, 4, "a dead letter stays where it is");
  });

  it("follows the task's own retry policy and keeps the default for what it leaves out", async (t) => {
    const task: Task = { name: "fails", run: boom, retry: { attempts: 5, delay: 50, factor: 10 } };
    const world = await WorkerWorld.open(t, { tasks: [task] });
    const id = await world.submit("fails");
    for (const delayMs of [50, 500, 5_000, 50_000]) {
      const job = await world.until(id, "scheduled");
      assert.equal(job.runAt - world.clock.now(), delayMs);
      await world.advance(delayMs);
    }
    await world.until(id, "failed");
  });

  it("fails at once on a PermanentError, and on any error that says it is not retryable", async (t) => {
    const world = await WorkerWorld.open(t, {
      tasks: [
        ["permanent", () => Promise.reject(new PermanentError("no such customer"))],
        [
          "marked",
          () => Promise.reject(Object.assign(new Error("gone"), { retryable: false, code: "E_GONE" })),
        ],
      ],
    });
    const permanent = await world.until(await world.submit("permanent"), "failed");
    assert.deepEqual([permanent.attempts, permanent.error?.message], [1, "no such customer"]);
    const marked = await world.until(await world.submit("marked"), "failed");
    assert.deepEqual([marked.attempts, marked.error?.code], [1, "E_GONE"]);
  });

  it("keeps the first lines of the stack", async (t) => {
    const { job } = await ran(t, boom, "failed", { maxAttempts: 1 });
    const lines = job.error!.stack!.split("\n");
    assert.match(lines[1]!, /boom/);
    assert.ok(lines.length <= 10);
  });

  it("may have thrown anything: the worker goes on", async (t) => {
    const trap = (): never => {
      throw new Error("a trap");
    };
    const world = await WorkerWorld.open(t, {
      tasks: [
        // eslint-disable-next-line prefer-promise-reject-errors
        ["odd", () => Promise.reject(new Proxy({}, { get: trap, has: trap }))],
        ["fine", () => "fine"],
      ],
    });
    await world.until(await world.submit("odd", { maxAttempts: 1 }), "failed");
    await world.until(await world.submit("fine"), "completed");
  });
});

describe("a payload", () => {
  const strict = defineTask({
    name: "strict",
    schema: z.object({ size: z.number().int().positive().default(3) }),
    run: async ({ size }) => size * 2,
  });

  it("is refused at submit when it does not fit the schema, with the field at fault", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [strict as Task] });
    await assert.rejects(world.submit("strict", { payload: { size: -1 } }), {
      code: "BAD_PAYLOAD",
      details: { field: "payload.size" },
    });
    await assert.rejects(
      world.jobs.submit([
        { task: "strict", payload: {} },
        { task: "strict", payload: { size: "big" } },
      ]),
      { code: "BAD_PAYLOAD", details: { field: "[1].payload.size" } },
    );
    assert.equal((await world.store.jobs.list({ limit: 10 })).jobs.length, 0, "all or none");
  });

  it("reaches the handler as the schema made it, and is stored as it was sent", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [strict as Task] });
    const id = await world.submit("strict", { payload: {} });
    const job = await world.until(id, "completed");
    assert.equal(await world.result(id), 6);
    assert.equal(job.payload, "{}");
  });

  it("is checked again before the run: a job from before the schema fails for good", async (t) => {
    const first = await WorkerWorld.open(t, { tasks: [] });
    const id = await first.submit("strict", { payload: { size: "big" } });
    await first.worker.stop();
    const { store, clock } = first;
    const second = await WorkerWorld.open(t, { tasks: [strict as Task], store, clock, incarnation: "2" });
    const job = await second.until(id, "failed");
    assert.deepEqual([job.error?.code, job.attempts], ["BAD_PAYLOAD", 1]);
    assert.match(job.error!.message, /payload\.size/);
  });

  it("may be checked by a schema that needs time", async (t) => {
    const schema = z.object({ user: z.string().refine(async (user) => user !== "nobody", "unknown user") });
    const run = async ({ user }: { user: string }) => `hello ${user}`;
    const world = await WorkerWorld.open(t, {
      tasks: [defineTask({ name: "greet", schema, run }) as Task],
    });
    const id = await world.submit("greet", { payload: { user: "ada" } });
    await world.until(id, "completed");
    assert.equal(await world.result(id), "hello ada");
    await assert.rejects(world.submit("greet", { payload: { user: "nobody" } }), {
      code: "BAD_PAYLOAD",
      message: "payload.user: unknown user",
    });
  });

  it("may be any JSON value, and null when it is left out", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["echo", (payload) => payload]] });
    for (const payload of [null, false, 0, "", "\u0000 \ud83d\ude80", [], {}, { a: [{ b: null }] }]) {
      const id = await world.submit("echo", { payload });
      await world.until(id, "completed");
      assert.deepEqual(await world.result(id), payload);
    }
    const id = await world.submit("echo");
    await world.until(id, "completed");
    assert.equal(await world.result(id), null);
  });
});
