import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import { hasCode } from "../../../../src/core/errors.ts";
import { column } from "../../../support/columns.ts";
import { notedTask, type SubmitRequest, Submitter } from "../../../../src/jobs/submit/submitter.ts";
import { type NodeName, parseJobId } from "../../../../src/core/ids.ts";
import { TaskRegistry } from "../../../../src/jobs/tasks/task-registry.ts";
import type { Task } from "../../../../src/jobs/tasks/task.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { memoryStore } from "../../../support/memory-store.ts";
import type { NewJob } from "../../../../src/store/store.ts";
import { FailingJobs } from "../../../support/node-failing-jobs.ts";

async function world(tasks: readonly Task[] = []) {
  const store = memoryStore({ clock: new ManualClock() });
  const faults = new FailingJobs(() => store.jobs);
  const batches: (readonly NewJob[])[] = [];
  let woken = 0;
  const submitter = new Submitter(fakePlatform(), {
    store: {
      jobs: {
        ...store.jobs,
        submit: (jobs, author) => {
          batches.push(jobs);
          return faults.jobs.submit(jobs, author);
        },
      },
    },
    tasks: new TaskRegistry(tasks),
    author: () => ({ node: "node-a" as NodeName, ownerEpoch: 1, leaderEpoch: 1 }),
    defaults: { maxAttempts: 3, timeoutMs: 3_600_000 },
    unstoredMax: 100,
    wakes: () => false,
    onStored: () => woken++,
  });
  const one = async (request: SubmitRequest) => {
    await submitter.submit([request]);
    return batches.at(-1)![0]!;
  };
  return { store, faults, submitter, batches, one, woken: () => woken };
}

