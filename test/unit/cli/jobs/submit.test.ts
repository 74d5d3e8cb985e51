import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fakeNode, JOB_ID, jobBody, sendEvents } from "../fake-node.ts";
import { runCli, testClock } from "../run-cli.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";

const directory = suiteDirectory();

const submitted = { job_id: JOB_ID, status: "queued", existed: false };
const progress = (value: number, message: string) => ({
  event: "progress",
  data: { progress: value, message },
});
const end = (status: string, error: unknown = null) => ({
  event: "end",
  data: { job_id: JOB_ID, status, error },
});

describe("baton submit", () => {
  it("prints the id on stdout and the status on stderr", async () => {
    await using node = await fakeNode({ "POST /jobs": submitted });
    const { code, out, err } = await runCli(["submit", "hello", '{"name":"world"}', "--url", node.url]);
    assert.equal(code, 0);
    assert.equal(out, `${JOB_ID}\n`);
    assert.equal(err, "queued\n");
    assert.deepEqual(node.asked[0]!.body, { task: "hello", payload: { name: "world" } });
  });

  it("says that a job had the key already", async () => {
    await using node = await fakeNode({ "POST /jobs": { ...submitted, existed: true, status: "completed" } });
    const args = ["submit", "hello", "--idempotency-key", "k", "--key-reuse", "never", "--url", node.url];
    const { out, err } = await runCli(args);
    assert.equal(out, `${JOB_ID}\n`);
    assert.equal(err, "completed (this job has the key already; no other was made)\n");
    assert.deepEqual(node.asked[0]!.body, { task: "hello", idempotency_key: "k", key_reuse: "never" });
  });

  it("passes every option on", async () => {
    await using node = await fakeNode({ "POST /jobs": submitted });
    const options = ["--queue", "mail", "--priority", "-5", "--delay", "90s", "--attempts", "7"];
    const more = ["--job-timeout", "2m", "--idempotency-key", "k 1", "--tag", "red", "--tag", "b c"];
    const { code } = await runCli(["submit", "t", "null", ...options, ...more, "--url", node.url]);
    assert.equal(code, 0);
    const { body, headers } = node.asked[0]!;
    assert.deepEqual(
      { idempotency_key: headers["idempotency-key"], ...(body as object) },
      {
        task: "t",
        payload: null,
        queue: "mail",
        priority: -5,
        delay_ms: 90_000,
        max_attempts: 7,
        timeout_ms: 120_000,
        idempotency_key: "k 1",
        tags: ["red", "b c"],
      },
    );
  });

  it("takes a time only with its zone", async () => {
    await using node = await fakeNode({ "POST /jobs": submitted });
    await runCli(["submit", "t", "--run-at", "2026-01-31T10:00:00+01:00", "--url", node.url]);
    assert.deepEqual(node.asked[0]!.body, { task: "t", run_at: "2026-01-31T09:00:00.000Z" });
    const { code, err } = await runCli(["submit", "t", "--run-at", "2026-01-31T10:00:00", "--url", node.url]);
    assert.equal(code, 2);
    assert.match(err, /It must be a time with its zone, such as 2026-01-31T09:00:00Z\./);
  });

  it("reads the payload from a file and from stdin", async () => {
    await using node = await fakeNode({ "POST /jobs": submitted });
    writeFileSync(join(directory, "p.json"), "[1]");
    await runCli(["submit", "t", "--payload-file", "p.json", "--url", node.url], { cwd: directory });
    await runCli(["submit", "t", "--payload-file", "-", "--url", node.url], { input: '"ä"' });
    const found = node.asked.map(({ body }) => (body as { payload: unknown }).payload);
    assert.deepEqual(found, [[1], "ä"]);
  });

  it("shows where the JSON is wrong and submits nothing", async () => {
    await using node = await fakeNode({ "POST /jobs": submitted });
    const { code, out, err } = await runCli(["submit", "t", "{name: 1}", "--url", node.url]);
    assert.deepEqual([code, out], [2, ""]);
    assert.match(err, /^error: the payload is not valid JSON at line 1, column 2/);
    writeFileSync(join(directory, "bad.json"), '{\n  "a": }');
    const file = await runCli(["submit", "t", "--payload-file", "bad.json", "--url", node.url], {
      cwd: directory,
    });
    assert.match(file.err, /the payload in bad\.json is not valid JSON at line 2, column 8/);
    assert.equal(node.asked.length, 0);
  });

  it("refuses options that exclude each other or make no sense", async () => {
    const cases: [string[], RegExp][] = [
      [["--delay", "1s", "--run-at", "2026-01-31T09:00:00Z"], /give --delay or --run-at, not both/],
      [["1", "--payload-file", "x"], /give the payload as an argument or with --payload-file, not both/],
      [["--delay", "5"], /It needs a unit: write 5s or 5ms, not 5\./],
      [["--priority", "high"], /It must be a whole number\./],
      [["--payload-file", "nope.json"], /--payload-file nope\.json cannot be read: there is no such file/],
      [["--idempotencykey", "k"], /Did you mean --idempotency-key\?/],
    ];
    for (const [args, message] of cases) {
      const { code, err } = await runCli(["submit", "t", ...args, "--url", "http://127.0.0.1:1"], {
        cwd: directory,
      });
      assert.equal(code, 2, err);
      assert.match(err, message);
    }
  });

  it("says what the node found wrong and exits with 4", async () => {
    const refusal = { error: "BAD_PAYLOAD", message: '"payload.name" must be text', field: "payload.name" };
    await using node = await fakeNode({ "POST /jobs": () => ({ status: 400, body: refusal }) });
    const { code, err } = await runCli(["submit", "t", "--url", node.url]);
    assert.equal(code, 4);
    assert.equal(err, 'error: "payload.name" must be text (BAD_PAYLOAD)\n');
  });
});

