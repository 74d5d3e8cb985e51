/** The typed client against a whole node. What must not compile is marked, and the compiler checks the marks. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { z } from "zod";
import { BatonError, type Client, createClient, JobFailed } from "../../../src/client/create-client.ts";
import { defineTask, PermanentError, type TaskContext } from "../../../src/jobs/tasks/task.ts";
import { atEnd, suiteScope } from "../../support/node-cleanup.ts";
import { nodeHere } from "../../support/node-here.ts";
import { column } from "../../support/columns.ts";

const charge = defineTask({
  name: "charge",
  schema: z.object({ order: z.int(), cents: z.int().positive(), note: z.string().default("none") }),
  retry: { attempts: 1 },
  timeout: "15s",
  run({ order, cents, note }) {
    if (cents > 1_000) throw new PermanentError("the card was declined");
    return { order, paidAt: new Date(0), note, refund: undefined };
  },
});
/** Typed by its type parameters, and named by the key of the module that exports it. */
const greet = defineTask<{ name: string }, string>({ name: "greet", run: ({ name }) => `Hello, ${name}!` });
const count = async (payload: { to: number } | null, { log, progress }: TaskContext): Promise<number> => {
  for (let n = 1; n <= (payload?.to ?? 0); n++) log(`line ${n}`);
  progress(50, "half");
  return payload?.to ?? 0;
};
const tasks = { charge, greet, count };
const list = [charge, defineTask({ name: "ping", run: () => "pong" })] as const;

type Same<A, B> = [A, B] extends [B, A] ? true : false;
/** Compiles only if both are the same type. */
function same<A, B>(equal: Same<A, B>): void {
  assert.ok(equal);
}

const scope = suiteScope();
let client: Client<typeof tasks>;
let url: string;

before(async () => {
  const node = await nodeHere(scope, {
    http: true,
    tasks: [charge, greet, defineTask({ name: "count", run: count })],
  });
  url = node.url!;
  client = createClient<typeof tasks>({ urls: url, discover: false });
  atEnd(scope, () => client.close());
});