describe("submitting", () => {
  it("refuses what the store cannot keep up with, and takes it when the store has caught up", async () => {
    const { submitter, store, batches } = await world();
    const many = (count: number) => Array.from({ length: count }, () => ({ task: "work", payload: null }));
    const first = submitter.submit(many(60));
    const second = submitter.submit(many(40));
    const refused = { code: "TOO_MANY_REQUESTS", message: /jobs\.unstored_max is 100/ };
    await assert.rejects(submitter.submit(many(1)), refused);
    assert.deepEqual([(await first).length, (await second).length], [60, 40]);
    assert.equal((await submitter.submit(many(1))).length, 1);
    assert.equal((await submitter.submit(many(500))).length, 500, "alone, a call may be larger than that");
    assert.equal(batches.flat().length, 601);
    assert.equal(
      (await store.jobs.list({ limit: 1_000 })).jobs.length,
      601,
      "nothing of a refused call is stored",
    );
  });

  it("counts no call as waiting that the store has refused", async () => {
    const { submitter, faults } = await world();
    const hundred = Array.from({ length: 100 }, () => ({ task: "work", payload: null }));
    faults.fail("submit");
    await assert.rejects(submitter.submit(hundred));
    faults.heal();
    assert.equal((await submitter.submit(hundred)).length, 100);
  });

  it("stores jobs that arrive together in one commit, and answers each with its own id", async () => {
    const { submitter, batches, woken } = await world();
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => submitter.submit([{ task: "work", payload: n }])),
    );
    assert.ok(batches.length <= 2, `${batches.length} commits`);
    assert.equal(woken(), batches.length);
    const ids = answers.map(([answer]) => answer!.id);
    assert.equal(new Set(ids).size, 50);
    const payloads = new Map(batches.flat().map((job) => [job.id, job.payload]));
    ids.forEach((id, n) => assert.equal(payloads.get(id), String(n)));
    assert.ok(ids.every((id) => parseJobId(id)?.birthplace === "node-a"));
  });

  it("refuses with all that is wrong, also in the jobs behind and in what schemas say", async () => {
    const schema = z.object({ to: z.string(), copies: z.int() });
    const { submitter, batches } = await world([{ name: "mail", schema, run: () => {} }]);
    const wrong: SubmitRequest[] = [
      { task: "mail", priority: 1_000, maxAttempts: 0, payload: { to: 1, copies: 0.5 } },
      { task: "ok" },
      { task: "-", runAt: 0, delayMs: 1 },
      { task: "mail", payload: { to: "ada" } },
    ];
    await assert.rejects(submitter.submit(wrong), (error: unknown) => {
      assert.ok(hasCode(error, "BAD_REQUEST"));
      assert.deepEqual(column(error.issues, "field"), [
        "[0].priority",
        "[0].max_attempts",
        "[0].payload.to",
        "[0].payload.copies",
        "[2].task",
        "[2].run_at",
        "[3].payload.copies",
      ]);
      assert.match(error.message, /^\[0\]\.priority must be .*; \[3\]\.payload\.copies: /);
      return true;
    });
    assert.equal(batches.length, 0);
  });

  it("stores an array all or none, and an empty one not at all", async () => {
    const { submitter, batches, store } = await world();
    assert.deepEqual(await submitter.submit([]), []);
    await assert.rejects(submitter.submit([{ task: "ok" }, { task: "ok", priority: 1_000 }]), {
      code: "BAD_REQUEST",
      details: { field: "[1].priority" },
    });
    assert.equal(batches.length, 0);
    assert.equal((await submitter.submit([{ task: "a" }, { task: "b" }])).length, 2);
    assert.equal((await store.jobs.list({ limit: 10 })).jobs.length, 2);
  });

  it("fills in the task's defaults, then the node's, and lets the caller overrule both", async () => {
    const mail: Task = {
      name: "mail",
      run: () => {},
      queue: "mail",
      priority: 5,
      retry: { attempts: 9 },
      timeout: "1s",
    };
    const { one } = await world([mail]);
    const pick = ({ queue, priority, maxAttempts, timeoutMs }: NewJob) => [
      queue,
      priority,
      maxAttempts,
      timeoutMs,
    ];
    assert.deepEqual(pick(await one({ task: "unknown" })), ["default", 0, 3, 3_600_000]);
    assert.deepEqual(pick(await one({ task: "mail" })), ["mail", 5, 9, 1_000]);
    const own = { queue: "slow", priority: -1, maxAttempts: 1, timeoutMs: 5 };
    assert.deepEqual(pick(await one({ task: "mail", ...own })), ["slow", -1, 1, 5]);
  });

  it("tells everybody in a commit that failed, and takes the next", async () => {
    const { submitter, faults } = await world();
    faults.fail("submit");
    const answers = await Promise.allSettled([1, 2, 3].map(() => submitter.submit([{ task: "work" }])));
    assert.ok(answers.every(({ status }) => status === "rejected"));
    faults.heal();
    assert.equal((await submitter.submit([{ task: "work" }])).length, 1);
  });

  it("refuses what cannot be stored, with the field and the remedy", async () => {
    const { submitter } = await world([{ name: "resize", run: () => {} }]);
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    const cases: [request: unknown, field: string, message: RegExp][] = [
      [{}, "task", /must be a task's name/],
      [{ task: "re size" }, "task", /did you mean resize\?/],
      [{ task: "a", queue: "no spaces" }, "queue", /letters, digits/],
      [{ task: "a", priority: 1.5 }, "priority", /whole number from -100 to 100, not 1\.5/],
      [{ task: "a", maxAttempts: 0 }, "max_attempts", /from 1 to 1000/],
      [{ task: "a", tags: Array(17).fill("t") }, "tags", /a list of at most 16 texts/],
      [{ task: "a", tags: ["a", "b", "c", ""] }, "tags[3]", /^tags\[3\] must be 1 to 64 characters/],
      [{ task: "a", tags: ["x".repeat(65)] }, "tags[0]", /1 to 64 characters/],
      [{ task: "a", timeoutMs: 0 }, "timeout_ms", /from 1/],
      [{ task: "a", delayMs: -1 }, "delay_ms", /from 0/],
      [{ task: "a", delayMs: Number.NaN }, "delay_ms", /not NaN/],
      [{ task: "a", runAt: 1, delayMs: 1 }, "run_at", /exclude each other/],
      [{ task: "a", keyReuse: "never" }, "key_reuse", /is about an idempotency_key/],
      [{ task: "a", idempotencyKey: "k", keyReuse: "always" }, "key_reuse", /after_failure or never/],
      [{ task: "a", idempotencyKey: "" }, "idempotency_key", /1 to 255 characters/],
      [{ task: "a", idempotencyKey: "x".repeat(256) }, "idempotency_key", /1 to 255/],
      [{ task: "a", idempotencyKey: "a\0" }, "idempotency_key", /without control characters/],
      [{ task: "a", payload: 1n }, "payload", /must be plain JSON, not a BigInt/],
      [{ task: "a", payload: circular }, "payload.self", /must be plain JSON, not a part of itself/],
      [{ task: "a", payload: () => {} }, "payload", /must be plain JSON, not a function/],
    ];
    for (const [request, field, message] of cases) {
      const refused = { details: { field }, message };
      await assert.rejects(submitter.submit([request as SubmitRequest]), refused);
    }
  });
});

describe("the options of a task for callers in SQL", () => {
  it("are what its jobs have when they are submitted at a node", () => {
    const defaults = { maxAttempts: 3, timeoutMs: 60_000 };
    const run = () => null;
    const own = { name: "a", queue: "q", priority: 2, timeout: "15s", retry: { attempts: 8 }, run } as const;
    assert.deepEqual(notedTask(own, defaults), {
      task: "a",
      queue: "q",
      priority: 2,
      maxAttempts: 8,
      timeoutMs: 15_000,
    });
    const plain = { task: "b", queue: "default", priority: 0, ...defaults };
    assert.deepEqual(notedTask({ name: "b", run }, defaults), plain);
  });
});
