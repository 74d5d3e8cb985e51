import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newClaim, decide } from "../../../src/agent/link-messages.ts";
import { resultBatches, resultText } from "../../../src/agent/result-sender.ts";
import type { JobId, LeaseId } from "../../../src/core/ids.ts";
import type { Task } from "../../../src/jobs/tasks/task.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { FakeControllers } from "../../support/fake-controller.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { eventually } from "../../support/wait.ts";
import { buildAgent, startAgent } from "./world.ts";

function sleeper(name: string, ms: number, polite: boolean): Task {
  return {
    name,
    run: (_payload, { signal }) =>
      new Promise((resolve, reject) => {
        const wakeNever = systemClock.after(ms, () => resolve("slept"));
        if (!polite) return;
        signal.addEventListener("abort", () => {
          wakeNever();
          reject(signal.reason as Error);
        });
      }),
  };
}

describe("an agent that is stopped", { concurrency: true }, () => {
  it("finishes short jobs, gives long ones back without burning anything, and leases no more", async (t) => {
    const controllers = await FakeControllers.open(t);
    const { agent } = await startAgent(t, controllers, {
      tasks: [sleeper("short", 300, false), sleeper("long", 60_000, true), sleeper("deaf", 2_500, false)],
      drain: { timeoutMs: 900, cleanupMs: 300 },
    });
    const [short, long, deaf] = ["short", "long", "deaf"].map((task) => controllers.submit(task));
    await eventually("all to run", () => agent.list().length === 3);
    // One that is on its way could be answered after the stop.
    await eventually("its next poll", () => controllers.polls > 0);
    const stopping = agent.stop();
    await eventually("the poll to be called off", () => controllers.polls === 0);
    const late = controllers.submit("short");
    await stopping;
    assert.deepEqual([short!.status, short!.accepted], ["completed", ["succeeded 1/1"]]);
    for (const job of [long, deaf])
      assert.deepEqual(
        [job!.status, job!.attempts, job!.failures, job!.accepted],
        ["queued", 0, 0, ["released 1/1"]],
      );
    assert.deepEqual([late.status, late.epoch], ["queued", 0], "nothing is leased any more");
  });

  it("hurries when it is told to", async (t) => {
    const controllers = await FakeControllers.open(t);
    const { agent } = await startAgent(t, controllers, {
      tasks: [sleeper("long", 60_000, true)],
      concurrency: 1, // no poll is under way that could lease it again
      drain: { timeoutMs: 60_000, cleanupMs: 5_000 },
    });
    const job = await controllers.until(controllers.submit("long"), "processing");
    await eventually("its start", () => agent.list().length === 1);
    const before = systemClock.monotonic();
    const stopping = agent.stop();
    agent.hurry();
    await stopping;
    assert.ok(systemClock.monotonic() - before < 30_000);
    assert.deepEqual([job.status, job.accepted], ["queued", ["released 1/1"]]);
  });

  it("says as its last word which answer it does not wait for any more", async (t) => {
    const controllers = await FakeControllers.open(t);
    const { agent } = await startAgent(t, controllers, { tasks: [sleeper("short", 1, false)] });
    await eventually("its poll", () => controllers.polls > 0);
    const { request_id } = controllers.calls("/v1/leases").at(-1)!.body;
    await agent.stop();
    const last = controllers.calls("/v1/agents/heartbeat").at(-1)!.body;
    assert.deepEqual([last["unanswered"], last["running"]], [[request_id], 0]);
  });

  it("posts its results for as long as a drain may take, while leaders change", async (t) => {
    // Of a lease that outlives the time without a leader: a busy machine makes that time long.
    const controllers = await FakeControllers.open(t, { leaseMs: 30_000 });
    const { agent, log } = await startAgent(t, controllers, {
      tasks: [sleeper("short", 200, false)],
      drain: { timeoutMs: 8_000, cleanupMs: 300 },
    });
    const job = await controllers.until(controllers.submit("short"), "processing");
    await eventually("its start", () => agent.list().length === 1);
    controllers.lead(null);
    const stopping = agent.stop();
    await systemClock.sleep(2_500);
    assert.equal(job.status, "processing");
    controllers.lead(controllers.nodes[0]!);
    await stopping;
    assert.deepEqual([job.accepted, log.about("could not be posted")], [["succeeded 1/2"], 0]);
  });

  it("does not wait for ever for a leader that is not there, and tells what it could not post", async (t) => {
    const controllers = await FakeControllers.open(t);
    const { agent, log } = await startAgent(t, controllers, {
      tasks: [sleeper("short", 200, false)],
      drain: { timeoutMs: 1_000, cleanupMs: 300 },
    });
    await controllers.until(controllers.submit("short"), "processing");
    await eventually("its start", () => agent.list().length === 1);
    await controllers.nodes[0]!.close();
    const before = systemClock.monotonic();
    await agent.stop();
    assert.ok(systemClock.monotonic() - before < 30_000);
    assert.equal(log.about("results could not be posted before the end"), 1);
  });
});

describe("an offer", () => {
  it("is taken or withdrawn, by whoever is first", () => {
    const claim = newClaim();
    assert.deepEqual([decide(claim), decide(claim), decide(claim)], [true, false, false]);
  });
});

describe("results that are posted together", () => {
  const run = (n: number) => {
    return { lease: "agent:a/1" as LeaseId, id: `job-${n}` as JobId, jobEpoch: 1 };
  };
  const posting = (n: number, length: number) => ({
    run: run(n),
    ended: { status: "succeeded" as const, result: JSON.stringify("x".repeat(length)) },
  });

  it("fit into one body, in order, and one that is too large goes alone", () => {
    const all = [
      posting(1, 300_000),
      posting(2, 300_000),
      posting(3, 10),
      posting(4, 9_000_000),
      posting(5, 1),
    ];
    const found = resultBatches(all).map((parcel) => parcel.map((each) => each.run.id));
    assert.deepEqual(found, [["job-1"], ["job-2", "job-3"], ["job-4"], ["job-5"]]);
    assert.deepEqual(resultBatches([]), []);
  });

  it("are JSON whatever the result is", () => {
    const texts = ["null", '{"a":[1,"\\"]}"]}', '"x"'];
    for (const result of texts) {
      const text = resultText({ run: run(1), ended: { status: "succeeded", result } }, "a", 7);
      const body = JSON.parse(text) as Record<string, unknown>;
      assert.deepEqual([body["result"], body["leader_epoch"]], [JSON.parse(result), 7]);
    }
    assert.equal(
      "result" in JSON.parse(resultText({ run: run(1), ended: { status: "released" } }, "a", 7)),
      false,
    );
  });
});

lifecycleStress("an agent", async () => {
  const scope: (() => unknown)[] = [];
  const controllers = await FakeControllers.open({ after: (step) => void scope.push(step as () => unknown) });
  const task: Task = { name: "quick", run: () => "done" };
  const { agent } = buildAgent(controllers, { tasks: [task], drain: { timeoutMs: 0, cleanupMs: 0 } });
  return {
    service: agent,
    works: async () => void (await controllers.until(controllers.submit("quick"), "completed")),
    close: async () => {
      await agent.stop();
      for (const step of scope) await step();
    },
  };
});