describe("baton submit without an answer", () => {
  it("says that the job may have been taken", async () => {
    await using node = await fakeNode({
      "POST /jobs": (_: unknown, response: ServerResponse) => {
        response.socket?.destroy();
        return "handled";
      },
    });
    const broken = await runCli(["submit", "t", "--url", node.url]);
    assert.equal(broken.code, 5);
    assert.match(broken.err, /hint: the job may have been taken: look with `baton jobs list`/);
    // The time is up when the node has the request: before that, the job cannot have been taken.
    let expire = (): void => {};
    node.routes.set("POST /jobs", () => {
      expire();
      return new Promise(() => {});
    });
    const after = (ms: number, run: () => void): (() => void) => {
      if (ms < 30_000) return testClock.after(ms, run);
      expire = run;
      return () => {};
    };
    const clock = { ...testClock, after };
    const late = await runCli(["submit", "t", "--timeout", "1m", "--url", node.url], { clock });
    assert.equal(late.code, 124);
    assert.match(late.err, /hint: the job may have been taken/);
  });
});

describe("baton submit --wait", () => {
  const routes = (events: Parameters<typeof sendEvents>[1]) => ({
    "POST /jobs": submitted,
    [`GET /jobs/${JOB_ID}/logs`]: (_: unknown, response: never) => sendEvents(response, events),
    [`GET /jobs/${JOB_ID}`]: jobBody(),
    [`GET /jobs/${JOB_ID}/result`]: { job_id: JOB_ID, status: "completed", result: { greeting: "hi" } },
  });

  it("prints the result as JSON and the progress on stderr", async () => {
    await using node = await fakeNode(routes([progress(50, "half"), progress(100, "all"), end("completed")]));
    const { code, out, err } = await runCli(["submit", "hello", "--wait", "--url", node.url]);
    assert.equal(code, 0, err);
    assert.deepEqual(JSON.parse(out), { greeting: "hi" });
    assert.equal(err, `${JOB_ID} submitted\n${JOB_ID} 50% half\n${JOB_ID} 100% all\n`);
  });

  it("keeps to one line on a terminal and takes it away at the end", async () => {
    await using node = await fakeNode(routes([progress(50, "half"), end("completed")]));
    const { err } = await runCli(["submit", "hello", "--wait", "--url", node.url], { columns: 60 });
    const clear = "\r\u001b[2K";
    assert.ok(!err.includes("\n"));
    assert.ok(err.endsWith(clear));
    assert.ok(err.split(clear).every((line) => line.length < 60));
  });

  it("exits with 1 and says why when the job failed or was cancelled", async () => {
    await using failed = await fakeNode(routes([end("failed", { code: "ERROR", message: "no such host" })]));
    const first = await runCli(["submit", "hello", "--wait", "--url", failed.url]);
    assert.equal(first.code, 1);
    assert.equal(first.out, "");
    assert.match(first.err, new RegExp(`error: ${JOB_ID} failed: no such host \\(ERROR\\)\n$`));
    await using cancelled = await fakeNode(routes([end("cancelled")]));
    const second = await runCli(["submit", "hello", "--wait", "--url", cancelled.url]);
    assert.equal(second.code, 1);
    assert.match(second.err, new RegExp(`error: ${JOB_ID} was cancelled\n$`));
  });

  it("gives up with 124 after --timeout and says how to go on", async () => {
    await using node = await fakeNode({
      ...routes([]),
      [`GET /jobs/${JOB_ID}/logs`]: (_: unknown, response: ServerResponse) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.flushHeaders();
        return "handled";
      },
    });
    const { code, err } = await runCli(`submit hello --wait --timeout 100ms --url ${node.url}`);
    assert.equal(code, 124, err);
    assert.match(
      err,
      new RegExp(`error: ${JOB_ID} is not finished after 100ms\nhint: it goes on: baton jobs logs -f`),
    );
  });

  it("tells why a job does not start", async () => {
    const waiting_for = { code: "unknown_task", message: "no node knows the task helo" };
    await using node = await fakeNode({
      ...routes([]),
      [`GET /jobs/${JOB_ID}`]: jobBody({ status: "queued", waiting_for }),
      [`GET /jobs/${JOB_ID}/logs`]: (_: unknown, response: ServerResponse) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.flushHeaders();
        return "handled";
      },
    });
    const { err } = await runCli(["submit", "helo", "--wait", "--timeout", "2s", "--url", node.url]);
    assert.match(err, new RegExp(`${JOB_ID} waits: no node knows the task helo\n`));
  });
});
