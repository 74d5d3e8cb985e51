import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { defineTask, PermanentError } from "../../../src/index.ts";
import { testNode } from "../../../src/library/testing.ts";

const greet = defineTask({
  name: "greet",
  run: (name: string, { log }) => (log(`greets ${name}`), `Hello, ${name}!`),
});

describe("a node for tests", () => {
  it("runs all that is due, and shows it", async () => {
    await using baton = await testNode({ tasks: [greet] });
    await baton.submit(greet, "Ada");
    await baton.submit(greet, "Bob", { delay: "10m" });
    await baton.runAll();
    const shown = (await baton.jobs()).map(({ task, status, payload, result }) => [
      task,
      status,
      payload,
      result,
    ]);
    assert.deepEqual(shown, [
      ["greet", "completed", "Ada", "Hello, Ada!"],
      ["greet", "scheduled", "Bob", undefined],
    ]);
    assert.deepEqual(
      (await baton.logs()).map(({ task, message }) => [task, message]),
      [["greet", "greets Ada"]],
    );
    await baton.advance("9m");
    assert.equal((await baton.jobs())[1]!.status, "scheduled");
    await baton.advance("1m");
    assert.equal((await baton.jobs())[1]!.status, "completed");
    assert.deepEqual(
      baton.nodeLog.filter(({ level }) => level === "warn" || level === "error"),
      [],
    );
  });

  it("lets retries take no time, each at its own", async () => {
    const at: number[] = [];
    const flaky = defineTask({
      name: "flaky",
      retry: { attempts: 4, delay: "1m", factor: 2 },
      run: () => {
        at.push(baton.now.getTime());
        throw new Error("not yet");
      },
    });
    await using baton = await testNode({ tasks: [flaky], now: new Date("2026-07-01T00:00:00Z") });
    const job = await baton.submit(flaky, null);
    await baton.runAll();
    await baton.advance("1h");
    assert.deepEqual(
      at.map((each) => new Date(each).toISOString().slice(11, 19)),
      ["00:00:00", "00:01:00", "00:03:00", "00:07:00"],
    );
    await assert.rejects(job.result(), { code: "JOB_FAILED" });
    assert.equal(baton.now.toISOString(), "2026-07-01T01:00:00.000Z");
  });

  it("fires schedules over weeks", async () => {
    await using baton = await testNode({ tasks: [greet], now: new Date("2026-07-01T12:00:00Z") });
    const nightly = { name: "nightly", cron: "30 2 * * *", zone: "UTC", task: "greet", payload: "Ada" };
    await baton.services.schedules.put(nightly);
    await baton.advance("30d");
    const jobs = await baton.jobs();
    assert.equal(jobs.length, 30);
    assert.ok(jobs.every(({ status }) => status === "completed"));
    assert.equal(jobs[0]!.createdAt.toISOString(), "2026-07-02T02:30:00.000Z");
    assert.equal(jobs[29]!.startedAt?.toISOString(), "2026-07-31T02:30:00.000Z");
  });

  it("waits for what handlers really wait for, and lets timeouts end them", async () => {
    const slow = defineTask({ name: "slow", run: async () => (await sleep(15), "done") });
    const hangs = defineTask({
      name: "hangs",
      retry: { attempts: 1 },
      timeout: "15s",
      run: (_: null, { signal }) =>
        new Promise<never>((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error)),
        ),
    });
    await using baton = await testNode({ tasks: [slow, hangs] });
    await baton.submit(slow, null);
    await baton.runAll();
    assert.equal((await baton.jobs())[0]!.result, "done");
    const job = await baton.submit(hangs, null);
    await baton.advance("14s");
    assert.equal((await job.job()).status, "processing");
    await baton.advance("2s");
    assert.equal((await job.job()).error?.code, "TIMEOUT");
  });

  it("fails for a job that nobody runs, with the nearest task", async () => {
    const baton = await testNode({ tasks: [greet] });
    await assert.rejects(baton.submit("great", "Ada"), { code: "UNKNOWN_TASK" });
    await baton.submit("great", "Ada", { allowUnknown: true });
    await assert.rejects(baton.runAll(), {
      code: "BAD_TASK",
      message: /no task "great"; did you mean "greet"\?/,
    });
    await assert.rejects(baton.advance("1m"), { code: "BAD_TASK" });
    await baton[Symbol.asyncDispose](); // told already: a second error would hide the first one
    const silent = await testNode({ tasks: [greet] });
    await silent.submit("great", "Ada", { allowUnknown: true });
    await assert.rejects(silent[Symbol.asyncDispose](), { code: "BAD_TASK" });
    await using lenient = await testNode({ tasks: [greet], unhandled: "ignore" });
    await lenient.submit("great", "Ada", { allowUnknown: true });
    await lenient.runAll();
    assert.equal((await lenient.jobs())[0]!.status, "queued");
  });

  it("refuses options that it has not", async () => {
    const options = { store: "postgres://db/app", http: {}, tasks: [greet] } as object;
    await assert.rejects(testNode(options), { code: "BAD_OPTIONS", message: /store, http cannot be given/ });
  });

  it("is used as any node: children, events, failures", async () => {
    const parent = defineTask({
      name: "parent",
      run: async (name: string, { call }) => `${await call(greet, name)} ${await call(greet, "Bob")}`,
    });
    const bad = defineTask({
      name: "bad",
      run: () => {
        throw new PermanentError("no");
      },
    });
    await using baton = await testNode({ tasks: [greet, parent, bad], worker: { concurrency: 1 } });
    const failed: string[] = [];
    baton.on("job.failed", ({ job, error }) => failed.push(`${job.task}: ${error.message}`));
    const job = await baton.submit(parent, "Ada");
    await baton.submit(bad, null);
    await baton.runAll();
    assert.equal(await job.result(), "Hello, Ada! Hello, Bob!");
    assert.deepEqual(failed, ["bad: no"]);
  });

  it("costs a test less than 50 ms", async (t) => {
    const times: number[] = [];
    for (let n = 0; n < 11; n++) {
      // Of the processor: the tests beside this one take their share of the clock's.
      const from = process.cpuUsage();
      const baton = await testNode({ tasks: [greet] });
      await baton.submit(greet, "Ada");
      await baton.runAll();
      await baton.advance("1d");
      await baton[Symbol.asyncDispose]();
      const { user, system } = process.cpuUsage(from);
      times.push((user + system) / 1_000);
    }
    const median = times.toSorted((a, b) => a - b)[5]!;
    t.diagnostic(`${median.toFixed(1)} ms`);
    assert.ok(median < 50, `${median} ms`);
  });

  it("names the option that is wrong", async () => {
    const message = "createNode: tsaks is not an option; did you mean tasks?";
    await assert.rejects(testNode({ tsaks: [greet] } as object), { code: "BAD_OPTIONS", message });
  });
});
