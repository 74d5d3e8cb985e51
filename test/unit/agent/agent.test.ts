import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Task, TaskContext } from "../../../src/jobs/tasks/task.ts";
import { PermanentError, RetryAfter } from "../../../src/jobs/tasks/task.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { FakeControllers } from "../../support/fake-controller.ts";
import { eventually } from "../../support/wait.ts";
import { startAgent } from "./world.ts";

const quick: Task = { name: "quick", run: (payload) => ({ got: payload }) };

/** Runs until it is told to stop or to end, and remembers why it was told. */
function held() {
  const reasons: string[] = [];
  const ends: (() => void)[] = [];
  const task: Task = {
    name: "held",
    run: (_payload, { signal }: TaskContext) =>
      new Promise((resolve, reject) => {
        ends.push(() => resolve("ended"));
        signal.addEventListener("abort", () => {
          reasons.push((signal.reason as { why: string }).why);
          reject(signal.reason as Error);
        });
      }),
  };
  return { task, reasons, end: () => ends.splice(0).forEach((end) => end()), running: () => ends.length };
}

describe("an agent", { concurrency: true }, () => {
  it("runs what it leases and posts the results, with the epochs of job and leader", async (t) => {
    const controllers = await FakeControllers.open(t);
    await startAgent(t, controllers, { tasks: [quick] });
    const jobs = [1, 2, 3].map((n) => controllers.submit("quick", { n }));
    for (const job of jobs) await controllers.until(job, "completed");
    assert.deepEqual(jobs[0]!.result, { got: { n: 1 } });
    assert.deepEqual(jobs[0]!.accepted, ["succeeded 1/1"]);
    const [lease] = controllers.calls("/v1/leases");
    assert.deepEqual(lease!.body["capabilities"], ["quick"]);
    assert.equal(lease!.body["version"], "1.2.3");
    assert.ok(controllers.calls("/v1/agents/heartbeat").length >= 1);
  });

  it("never runs more at once than it may, and leases as many as it has room for", async (t) => {
    const controllers = await FakeControllers.open(t);
    let running = 0;
    let most = 0;
    const busy: Task = {
      name: "busy",
      async run() {
        most = Math.max(most, ++running);
        await systemClock.sleep(5);
        running--;
      },
    };
    const jobs = Array.from({ length: 40 }, () => controllers.submit("busy"));
    await startAgent(t, controllers, { tasks: [busy], concurrency: 8 });
    for (const job of jobs) await controllers.until(job, "completed");
    assert.ok(most <= 8, `${most} at once`);
    assert.equal(controllers.calls("/v1/leases")[0]!.body["max_tasks"], 8);
    assert.ok(jobs.every(({ accepted }) => accepted.length === 1));
  });

  it("tells failures with their code, and that another attempt is in vain when it is", async (t) => {
    const controllers = await FakeControllers.open(t);
    let tries = 0;
    const flaky: Task = {
      name: "flaky",
      run() {
        if (++tries === 1) throw Object.assign(new Error("not yet"), { code: "NOT_YET" });
        return tries;
      },
    };
    const hopeless: Task = {
      name: "hopeless",
      run: () => Promise.reject(new PermanentError("never")),
    };
    await startAgent(t, controllers, { tasks: [flaky, hopeless] });
    const second = await controllers.until(controllers.submit("flaky"), "completed");
    assert.deepEqual(
      [second.failures, second.result, second.accepted],
      [1, 2, ["failed 1/1", "succeeded 2/1"]],
    );
    assert.deepEqual([second.error?.code, second.error?.retryable], ["NOT_YET", true]);
    const failed = await controllers.until(controllers.submit("hopeless"), "failed");
    assert.deepEqual([failed.failures, failed.error?.retryable], [1, false]);
  });

  it("asks for the delay that a handler chose, and for none otherwise", async (t) => {
    const controllers = await FakeControllers.open(t);
    let tries = 0;
    const limited: Task = {
      name: "limited",
      run() {
        if (++tries === 1) throw new RetryAfter("1500ms");
        return tries === 2 ? Promise.reject(new Error("not yet")) : tries;
      },
    };
    await startAgent(t, controllers, { tasks: [limited] });
    await controllers.until(controllers.submit("limited"), "completed");
    const errors = controllers.calls("/v1/results").flatMap(({ body }) => {
      const results = (Array.isArray(body) ? body : [body]) as { error?: { retry_after_ms?: number } }[];
      return results.flatMap(({ error }) => (error ? [error.retry_after_ms] : []));
    });
    assert.deepEqual(errors, [1_500, undefined]);
  });

  it("posts log lines in order and before the result, and the last progress", async (t) => {
    const controllers = await FakeControllers.open(t);
    const talkative: Task = {
      name: "talkative",
      async run(_payload, { log, progress }) {
        for (let n = 0; n < 50; n++) log(`line ${n}`);
        progress(40);
        await systemClock.sleep(300);
        progress(90, "nearly");
        log.warn("done");
      },
    };
    await startAgent(t, controllers, { tasks: [talkative] });
    const job = await controllers.until(controllers.submit("talkative"), "completed");
    assert.deepEqual(job.lines, [...Array.from({ length: 50 }, (_, n) => `line ${n}`), "done"]);
    assert.deepEqual(job.progress, { percent: 90, message: "nearly" });
    assert.ok(controllers.calls("/v1/logs").length <= 4, "lines travel together");
  });

  it("renews leases for as long as a handler works", async (t) => {
    const controllers = await FakeControllers.open(t, { leaseMs: 600 });
    const { task, reasons, end } = held();
    await startAgent(t, controllers, { tasks: [task] });
    const job = await controllers.until(controllers.submit("held"), "processing");
    await eventually("renewals", () => controllers.calls("/v1/leases/renew").length >= 6);
    assert.deepEqual([job.status, job.epoch, reasons], ["processing", 1, []]);
    end();
    await controllers.until(job, "completed");
    const renewals = controllers.calls("/v1/leases/renew").length;
    await systemClock.sleep(500);
    assert.equal(
      controllers.calls("/v1/leases/renew").length,
      renewals,
      "a lease that is not needed is let go",
    );
  });

  it("stops a handler whose job is cancelled, and says so", async (t) => {
    const controllers = await FakeControllers.open(t, { leaseMs: 600 });
    const { task, reasons } = held();
    await startAgent(t, controllers, { tasks: [task] });
    const job = await controllers.until(controllers.submit("held"), "processing");
    job.cancelled = "not wanted";
    await controllers.until(job, "cancelled");
    assert.deepEqual(reasons, ["cancel"]);
    assert.equal(job.error?.message, "not wanted");
  });

  it("stops a handler at its timeout, which is a failure that may be tried again", async (t) => {
    const controllers = await FakeControllers.open(t);
    const { task, reasons } = held();
    await startAgent(t, controllers, { tasks: [task] });
    const job = await controllers.until(
      controllers.submit("held", null, { timeoutMs: 50, maxAttempts: 1 }),
      "failed",
    );
    assert.deepEqual(reasons, ["timeout"]);
    assert.equal(job.error?.code, "TIMEOUT");
  });

  it("stops a handler whose lease was taken away, and posts nothing of it", async (t) => {
    const controllers = await FakeControllers.open(t, { leaseMs: 600 });
    const { task, reasons } = held();
    const { log } = await startAgent(t, controllers, { tasks: [task], concurrency: 1 });
    const job = await controllers.until(controllers.submit("held"), "processing");
    job.cancelled = null;
    controllers.takeAway(job.lease!);
    job.status = "completed"; // somebody else did it
    await eventually("the loss", () => reasons.length > 0);
    assert.deepEqual(reasons, ["lease_lost"]);
    assert.equal(log.about("the lease on running jobs is lost: it was taken away"), 1);
    await controllers.until(controllers.submit("held"), "processing");
    assert.equal(controllers.calls("/v1/results").length, 0);
  });

  it("stops a handler whose lease runs out because nobody answers", async (t) => {
    const controllers = await FakeControllers.open(t, { leaseMs: 800 });
    const { task, reasons } = held();
    const { log } = await startAgent(t, controllers, { tasks: [task] });
    await controllers.until(controllers.submit("held"), "processing");
    await controllers.nodes[0]!.close();
    await eventually("the loss", () => reasons.length > 0, 3_000);
    assert.deepEqual(reasons, ["lease_lost"]);
    assert.equal(log.about("it ran out before it could be renewed"), 1);
  });

  it("drops a result that is refused because its job has moved on, with a line in the log", async (t) => {
    const controllers = await FakeControllers.open(t, { leaseMs: 60_000 });
    const { task, end, running } = held();
    const { log } = await startAgent(t, controllers, { tasks: [task], concurrency: 1 });
    const job = await controllers.until(controllers.submit("held"), "processing");
    await eventually("the handler", () => running() > 0);
    job.epoch++; // another run of it is under way
    end();
    await eventually("the refusal", () => log.about("STALE_EPOCH") > 0);
    assert.deepEqual(job.accepted, []);
    await systemClock.sleep(300);
    assert.equal(controllers.calls("/v1/results").length, 1, "it is not posted again and again");
  });

  it("tells a result that no leader takes as a failure of its job", async (t) => {
    const controllers = await FakeControllers.open(t);
    controllers.instead = ({ path, body }) => {
      const large = path === "/v1/results" && JSON.stringify(body).length > 10_000;
      return large ? { status: 413, body: { error: "BODY_TOO_LARGE", message: "too large" } } : null;
    };
    const large: Task = { name: "large", run: () => "x".repeat(20_000) };
    await startAgent(t, controllers, { tasks: [large, quick] });
    const [job, neighbour] = [controllers.submit("large"), controllers.submit("quick")];
    await controllers.until(job, "failed");
    assert.equal(job.error?.code, "BAD_RESULT");
    await controllers.until(neighbour, "completed");
  });
});
