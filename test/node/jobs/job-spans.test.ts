import assert from "node:assert/strict";
import { context, trace } from "@opentelemetry/api";
import { afterEach, beforeEach, describe, it } from "node:test";
import { z } from "zod";
import { defineTask, PermanentError } from "../../../src/jobs/tasks/task.ts";
import { MemoryTracer } from "../../support/memory-tracer.ts";
import { finished, nodeHere, resultOf, submit } from "../../support/node-here.ts";
import { columns } from "../../support/columns.ts";

const PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID = PARENT.slice(3, 35);

const echo = defineTask({
  name: "echo",
  run: (_payload, { traceparent }) => ({ traceparent, active: trace.getActiveSpan()?.spanContext().spanId }),
});
const flaky = defineTask({
  name: "flaky",
  retry: { delay: 1, maxDelay: 1 },
  run: (_payload, { attempt }) => {
    if (attempt === 1) throw Object.assign(new Error("not yet"), { code: "NOT_YET" });
  },
});
const fails = defineTask({
  name: "fails",
  run: () => {
    throw new PermanentError("never");
  },
});
const strict = defineTask({ name: "strict", schema: z.object({ n: z.number() }), run: () => {} });
const TASKS = [echo, flaky, fails, strict];

describe("without an SDK", () => {
  it("the trace of the caller reaches the handler as it is, and no job gets one of ours", async (t) => {
    const node = await nodeHere(t, { tasks: TASKS });
    const [given] = await node.services.jobs.submit([{ task: "echo" }], { trace: PARENT });
    assert.deepEqual(await resultOf(node, given!.id), { traceparent: PARENT });
    assert.equal((await finished(node, given!.id)).trace, PARENT);
    const id = await submit(node, "echo");
    assert.deepEqual(await resultOf(node, id), { traceparent: null });
    assert.equal((await finished(node, id)).trace, null);
  });

  it("the trace may be given with a submit, with its state; what is no trace is refused, and nothing is stored", async (t) => {
    const node = await nodeHere(t, { tasks: TASKS });
    const handle = await node.submit(echo, null, { trace: `${PARENT} vendor=1` });
    assert.deepEqual(await handle.result(), { traceparent: PARENT });
    assert.equal((await finished(node, handle.id)).trace, `${PARENT} vendor=1`);
    for (const wrong of [
      "",
      "abc",
      PARENT.slice(1),
      `${PARENT}x`,
      `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    ])
      await assert.rejects(node.submit(echo, null, { trace: wrong }), {
        code: "BAD_REQUEST",
        message: /^trace must be a traceparent/,
      });
    const { jobs } = await node.services.jobs.list({ limit: 10 });
    assert.equal(jobs.length, 1);
  });
});

describe("with an SDK", () => {
  let tracer: MemoryTracer;
  beforeEach(() => (tracer = new MemoryTracer().register()));
  afterEach(() => tracer.unregister());

  /** Settling is told to the handler's side first. */
  async function settled(count: number): Promise<void> {
    for (let tries = 0; tries < 200 && tracer.named("baton.settle").length < count; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5));
  }

  it("one job is one trace: submitted, claimed, run and settled, each under the one before it", async (t) => {
    const node = await nodeHere(t, { tasks: TASKS });
    const [given] = await node.services.jobs.submit([{ task: "echo", queue: "q" }], { trace: PARENT });
    const result = (await resultOf(node, given!.id)) as { traceparent: string; active: string };
    await settled(1);
    assert.deepEqual(columns(tracer.spans, "name", "kind"), [
      ["baton.submit", "producer"],
      ["baton.claim", "client"],
      ["baton.wait", "internal"],
      ["baton.run", "consumer"],
      ["baton.settle", "client"],
    ]);
    const [submitted, claim, wait, run, settle] = tracer.spans;
    for (const { traceId } of tracer.spans) assert.equal(traceId, TRACE_ID);
    assert.equal(submitted!.parentSpanId, PARENT.slice(36, 52));
    for (const { parentSpanId } of [claim!, wait!, run!]) assert.equal(parentSpanId, submitted!.spanId);
    assert.ok(wait!.startedAt <= wait!.endedAt && wait!.startedAt >= submitted!.startedAt - 1);
    assert.equal(settle!.parentSpanId, run!.spanId);
    assert.deepEqual(result, { traceparent: `00-${TRACE_ID}-${run!.spanId}-01`, active: run!.spanId });
    assert.deepEqual(run!.attributes, {
      "messaging.system": "baton",
      "messaging.operation.name": "run",
      "messaging.operation.type": "process",
      "messaging.client.id": "here",
      "messaging.destination.name": "q",
      "messaging.message.id": given!.id,
      "baton.task": "echo",
      "baton.attempt": 1,
      "baton.job_epoch": 1,
      "baton.outcome": "completed",
    });
    assert.equal(submitted!.attributes["messaging.message.id"], given!.id);
    assert.equal(submitted!.attributes["messaging.destination.name"], "q");
    assert.ok(claim!.startedAt <= claim!.endedAt);
  });

  it("what is active where somebody submits is the parent, whatever was given besides", async (t) => {
    const node = await nodeHere(t, { tasks: TASKS });
    const own = tracer.getTracer().startSpan("theirs");
    const handle = await context.with(trace.setSpan(context.active(), own), () =>
      node.submit(echo, null, { trace: PARENT }),
    );
    await handle.result();
    const [submitted] = tracer.named("baton.submit");
    assert.equal(submitted!.parentSpanId, own.spanContext().spanId);
    assert.equal(submitted!.parentIsRemote, false);
  });

  it("a job that is tried again has a run for each attempt in the same trace, the failed one marked", async (t) => {
    const node = await nodeHere(t, { tasks: TASKS });
    const id = await submit(node, "flaky");
    await finished(node, id);
    await settled(2);
    const [first, second] = tracer.named("baton.run");
    assert.equal(new Set(tracer.spans.map(({ traceId }) => traceId)).size, 1);
    assert.deepEqual(
      [
        first!.attributes["baton.attempt"],
        first!.attributes["baton.outcome"],
        first!.attributes["error.type"],
      ],
      [1, "retry", "NOT_YET"],
    );
    assert.deepEqual(first!.status, { code: 2, message: "not yet" });
    assert.deepEqual([second!.attributes["baton.attempt"], second!.status], [2, null]);
  });

  it("a job that fails for good, and a submit that is refused, say so", async (t) => {
    const node = await nodeHere(t, { tasks: TASKS });
    await finished(node, await submit(node, "fails"));
    assert.equal(tracer.named("baton.run")[0]!.attributes["baton.outcome"], "failed");
    await assert.rejects(submit(node, "strict", { payload: { n: "one" } }));
    const refused = tracer.named("baton.submit").at(-1)!;
    assert.equal(refused.attributes["error.type"], "BAD_PAYLOAD");
    assert.equal(refused.status!.code, 2);
  });

  it("runs do not become parts of whatever woke the worker", async (t) => {
    const node = await nodeHere(t, { tasks: TASKS, settings: { WORKER__CONCURRENCY: "1" } });
    const traces = Array.from(
      { length: 20 },
      (_, n) => `00-${String(n + 1).padStart(32, "0")}-00f067aa0ba902b7-01`,
    );
    const ids = await Promise.all(
      traces.map(
        async (given) => (await node.services.jobs.submit([{ task: "echo" }], { trace: given }))[0]!.id,
      ),
    );
    await Promise.all(ids.map((id) => finished(node, id)));
    await settled(20);
    for (const [n, id] of ids.entries()) {
      const mine = tracer.spans.filter(({ attributes }) => attributes["messaging.message.id"] === id);
      assert.deepEqual(
        mine.map(({ name, traceId }) => [name, traceId]).sort(([a], [b]) => (a! < b! ? -1 : 1)),
        ["baton.claim", "baton.run", "baton.settle", "baton.submit", "baton.wait"].map((name) => [
          name,
          traces[n]!.slice(3, 35),
        ]),
      );
    }
  });

  it("a batch is one submit, and each of its jobs goes on from it", async (t) => {
    const node = await nodeHere(t, { tasks: TASKS });
    const answers = await node.services.jobs.submit([
      { task: "echo" },
      { task: "echo" },
      { task: "strict", payload: { n: 1 } },
    ]);
    await Promise.all(answers.map(({ id }) => finished(node, id)));
    const [submitted, ...others] = tracer.named("baton.submit");
    assert.deepEqual(others, []);
    assert.equal(submitted!.attributes["messaging.batch.message_count"], 3);
    assert.equal(submitted!.attributes["baton.task"], undefined);
    for (const { parentSpanId } of tracer.named("baton.run")) assert.equal(parentSpanId, submitted!.spanId);
  });

  it("may be registered after the node was started, and go away again", async (t) => {
    tracer.unregister();
    const node = await nodeHere(t, { tasks: TASKS });
    await finished(node, await submit(node, "echo"));
    assert.deepEqual(tracer.spans, []);
    tracer.register();
    await finished(node, await submit(node, "echo"));
    assert.equal(tracer.named("baton.run").length, 1);
    tracer.unregister();
    await finished(node, await submit(node, "echo"));
    assert.equal(tracer.named("baton.run").length, 1);
  });
});
