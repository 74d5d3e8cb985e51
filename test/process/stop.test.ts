import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { systemClock } from "../../src/platform/clock.ts";
import { dataDirectory, NodeProcess } from "../support/process-node.ts";
import { BIN } from "../support/process.ts";
import { eventually } from "../support/wait.ts";

describe("a node that gets SIGTERM", () => {
  it("is not ready, takes no new jobs, finishes short ones, and hurries when it gets it again", async (t) => {
    const data = await dataDirectory(t);
    const until = join(data, "finished");
    const settings = { DRAIN__TIMEOUT: "60s", DRAIN__CLEANUP: "10s" };
    const node = await NodeProcess.start(t, { data, settings });
    const { job_id: polite } = await node.client.submit({ task: "hold", max_attempts: 1 });
    const { job_id: deaf } = await node.client.submit({ task: "deaf" });
    const { job_id: short } = await node.client.submit({ task: "work", payload: { until } });
    for (const id of [polite, deaf, short]) await node.processing(id);

    const stopping = node.terminate();
    const ready = await eventually("readiness to end", async () => {
      const answer = await node.call("/readyz");
      return answer.status === 503 ? answer : null;
    });
    assert.deepEqual((ready.body as { ready: boolean }).ready, false);
    const refused = await node.post("/jobs", { task: "work" });
    assert.equal(refused.status, 503);
    assert.equal((refused.body as { error: string }).error, "DRAINING");
    assert.ok(Number(refused.headers.get("retry-after")) >= 1);
    await writeFile(until, "");
    const finished = await node.jobWhen(short, ({ status }) => status === "completed");
    assert.deepEqual([finished.attempts, finished.interruptions], [1, 0]);
    assert.match(node.stderr, /SIGTERM: finishing what runs/);
    assert.equal(node.child.exitCode, null);

    await systemClock.sleep(400); // a signal that follows at once passes for an echo of the first
    const again = systemClock.monotonic();
    node.signal("SIGTERM");
    const { code, signal } = await stopping;
    assert.deepEqual([code, signal], [0, null], node.stderr);
    assert.ok(systemClock.monotonic() - again < 30_000, "it does not wait for the end of the drain");
    assert.match(node.stderr, /SIGTERM: stopping now/);
    const next = await NodeProcess.start(t, { data });
    for (const id of [polite, deaf]) {
      const job = await next.processing(id);
      assert.deepEqual([job.failures, job.interruptions, job.crashes, job.attempts], [0, 1, 0, 2]);
    }
  });

  it("when the drain has ended: interrupts what runs, ends those who follow it, and gives up a handler that does not listen", async (t) => {
    const data = await dataDirectory(t);
    const settings = { DRAIN__TIMEOUT: "600ms", DRAIN__CLEANUP: "300ms" };
    const node = await NodeProcess.start(t, { data, settings });
    const { job_id: followed } = await node.client.submit({ task: "hold" });
    const { job_id: deaf } = await node.client.submit({ task: "deaf" });
    const { job_id: never } = await node.client.submit({ task: "work", delay_ms: 3_600_000 });
    for (const id of [followed, deaf]) await node.processing(id);
    const events: string[] = [];
    const gone = new AbortController();
    const following = (async () => {
      for await (const event of node.client.followLogs(followed, { signal: gone.signal, giveUpAfterMs: 1 })) {
        events.push(event.event);
      }
    })().catch(() => {});
    await eventually("the first line", () => events.includes("log"));
    assert.equal((await node.terminate()).code, 0);
    gone.abort();
    await following;
    const next = await NodeProcess.start(t, { data });
    for (const id of [followed, deaf]) {
      const job = await next.processing(id);
      assert.deepEqual([job.failures, job.interruptions, job.crashes], [0, 1, 0]);
    }
    assert.deepEqual(await next.lines(followed), ["holding", "told: drain", "holding"]);
    assert.equal((await next.client.job(never)).status, "scheduled");
  });
});

describe("the signal arrives", () => {
  it("through a shell as npm has it, and a node without work is gone long before a drain ends, also with a client that stays connected", async (t) => {
    const quote = (part: string): string => `'${part.replaceAll("'", "'\\''")}'`;
    const node = await NodeProcess.start(t, {
      data: await dataDirectory(t),
      settings: { DRAIN__TIMEOUT: "2m" },
      command: (args) => ["sh", ["-c", `exec ${[process.execPath, BIN, ...args].map(quote).join(" ")}`]],
    });
    await node.client.health(); // leaves a connection open
    const { code, tookMs } = await node.terminate();
    assert.equal(code, 0);
    assert.ok(tookMs < 60_000, `${tookMs} ms of a drain of two minutes`);
  });
});

describe("a task that forgets to wait for a promise", () => {
  it("is told of in the log, and costs neither the node nor its neighbours anything", async (t) => {
    const data = await dataDirectory(t);
    const node = await NodeProcess.start(t, { data });
    const { job_id: neighbour } = await node.client.submit({ task: "work", payload: { ms: 300 } });
    const { job_id: careless } = await node.client.submit({ task: "careless" });
    for (const id of [careless, neighbour]) {
      const { job } = await node.client.wait(id, { timeoutMs: 30_000 });
      assert.deepEqual([job.status, job.attempts, job.crashes], ["completed", 1, 0]);
    }
    assert.equal((await node.terminate()).code, 0);
    assert.match(node.stdout, /nobody waits for me/);
  });
});