async function refused(call: Promise<unknown> | (() => unknown)): Promise<BatonError> {
  const error = await (typeof call === "function" ? (async () => call())() : call).then(
    () => assert.fail("it was not refused"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof BatonError, String(error));
  return error;
}

describe("a typed client", () => {
  it("submits, waits and calls, with the payload and the JSON result of the task", async () => {
    const submitted = await client.submit("charge", { order: 7, cents: 100 }, { tags: ["eu"], priority: 3 });
    assert.equal(submitted.existed, false);
    const paid = await client.wait(submitted.id, { timeout: "10s" });
    same<typeof paid, { order: number; paidAt: string; note: string }>(true);
    assert.deepEqual(paid, { order: 7, paidAt: "1970-01-01T00:00:00.000Z", note: "none" });
    const greeting = await client.call("greet", { name: "Ada" });
    same<typeof greeting, string>(true);
    assert.equal(greeting, "Hello, Ada!");
    const counted = await client.call("count", null, { timeout: 10_000 });
    same<typeof counted, number>(true);
    assert.equal(counted, 0);
    const id: string = submitted.id;
    const result = await client.wait(id);
    same<typeof result, unknown>(true);
    assert.deepEqual(result, paid);
  });

  it("compiles with no wrong name, payload, option or schedule", async () => {
    const never = (): void => {
      // @ts-expect-error: there is no such task
      void client.submit("chrage", { order: 7, cents: 100 });
      // @ts-expect-error: an order is a number
      void client.submit("charge", { order: "7", cents: 100 });
      // @ts-expect-error: the payload may not be left out
      void client.submit("charge");
      // @ts-expect-error: it is named delay
      void client.submit("charge", { order: 7, cents: 100 }, { delayMs: 5 });
      const wrong = { to: 2 };
      // @ts-expect-error: the second payload is that of another task
      void client.submitMany([...([["count", wrong]] as const), ["greet", wrong]]);
      const nightly = { name: "nightly", task: "greet", cron: "0 3 * * *" } as const;
      // @ts-expect-error: the payload of a schedule is that of its task
      void client.schedules.put({ ...nightly, payload: wrong });
      // @ts-expect-error: it may not be left out either
      void client.schedules.put(nightly);
    };
    assert.equal(typeof never, "function");
    const listed = createClient<typeof list>({ urls: url, discover: false });
    await using _ = listed;
    same<Parameters<typeof listed.submit<"ping">>[0], "ping">(true);
    // @ts-expect-error: that task is not in the list
    assert.equal(await listed.call("greet", { name: "Ada" }), "Hello, Ada!");
    const any = createClient({ urls: url, discover: false });
    await using __ = any;
    assert.equal(await any.call("greet", { name: "Ada" }), "Hello, Ada!");
  });

  it("takes many jobs at once, each with the types of its task", async () => {
    const [first, second] = await client.submitMany([
      ["greet", { name: "Ada" }],
      ["count", { to: 2 }, { queue: "numbers" }],
    ]);
    const [text, number] = [await client.wait(first.id), await client.wait(second.id)];
    same<typeof text, string>(true);
    same<typeof number, number>(true);
    assert.deepEqual([text, number], ["Hello, Ada!", 2]);
    assert.deepEqual(await client.submitMany([]), []);
    assert.deepEqual(column((await client.jobs({ queue: "numbers" })).jobs, "id"), [second.id]);
  });

  it("rejects with JobFailed, which has the error of the run as its cause", async () => {
    const { id } = await client.submit("charge", { order: 8, cents: 5_000 });
    for (const call of [client.wait(id), client.call("charge", { order: 8, cents: 5_000 })]) {
      const error = await refused(call);
      assert.ok(error instanceof JobFailed);
      assert.deepEqual([error.code, error.jobStatus], ["JOB_FAILED", "failed"]);
      assert.match(error.message, /^job \S+ failed: the card was declined$/);
      assert.equal((error.cause as Error).message, "the card was declined");
    }
    await client.retry(id);
    assert.equal((await refused(client.wait(id))).code, "JOB_FAILED");
    assert.equal((await refused(client.retry("x"))).code, "BAD_ID");
  });

  it("reads jobs in the spelling of code, with times as Date", async () => {
    const runAt = new Date(Date.now() + 3_600_000);
    const options = { runAt, timeout: "2m", attempts: 4, idempotencyKey: "once" } as const;
    const { id, status } = await client.submit("greet", { name: "Ada" }, options);
    assert.equal(status, "scheduled");
    const job = await client.job(id);
    assert.deepEqual(job.runAt, runAt);
    assert.ok(job.createdAt instanceof Date);
    assert.deepEqual([job.id, job.timeout, job.maxAttempts, job.idempotencyKey], [id, 120_000, 4, "once"]);
    assert.deepEqual(job.payload, { name: "Ada" });
    assert.equal(job.waitingFor?.code, "not_due");
    const page = await client.jobs({ status: "scheduled", task: "greet", since: new Date(0), limit: 1 });
    assert.deepEqual([column(page.jobs, "id"), page.partial], [[id], false]);
    await client.cancel(id, "not needed");
    const cancelled = await refused(client.wait(id));
    assert.ok(cancelled instanceof JobFailed && cancelled.jobStatus === "cancelled");
    await client.remove(id);
    assert.equal((await refused(client.job(id))).code, "NOT_FOUND");
  });

  it("tells the log and the events of a job, and ends with the job", async () => {
    const { id } = await client.submit("count", { to: 2 });
    const seen: unknown[] = [];
    for await (const event of client.events(id)) {
      if (event.type === "log") seen.push(event.line.message);
      else if (event.type === "progress") seen.push(event.progress);
      else seen.push([event.type, event.job.id, event.job.finishedAt instanceof Date]);
    }
    assert.deepEqual(seen, ["line 1", "line 2", 50, ["completed", id, true]]);
    const lines = await client.logs(id, { after: 1 });
    assert.deepEqual(column(lines, "message"), ["line 2"]);
    assert.ok(lines[0]!.at instanceof Date);
  });

  it("manages queues and schedules", async () => {
    await client.queues.pause("greetings", { allowUnknown: true });
    assert.deepEqual(column(await client.queues.list(), "name").includes("greetings"), true);
    await client.queues.resume("greetings");
    const put = await client.schedules.put({
      name: "hourly",
      task: "greet",
      payload: { name: "Ada" },
      every: "1h",
      timeout: "30s",
      attempts: 2,
      missedMax: 5,
    });
    assert.deepEqual([put.every, put.timeout, put.maxAttempts, put.missedMax], [3_600_000, 30_000, 2, 5]);
    assert.ok(put.nextAt instanceof Date);
    assert.equal(await client.wait(await client.schedules.trigger("hourly")), "Hello, Ada!");
    const [next] = await client.schedules.preview({ cron: "0 3 * * *", zone: "Europe/Berlin" }, 1);
    assert.ok(next! > new Date());
    await client.schedules.remove("hourly");
    assert.deepEqual(await client.schedules.list(), []);
  });

  it("still calls any operation, in the spelling of the API", async () => {
    const { tasks: known } = await client.request("GET /tasks");
    assert.deepEqual(column(known, "name"), ["charge", "count", "greet"]);
  });
});

describe("mistakes", () => {
  it("of a call are all told, each with its field and the nearest name, and nothing is sent", async () => {
    const options = { delay: "5", prioritty: 1, timeoutMs: 5, attempts: 0, runAt: "tomorrow", tags: [""] };
    const error = await refused(client.submit("greet", { name: "Ada" }, options as object));
    assert.equal(error.code, "BAD_REQUEST");
    assert.deepEqual(
      error.issues.map(({ message }) => message),
      [
        "delay needs a unit: write 5s or 5ms, not 5",
        '"prioritty" is not a known option; did you mean "priority"?',
        '"timeoutMs" is not a known option; did you mean "timeout"?',
        "attempts must be a whole number from 1 to 1000, not 0",
        'runAt must be a valid Date, not "tomorrow"',
        "tags[0] must be 1 to 64 characters of well-formed Unicode without control characters",
      ],
    );
    assert.deepEqual([error.details.field, error.issues.at(-1)!.field], ["delay", "tags[0]"]);
    const many = await refused(
      client.submitMany([
        ["greet", { name: "Ada" }, { priority: 101, dealy: 1 } as object],
        ["greet", { name: "Ada" }, { delay: "1s", runAt: new Date() }],
        ["greet", { name: "Ada" }, { keyReuse: "never" }],
        ["greet", { name: "Ada" }, { idempotencyKey: "k", keyReuse: "always" as never }],
      ]),
    );
    assert.deepEqual(column(many.issues, "field"), [
      "[0].priority",
      "[0].dealy",
      "[1].runAt",
      "[2].keyReuse",
      "[3].keyReuse",
    ]);
    assert.equal(many.issues[1]!.message, '"[0].dealy" is not a known option; did you mean "delay"?');
  });

  it("of a key that belongs to another payload name the first job", async () => {
    const options = { idempotencyKey: "greeting", keyReuse: "never" } as const;
    const { id } = await client.submit("greet", { name: "Ada" }, options);
    assert.deepEqual((await client.submit("greet", { name: "Ada" }, options)).existed, true);
    const error = await refused(client.submit("greet", { name: "Bob" }, options));
    assert.equal(error.code, "IDEMPOTENCY_CONFLICT");
    assert.equal(error.details["job_id"], id);
  });

  it("of a payload that is not JSON name the place", async () => {
    const circle: unknown[] = [];
    circle.push([circle]);
    const payload = {
      a: 1n,
      b: [new Date(0), Number.NaN],
      c: circle,
      d: undefined,
      e: () => {},
      f: new Map(),
    };
    const any = createClient({ urls: url });
    await using _ = any;
    for (const error of [
      await refused(any.submit("greet", payload)),
      await refused(any.call("greet", payload)),
    ]) {
      assert.deepEqual(
        error.issues.map(({ message }) => message),
        [
          "payload.a must be plain JSON, not a BigInt; write it as a text",
          "payload.b[0] must be plain JSON, not a Date; write its toISOString()",
          "payload.b[1] must be plain JSON, not NaN; write null",
          "payload.c[0][0] must be plain JSON, not a part of itself",
          "payload.d must be plain JSON, not undefined; leave it out, or write null",
          "payload.e must be plain JSON, not a function",
          "payload.f must be plain JSON, not a Map; write a list or an object",
        ],
      );
    }
  });

  it("of a payload, found by the schema at the node, are all told", async () => {
    const error = await refused(client.submit("charge", { order: 0.5, cents: -1 }));
    assert.equal(error.code, "BAD_PAYLOAD");
    assert.deepEqual(column(error.issues, "field"), ["payload.order", "payload.cents"]);
  });

  it("of the client's own options are refused at once", async () => {
    const wrong = { url, timeoutMs: 5, timeout: "soon" };
    const error = await refused(() => createClient(wrong as object));
    assert.equal(error.code, "BAD_OPTIONS");
    assert.deepEqual(
      error.issues.map(({ message }) => message),
      [
        '"url" is not a known option; did you mean "urls"?',
        '"timeoutMs" is not a known option; did you mean "timeout"?',
        'timeout must be a duration such as 500ms, 30s, 5m, 1h or 7d, not "soon"',
      ],
    );
    const late = await refused(client.wait("x", { timeout: "5 minutes" as never }));
    assert.deepEqual([late.code, late.details.field], ["BAD_REQUEST", "timeout"]);
    const filter = await refused(client.jobs({ since: "today", queu: "a" } as object));
    assert.deepEqual(column(filter.issues, "field"), ["queu", "since"]);
  });
});
