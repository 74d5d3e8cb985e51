import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { JobRun, type RunHooks } from "../../../../src/jobs/run/job-run.ts";
import { TaskRegistry } from "../../../../src/jobs/tasks/task-registry.ts";
import type { Task } from "../../../../src/jobs/tasks/task.ts";
import { ThreadPool } from "../../../../src/jobs/run/thread-pool.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { claimedJob } from "../../../support/job-builders.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { finished, jobWhen, logsOf, nodeHere, resultOf, submit } from "../../../support/node-here.ts";

const TASKS = fileURLToPath(new URL("thread-tasks", import.meta.url));
const settings = { TASKS, RETRY__ATTEMPTS: "1", DRAIN__CLEANUP: "300ms", DRAIN__TIMEOUT: "1s" };

describe("a task on a thread", () => {
  it("may use the processor for itself while the node goes on answering and running", async (t) => {
    const node = await nodeHere(t, {
      settings: { ...settings, WORKER__CONCURRENCY: "2" },
      tasks: [{ name: "quick", run: () => "quick" }],
    });
    const busy = await submit(node, "spin", { payload: 600_000 });
    await jobWhen(node, busy, ({ status }) => status === "processing");
    for (let job = 0; job < 3; job++)
      assert.equal(await resultOf(node, await submit(node, "quick")), "quick");
    await node.services.jobs.cancel(busy, "enough");
    assert.equal((await finished(node, busy)).status, "cancelled", "it ran until then");
  });

  it("gets the job, and its logs and progress arrive in order before the result", async (t) => {
    const node = await nodeHere(t, { settings });
    const id = await submit(node, "tell", { payload: { lines: 1_000, progress: 62.5 } });
    const result = (await resultOf(node, id)) as { thread: number };
    assert.ok(result.thread > 0, "not on the main thread");
    assert.deepEqual(result, { thread: result.thread, id, created: true, attempt: 1 });
    const expected = Array.from({ length: 1_000 }, (_, line) => `line ${line}`);
    assert.deepEqual(await logsOf(node, id), expected);
    const job = await finished(node, id);
    assert.deepEqual([job.progress, job.progressMessage], [62.5, "from a thread"]);
  });

  it("is told by message when it is cancelled, with the reason", async (t) => {
    const node = await nodeHere(t, { settings });
    const id = await submit(node, "wait", { payload: 60_000 });
    await jobWhen(node, id, ({ progress }) => progress === 1);
    await node.services.jobs.cancel(id, "enough");
    const job = await finished(node, id);
    assert.deepEqual([job.status, job.error?.message], ["cancelled", "enough"]);
    assert.deepEqual(await logsOf(node, id), ["told: cancel"]);
  });

  it("is told of its timeout, and what it throws then is known for the abort", async (t) => {
    const node = await nodeHere(t, { settings });
    const id = await submit(node, "wait", { payload: 60_000, timeoutMs: 100 });
    const job = await finished(node, id);
    assert.deepEqual(job.error, { code: "TIMEOUT", message: "ran longer than its timeout of 100 ms" });
  });

  it("is ended by force when it does not listen, and its slot is free again", async (t) => {
    const node = await nodeHere(t, { settings: { ...settings, WORKER__CONCURRENCY: "1" } });
    const id = await submit(node, "spin", { payload: 600_000, timeoutMs: 50 });
    const before = systemClock.monotonic();
    const job = await finished(node, id);
    assert.deepEqual([job.status, job.error?.code], ["failed", "TIMEOUT"]);
    assert.ok(systemClock.monotonic() - before < 5_000);
    assert.ok(((await resultOf(node, await submit(node, "tell"))) as object) !== null, "the slot is free");
  });

  it("leaves no thread behind that spins on after its end", async (t) => {
    const pool = new ThreadPool({ clock: systemClock }, 50);
    await pool.start();
    atEnd(t, () => pool.stop());
    const spinning = Promise.withResolvers<void>();
    const wait: RunHooks["wait"] = (_run, work) => work();
    const hooks = { now: () => 0, wait, onReport: () => spinning.resolve() };
    const run = new JobRun(claimedJob({ task: "spin" }), Infinity, hooks);
    const module = new URL("thread-tasks/spin.ts", import.meta.url).href;
    const ended = pool.run({ name: "spin", module, run: () => {} }, 600_000, run);
    await spinning.promise;
    assert.equal(pool.size, 1);
    run.abort("timeout");
    await assert.rejects(ended, { name: "JobAborted", why: "timeout" });
    assert.equal(pool.size, 0);
  });

  it("that is interrupted by a drain goes back to the queue", async (t) => {
    const node = await nodeHere(t, { settings });
    const polite = await submit(node, "wait", { payload: 60_000 });
    const deaf = await submit(node, "spin", { payload: 600_000 });
    for (const id of [polite, deaf]) await jobWhen(node, id, ({ status }) => status === "processing");
    const seen: string[] = [];
    const watch = async (id: typeof polite): Promise<void> => {
      const job = await jobWhen(node, id, ({ status }) => status === "queued");
      seen.push(`${job.task} ${job.failures} ${job.interruptions}`);
    };
    await Promise.all([watch(polite), watch(deaf), node.stop()]);
    assert.deepEqual(seen.sort(), ["spin 0 1", "wait 0 1"]);
  });

  for (const [how, why] of [
    ["exit", /exit code 7/],
    ["throw", /from a timer/],
    ["reject", /nobody waits for me/],
  ] as const) {
    it(`that ends its thread (${how}) fails with THREAD_DIED, and the node lives`, async (t) => {
      const node = await nodeHere(t, { settings });
      const job = await finished(node, await submit(node, "die", { payload: how }));
      assert.deepEqual([job.status, job.error?.code], ["failed", "THREAD_DIED"]);
      assert.match(job.error!.message, why);
      await resultOf(node, await submit(node, "tell"));
    });
  }

  it("runs on a thread that was used before, and no words of the earlier run are mixed in", async (t) => {
    const node = await nodeHere(t, { settings: { ...settings, WORKER__CONCURRENCY: "1" } });
    const first = await submit(node, "tell", { payload: { later: "first" } });
    const { thread } = (await resultOf(node, first)) as { thread: number };
    const second = await submit(node, "wait", { payload: 100 });
    await finished(node, second);
    const third = (await resultOf(node, await submit(node, "tell"))) as { thread: number };
    assert.equal(third.thread, thread);
    assert.deepEqual(await logsOf(node, second), [], "the first one's timer went off meanwhile");
    assert.deepEqual(await logsOf(node, first), []);
  });

  it("fails in the same words as on the main thread", async (t) => {
    const node = await nodeHere(t, { settings: { ...settings, RETRY__ATTEMPTS: "2" } });
    const cases = [
      [{ result: "bigint" }, "BAD_RESULT", /BigInt/],
      [{ result: "function" }, "BAD_RESULT", /it is a function/],
      [{ fail: { message: "no", retryable: false, code: "E_NO" } }, "E_NO", /^no$/],
    ] as const;
    for (const [payload, code, message] of cases) {
      const job = await finished(node, await submit(node, "tell", { payload }));
      assert.deepEqual([job.status, job.error?.code, job.attempts], ["failed", code, 1]);
      assert.match(job.error!.message, message);
    }
    const job = await finished(
      node,
      await submit(node, "tell", { payload: { progress: 101 }, maxAttempts: 1 }),
    );
    assert.match(job.error!.message, /progress must be a number from 0 to 100, not 101/);
  });

  it("refuses a payload that its schema made uncopyable, and the thread is used again", async (t) => {
    const module = new URL("thread-tasks/tell.ts", import.meta.url).href;
    const schema = z.unknown().transform((value) => (value === "bad" ? { call: () => value } : null));
    const task: Task = { name: "picky", isolation: "thread", module, schema, run: () => {} };
    const node = await nodeHere(t, { settings: { ...settings, TASKS: "" }, tasks: [task] });
    const before = (await resultOf(node, await submit(node, "picky", { payload: "good" }))) as object;
    const job = await finished(node, await submit(node, "picky", { payload: "bad" }));
    assert.deepEqual([job.error?.code, job.attempts], ["BAD_PAYLOAD", 1]);
    const after = (await resultOf(node, await submit(node, "picky", { payload: "good" }))) as object;
    assert.equal((after as { thread: number }).thread, (before as { thread: number }).thread);
  });

  it("needs a module to be imported from", () => {
    const task: Task = { name: "nowhere", isolation: "thread", run: () => {} };
    assert.throws(() => new TaskRegistry([task]), {
      code: "BAD_TASK",
      details: { field: "module" },
      message: /import\.meta\.url/,
    });
  });
});
