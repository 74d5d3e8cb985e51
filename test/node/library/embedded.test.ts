import assert from "node:assert/strict";
import * as api from "@opentelemetry/api";
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, it } from "node:test";
import { z } from "zod";
import {
  type Baton,
  createNode,
  defineTask,
  JobFailed,
  type NodeOptions,
  PermanentError,
} from "../../../src/index.ts";
import { openTelemetry } from "../../../src/library/otel.ts";
import { MemoryTracer } from "../../support/memory-tracer.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";

async function open(t: Scope, options: NodeOptions): Promise<Baton> {
  const baton = await createNode({ store: "memory", ...options });
  await baton.start();
  atEnd(t, () => baton.stop({ hurry: true }));
  return baton;
}

const double = defineTask({
  name: "double",
  schema: z.object({ n: z.int() }),
  run: ({ n }, { log, progress }) => {
    log(`doubles ${n}`);
    progress(50, "half");
    return { n: n * 2, at: new Date(0) };
  },
});
const fail = defineTask({
  name: "fail",
  run: (message: string) => {
    throw Object.assign(new PermanentError(message), { code: "NO_STOCK" });
  },
});
/** Ends with its signal. */
const wait = defineTask({
  name: "wait",
  run: (_: null, { signal }) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    }),
});

describe("a node in a program", () => {
  it("listens nowhere, and has a name of its own beside others", async (t) => {
    const [first, second] = [await open(t, {}), await open(t, {})];
    assert.throws(() => first.url, { code: "STOPPED" });
    assert.notEqual(first.name, second.name);
    const open8420 = await open(t, { http: { port: 0 }, dashboard: false });
    assert.match(open8420.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  });

  it("returns a handle: its result in JSON, its log, its events", async (t) => {
    const baton = await open(t, { tasks: [double] });
    const job = await baton.submit(double, { n: 21 }, { tags: ["eu"], priority: 10 });
    assert.equal(job.existed, false);
    assert.deepEqual(await job.result({ timeout: "10s" }), { n: 42, at: "1970-01-01T00:00:00.000Z" });
    const lines = await job.logs();
    assert.deepEqual(
      lines.map(({ level, message }) => [level, message]),
      [["info", "doubles 21"]],
    );
    assert.ok(lines[0]!.at instanceof Date);
    const found = await job.job();
    assert.deepEqual([found.status, found.payload, found.tags], ["completed", { n: 21 }, ["eu"]]);
    assert.ok(found.createdAt instanceof Date);
    const seen = [];
    for await (const event of job.events()) seen.push(event.type);
    assert.deepEqual(seen, ["log", "progress", "completed"]);
  });

  it("tells of a job as it changes", async (t) => {
    const baton = await open(t, { tasks: [wait] });
    const job = await baton.submit(wait, null, { delay: 50 });
    const seen: string[] = [];
    for await (const event of job.events()) {
      seen.push(event.type);
      if (event.type === "processing") await job.cancel("seen enough");
    }
    assert.deepEqual(
      seen.filter((type) => type !== "queued"),
      ["scheduled", "processing", "cancelled"],
    );
  });

  it("rejects a result with JobFailed, whose cause is the error of the run", async (t) => {
    const baton = await open(t, { tasks: [fail] });
    const job = await baton.submit(fail, "sold out");
    await assert.rejects(job.result(), (error: unknown) => {
      assert.ok(error instanceof JobFailed);
      assert.deepEqual(
        [error.code, error.jobStatus, error.error?.code],
        ["JOB_FAILED", "failed", "NO_STOCK"],
      );
      assert.equal((error.cause as Error).message, "sold out");
      return true;
    });
  });

  it("waits no longer than it is told to, and the job goes on", async (t) => {
    const baton = await open(t, { tasks: [wait] });
    const job = await baton.submit(wait, null);
    await assert.rejects(job.result({ timeout: "20ms" }), { code: "TIMEOUT" });
    const reason = new Error("the request was closed");
    await assert.rejects(job.result({ signal: AbortSignal.abort(reason) }), reason);
    assert.notEqual((await job.job()).status, "failed");
    await assert.rejects(job.result({ timeout: "soon" as "1s" }), { code: "BAD_REQUEST" });
  });

  it("cancels and retries, and says when it cannot", async (t) => {
    let runs = 0;
    const twice = defineTask({
      name: "twice",
      run: () => {
        if (++runs === 1) throw new PermanentError("not yet");
        return runs;
      },
    });
    const baton = await open(t, { tasks: [twice, wait] });
    const job = await baton.submit(twice, null);
    await assert.rejects(job.result(), { code: "JOB_FAILED" });
    await job.retry();
    assert.equal(await job.result(), 2);
    await assert.rejects(job.retry(), { code: "JOB_NOT_RETRYABLE" });
    await assert.rejects(job.cancel(), { code: "JOB_FINISHED" });
    const waiting = await baton.submit(wait, null, { delay: "1h" });
    await waiting.cancel("no longer wanted");
    await assert.rejects(waiting.result(), /was cancelled: no longer wanted/);
    const nowhere = baton.job("here-00000000-0000-7000-8000-000000000000");
    for (const call of [nowhere.job(), nowhere.result(), nowhere.cancel(), nowhere.retry()])
      await assert.rejects(call, { code: "NOT_FOUND" });
  });

  it("meets the job of the same key", async (t) => {
    const baton = await open(t, { tasks: [double] });
    const first = await baton.submit(double, { n: 1 }, { idempotencyKey: "once" });
    const second = await baton.submit(double, { n: 1 }, { idempotencyKey: "once" });
    assert.deepEqual([second.id, second.existed], [first.id, true]);
  });

  it("submits many, all or none", async (t) => {
    const baton = await open(t, { tasks: [double, fail] });
    const [one, two, three] = await baton.submitMany([
      [double, { n: 1 }],
      [fail, "no"],
      ["double", { n: 3 }, { priority: 5 }],
    ]);
    assert.equal((await one.result()).n, 2);
    await assert.rejects(two.result(), { code: "JOB_FAILED" });
    assert.deepEqual(await three.result(), { n: 6, at: "1970-01-01T00:00:00.000Z" });
    const before = (await baton.services.jobs.list({ limit: 10 })).jobs.length;
    await assert.rejects(
      baton.submitMany([
        [double, { n: 1 }],
        [double, { n: 1.5 }],
      ]),
      {
        code: "BAD_PAYLOAD",
        details: { field: "[1].payload.n" },
      },
    );
    const wrong = baton.submitMany([
      [double, { n: 1 }],
      [double, { n: 1 }, { dealy: "1s" } as object],
    ]);
    await assert.rejects(wrong, {
      code: "BAD_REQUEST",
      message: '[1]."dealy" is not a known option; did you mean "delay"?',
    });
    await assert.rejects(baton.submitMany([double as never]), { details: { field: "[0]" } });
    assert.equal((await baton.services.jobs.list({ limit: 10 })).jobs.length, before);
  });

  it("names the option of a job that is wrong", async (t) => {
    const baton = await open(t, { tasks: [double] });
    const wrong: [options: object, field: string, message: RegExp][] = [
      [{ delay: "5 minutes" }, "delay", /^delay must be a duration such as/],
      [{ delay: "1s", runAt: new Date(0) }, "runAt", /^runAt and delay exclude each other/],
      [{ runAt: "2026-01-01" }, "runAt", /^runAt must be a valid Date/],
      [{ attempts: 0 }, "attempts", /^attempts must be a whole number from 1/],
      [{ maxAttempts: 3 }, "maxAttempts", /^"maxAttempts" is not a known option/],
    ];
    for (const [options, field, message] of wrong)
      await assert.rejects(baton.submit(double, { n: 1 }, options), {
        code: "BAD_REQUEST",
        message,
        details: { field },
      });
    await assert.rejects(baton.submit({} as typeof double, { n: 1 }), {
      code: "BAD_REQUEST",
      details: { field: "task" },
    });
    assert.throws(() => baton.on("job.fialed" as "job.failed", () => {}), /did you mean "job\.failed"/);
    assert.deepEqual((await baton.services.jobs.list({ limit: 10 })).jobs, []);
  });

  it("refuses jobs before its start and after its stop", async (t) => {
    const baton = await createNode({ store: "memory", tasks: [double] });
    await assert.rejects(baton.submit(double, { n: 1 }), { code: "STOPPED" });
    await baton.start();
    const job = await baton.submit(double, { n: 1 });
    await job.result();
    await baton.stop();
    await assert.rejects(baton.submit(double, { n: 1 }), { code: "STOPPED", message: /was stopped/ });
    await baton.start();
    atEnd(t, () => baton.stop({ hurry: true }));
    await (await baton.submit(double, { n: 1 })).result();
  });

  it("is stopped by the end of its scope", async () => {
    let outside: Baton;
    {
      await using baton = await createNode({ store: "memory" });
      await baton.start();
      outside = baton;
    }
    await assert.rejects(outside.submit("any"), { code: "STOPPED" });
  });

  it("keeps schedules that stand beside its tasks", async (t) => {
    const schedules = [{ name: "nightly", task: double, cron: "0 3 * * *", payload: { n: 1 } }];
    const baton = await open(t, { tasks: [double], schedules });
    await eventually("the schedule", async () => (await baton.services.schedules.list()).length === 1);
    const [schedule] = await baton.services.schedules.list();
    assert.deepEqual([schedule!.name, schedule!.task], ["nightly", "double"]);
  });

  it("makes its spans with the API of OpenTelemetry that it is given", async (t) => {
    const made = new MemoryTracer();
    const theirs = { getTracerProvider: () => made };
    const trace = Object.assign(Object.create(api.trace) as typeof api.trace, theirs);
    const baton = await open(t, { tasks: [double], telemetry: openTelemetry({ ...api, trace }) });
    await (await baton.submit(double, { n: 1 })).result();
    assert.equal(made.named("baton.submit").length, 1);
  });

  it("tells the program of its jobs", async (t) => {
    const told: string[] = [];
    const errors: [string, boolean][] = [];
    const flaky = defineTask({
      name: "flaky",
      retry: { delay: 1 },
      run: (_: null, { attempt }) => {
        if (attempt === 1) throw new TypeError("once");
        return attempt;
      },
    });
    const baton = await open(t, {
      tasks: [flaky, fail, wait],
      onError: (error, { job, willRetry }) => {
        errors.push([`${job.task} ${job.attempt} ${error.constructor.name}`, willRetry]);
        throw new Error("of the program itself");
      },
    });
    baton.on("job.submitted", ({ job }) => told.push(`submitted ${job.task}`));
    baton.on("job.retrying", ({ job, error }) => told.push(`retrying ${job.task}: ${error.message}`));
    baton.on("job.completed", ({ job, result }) => told.push(`completed ${job.task}: ${String(result)}`));
    baton.on("job.failed", ({ job, error }) => told.push(`failed ${job.task}: ${error.message}`));
    baton.on("job.cancelled", ({ job, error }) => told.push(`cancelled ${job.task}: ${error.message}`));
    const end = baton.on("job.failed", () => told.push("not any more"));
    end();
    await (await baton.submit(flaky, null)).result();
    await assert.rejects((await baton.submit(fail, "no")).result());
    const job = await baton.submit(wait, null);
    await eventually("the start of the job", async () => (await job.job()).status === "processing");
    await job.cancel("enough");
    await assert.rejects(job.result());
    await eventually("seven events", () => told.length === 7);
    assert.deepEqual(told, [
      "submitted flaky",
      "retrying flaky: once",
      "completed flaky: 2",
      "submitted fail",
      "failed fail: no",
      "submitted wait",
      "cancelled wait: enough",
    ]);
    assert.deepEqual(errors, [
      ["flaky 1 TypeError", true],
      ["fail 1 PermanentError", false],
    ]);
  });

  it("calls the functions of the program around each run", async (t) => {
    const storage = new AsyncLocalStorage<string>();
    const order: string[] = [];
    const seen = defineTask({ name: "seen", run: () => storage.getStore() ?? null });
    const baton = await open(t, {
      tasks: [seen, fail],
      use: [
        async (context, next) => {
          order.push(`before ${context.job.task}`);
          try {
            await next(); // what it forgets to return is not lost
          } finally {
            order.push(`after ${context.job.task}`);
          }
        },
        (context, next) => storage.run(context.job.id, next),
      ],
    });
    const job = await baton.submit(seen, null);
    assert.equal(await job.result(), job.id);
    await assert.rejects((await baton.submit(fail, "no")).result(), /failed: no/);
    assert.deepEqual(order, ["before seen", "after seen", "before fail", "after fail"]);
  });

  it("lets a task wait for others with one slot for all", async (t) => {
    const leaf = defineTask({ name: "leaf", run: (n: number) => n + 1 });
    const parent = defineTask({
      name: "parent",
      run: async (n: number, { call, submit }) => {
        const handle = await submit(leaf, n * 10);
        return (await call(leaf, n)) + (await handle.result());
      },
    });
    const baton = await open(t, { tasks: [leaf, parent], worker: { concurrency: 1 } });
    const jobs = await baton.submitMany([1, 2, 3].map((n) => [parent, n] as const));
    assert.deepEqual(await Promise.all(jobs.map((job) => job.result())), [13, 24, 35]);
  });

  it("only submits with worker: false", async (t) => {
    const baton = await open(t, { tasks: [double], worker: false });
    const job = await baton.submit(double, { n: 1 });
    await assert.rejects(job.result({ timeout: 30 }), { code: "TIMEOUT" });
    assert.equal((await job.job()).waitingFor?.code, "no_worker");
  });
});
