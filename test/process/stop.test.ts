import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { systemClock } from "../../src/platform/clock.ts";
import { BIN, dataDirectory, NodeProcess } from "../support/process-node.ts";
import { eventually } from "../support/wait.ts";

describe("a node that gets SIGTERM", () => {
  it("is not ready, takes no new jobs, finishes short ones, interrupts long ones, and exits with 0", async (t) => {
    const data = await dataDirectory(t);
    const settings = { DRAIN__TIMEOUT: "2500ms", DRAIN__CLEANUP: "1s" };
    const node = await NodeProcess.start(t, { data, settings });
    const { job_id: long } = await node.client.submit({ task: "hold", max_attempts: 1 });
    const { job_id: short } = await node.client.submit({ task: "work", payload: { ms: 800 } });
    const { job_id: never } = await node.client.submit({ task: "work", payload: { ms: 0 }, delay_ms: 500 });
    for (const id of [long, short]) await node.processing(id);

    const stopping = node.terminate();
    const ready = await eventually("readiness to end", async () => {
      const answer = await node.call("/readyz");
      return answer.status === 503 ? answer : null;
    });
    assert.deepEqual((ready.body as { ready: boolean }).ready, false);
    const refused = await node.post("/jobs", { task: "work", payload: { ms: 0 } });
    assert.equal(refused.status, 503);
    assert.equal((refused.body as { error: string }).error, "DRAINING");
    assert.ok(Number(refused.headers.get("retry-after")) >= 1);
    assert.equal((await node.call(`/jobs/${long}`)).status, 200, "it still answers questions");

    const { code, signal, tookMs } = await stopping;
    assert.deepEqual([code, signal], [0, null], node.stderr);
    assert.ok(tookMs >= 1_000 && tookMs < 20_000, `${tookMs} ms`);
    assert.match(node.stderr, /SIGTERM: finishing what runs/);

    const next = await NodeProcess.start(t, { data });
    const finished = await next.client.job(short);
    assert.deepEqual([finished.status, finished.attempts, finished.interruptions], ["completed", 1, 0]);
    const interrupted = await next.processing(long);
    assert.deepEqual(
      [interrupted.failures, interrupted.interruptions, interrupted.crashes, interrupted.attempts],
      [0, 1, 0, 2],
    );
    const { logs } = await next.client.logs(long);
    assert.deepEqual(
      logs.map(({ message }) => message),
      ["holding", "told: drain", "holding"],
    );
    assert.equal((await next.client.wait(never, { timeoutMs: 5_000 })).job.attempts, 1);
  });

  it("ends those who follow a job, and gives up a handler that does not listen, which is no crash either", async (t) => {
    const data = await dataDirectory(t);
    const settings = { DRAIN__TIMEOUT: "600ms", DRAIN__CLEANUP: "300ms" };
    const node = await NodeProcess.start(t, { data, settings });
    const { job_id: followed } = await node.client.submit({ task: "hold" });
    const { job_id: deaf } = await node.client.submit({ task: "deaf" });
    for (const id of [followed, deaf]) await node.processing(id);
    const events: string[] = [];
    const gone = new AbortController();
    const following = (async () => {
      for await (const event of node.client.followLogs(followed, { signal: gone.signal, giveUpAfterMs: 1 })) {
        events.push(event.event);
      }
    })().catch(() => {});
    await eventually("the first line", async () => events.includes("log") || null);
    assert.equal((await node.terminate()).code, 0);
    gone.abort();
    await following;
    const next = await NodeProcess.start(t, { data });
    const job = await next.processing(deaf);
    assert.deepEqual([job.failures, job.interruptions, job.crashes], [0, 1, 0]);
  });

  it("hurries when it gets it again", async (t) => {
    const data = await dataDirectory(t);
    const node = await NodeProcess.start(t, {
      data,
      settings: { DRAIN__TIMEOUT: "60s", DRAIN__CLEANUP: "10s" },
    });
    const { job_id: polite } = await node.client.submit({ task: "hold" });
    const { job_id: deaf } = await node.client.submit({ task: "deaf" });
    for (const id of [polite, deaf]) await node.processing(id);
    const stopping = node.terminate();
    await eventually("the drain to begin", async () => node.stderr.includes("finishing what runs") || null);
    await systemClock.sleep(400); // a signal that follows at once passes for an echo of the first
    assert.equal(node.child.exitCode, null);
    const again = systemClock.monotonic();
    node.signal("SIGTERM");
    assert.equal((await stopping).code, 0, node.stderr);
    assert.ok(systemClock.monotonic() - again < 3_000);
    assert.match(node.stderr, /SIGTERM: stopping now/);
    const next = await NodeProcess.start(t, { data });
    for (const id of [polite, deaf]) {
      const job = await next.processing(id);
      assert.deepEqual([job.failures, job.interruptions, job.crashes], [0, 1, 0]);
    }
  });
});

describe("the signal arrives", () => {
  it("through a shell as npm has it, and a node without work is gone long before a drain ends, also with a client that stays connected", async (t) => {
    const quote = (part: string): string => `'${part.replaceAll("'", "'\\''")}'`;
    const node = await NodeProcess.start(t, {
      data: await dataDirectory(t),
      command: (args) => ["sh", ["-c", `exec ${[process.execPath, BIN, ...args].map(quote).join(" ")}`]],
    });
    await node.client.health(); // leaves a connection open
    const { code, tookMs } = await node.terminate();
    assert.equal(code, 0);
    assert.ok(tookMs < 10_000, `${tookMs} ms of a drain of 30 s`);
  });

  const older = olderNode();
  it(
    "through the launcher of an older Node, and its death is the node's",
    { skip: older === null && "there is no older Node on this machine" },
    async (t) => {
      const data = await dataDirectory(t);
      const command = (args: readonly string[]): readonly [string, readonly string[]] => [
        older!,
        [BIN, ...args],
      ];
      const first = await NodeProcess.start(t, { data, command });
      const { code } = await first.terminate();
      assert.equal(code, 0);

      const second = await NodeProcess.start(t, { data, command });
      const { url } = second;
      await second.kill(); // the launcher alone
      await eventually("the node to be gone", () =>
        fetch(`${url}/health`).then(
          () => null,
          () => true,
        ),
      );
      const third = await NodeProcess.start(t, { data, command });
      assert.equal((await third.client.health()).status, "ok");
    },
  );
});

/** The Node of the machine, if it is too old for us; the tests themselves run on a newer one. */
function olderNode(): string | null {
  for (const path of ["/usr/bin/node", "/usr/local/bin/node"]) {
    const { stdout, status } = spawnSync(path, ["--version"]);
    if (status === 0 && Number(/^v(\d+)/.exec(stdout.toString())?.[1]) < 24) return path;
  }
  return null;
}

describe("a task that forgets to wait for a promise", () => {
  it("is told of in the log, and costs neither the node nor its neighbours anything", async (t) => {
    const data = await dataDirectory(t);
    const node = await NodeProcess.start(t, { data });
    const { job_id: neighbour } = await node.client.submit({ task: "work", payload: { ms: 300 } });
    const { job_id: careless } = await node.client.submit({ task: "careless" });
    for (const id of [careless, neighbour]) {
      const { job } = await node.client.wait(id, { timeoutMs: 5_000 });
      assert.deepEqual([job.status, job.attempts, job.crashes], ["completed", 1, 0]);
    }
    assert.equal((await node.terminate()).code, 0);
    assert.match(node.stdout, /nobody waits for me/);
  });
});
