import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Duration } from "../../../../src/core/duration.ts";
import { RetryAfter, type Task } from "../../../../src/jobs/tasks/task.ts";
import { finished, jobWhen, nodeHere, submit } from "../../../support/node-here.ts";

const TASKS = fileURLToPath(new URL("thread-tasks", import.meta.url));

describe("a handler that throws RetryAfter", () => {
  const limited: Task = {
    name: "limited",
    // The policy alone would have the next run in an hour.
    retry: { delay: "1h", jitter: 0 },
    run: (payload, { attempt }) => {
      if (attempt === 1) throw new RetryAfter(payload as Duration);
      return attempt;
    },
  };

  it("runs again after that time, and the run counts as a failure", async (t) => {
    const node = await nodeHere(t, { tasks: [limited] });
    const id = await submit(node, "limited", { payload: "50ms" });
    const waiting = await jobWhen(node, id, ({ failures }) => failures === 1);
    assert.equal(waiting.error?.code, "RETRY_AFTER");
    assert.match(waiting.error.message, /again after 50ms/);
    const job = await finished(node, id);
    assert.deepEqual([job.status, job.failures, job.attempts], ["completed", 1, 2]);
  });

  it("waits as long as it says, whatever the policy would have been", async (t) => {
    const node = await nodeHere(t, { tasks: [limited] });
    const before = Date.now();
    const id = await submit(node, "limited", { payload: "2h" });
    const job = await jobWhen(node, id, ({ failures }) => failures === 1);
    assert.ok(Math.abs(job.runAt - before - 2 * 3_600_000) < 60_000, new Date(job.runAt).toISOString());
  });

  it("fails when its attempts are spent", async (t) => {
    const node = await nodeHere(t, { tasks: [limited] });
    const id = await submit(node, "limited", { payload: 0, maxAttempts: 1 });
    const job = await finished(node, id);
    assert.deepEqual([job.status, job.error?.code], ["failed", "RETRY_AFTER"]);
  });

  it("is heard from a thread too", async (t) => {
    const node = await nodeHere(t, { settings: { TASKS } });
    const id = await submit(node, "again-later", { payload: "20ms" });
    const job = await finished(node, id);
    assert.deepEqual([job.status, job.failures], ["completed", 1]);
  });

  it("with a delay that is none fails with the reason, and is retried as after any error", () => {
    for (const [delay, message] of [
      ["soon", /must be a duration such as/],
      ["30", /needs a unit/],
      [-1, /whole number of milliseconds/],
      [Number.NaN, /whole number of milliseconds/],
      [undefined, /must be a duration/],
    ] as const)
      assert.throws(() => new RetryAfter(delay as Duration), {
        code: "BAD_RETRY_AFTER",
        retryable: true,
        message,
      });
    assert.equal(new RetryAfter("1.5s").retryAfterMs, 1_500);
  });
});
