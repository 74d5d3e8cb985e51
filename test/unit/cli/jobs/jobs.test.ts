import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { fakeNode, JOB_ID, jobBody, OTHER_ID, sendEvents } from "../fake-node.ts";
import { runCli } from "../run-cli.ts";

const logLine = (seq: number, message: string) => ({
  seq,
  at: `2026-01-01T00:00:0${seq}.000Z`,
  level: seq === 2 ? "warn" : "info",
  message,
  job_epoch: 1,
});
const logEvent = (seq: number, message: string) => ({
  event: "log",
  id: String(seq),
  data: logLine(seq, message),
});
const endEvent = { event: "end", data: { job_id: JOB_ID, status: "completed", error: null } };

describe("baton jobs list", () => {
  it("prints a table and passes the filters on", async () => {
    const failed = jobBody({
      job_id: OTHER_ID,
      status: "failed",
      // Drained, retried by hand: runs that spend no attempt.
      attempts: 4,
      failures: 1,
      max_attempts: 1,
      error: { code: "ERROR", message: "no\nmore" },
    });
    const page = { items: [jobBody(), failed], nodes: [], partial: false, next_cursor: "abc" };
    await using node = await fakeNode({ "GET /cluster/jobs": page });
    const filters = "--status failed --queue q --task t --tag vip --since 2h --until 2026-01-01T00:30:00Z";
    const { code, out, err } = await runCli(`jobs list --url ${node.url} ${filters} --limit 2 --cursor c`);
    assert.equal(code, 0, err);
    assert.deepEqual(out.split("\n"), [
      "JOB                                          TASK   QUEUE    STATUS     ATTEMPTS  CREATED  ERROR",
      `${JOB_ID}  hello  default  completed  1/3       1h ago`,
      `${OTHER_ID}  hello  default  failed     1/1       1h ago   no`,
      "",
    ]);
    assert.equal(err, "there are more: --cursor abc\n");
    assert.deepEqual(node.asked[0]!.query, {
      status: "failed",
      queue: "q",
      task: "t",
      tag: "vip",
      since: "2025-12-31T23:00:00.000Z",
      until: "2026-01-01T00:30:00.000Z",
      limit: "2",
      cursor: "c",
    });
  });

  it("prints the node's own answer as JSON or YAML", async () => {
    const page = { items: [jobBody()], nodes: [], partial: false, next_cursor: null };
    await using node = await fakeNode({ "GET /cluster/jobs": page });
    const json = await runCli(["jobs", "list", "--url", node.url, "-o", "json"]);
    assert.deepEqual(JSON.parse(json.out), page);
    const yaml = await runCli(["jobs", "list", "--url", node.url, "-o", "yaml"]);
    assert.deepEqual(parse(yaml.out), page);
  });

  it("finds the node through BATON_URL", async () => {
    const page = { items: [], nodes: [], partial: false, next_cursor: null };
    await using node = await fakeNode({ "GET /cluster/jobs": page });
    const { code, out } = await runCli(["jobs", "--task", "t"], { environment: { BATON_URL: node.url } });
    assert.deepEqual([code, out], [0, "no jobs of task t\n"]);
    assert.equal(node.asked.length, 1);
  });

  it("goes to the next of several nodes when one does not answer", async () => {
    const page = { items: [], nodes: [], partial: false, next_cursor: null };
    await using node = await fakeNode({ "GET /cluster/jobs": page });
    const { code, err } = await runCli(["jobs", "--url", `http://127.0.0.1:1, ${node.url}`]);
    assert.equal(code, 0, err);
  });

  it("says whose jobs are missing", async () => {
    const nodes = [
      { name: "a", reachable: true, job_count: 1 },
      { name: "b", reachable: false, job_count: 0 },
    ];
    await using node = await fakeNode({
      "GET /cluster/jobs": { items: [jobBody()], nodes, partial: true, next_cursor: null },
    });
    const { err } = await runCli(["jobs", "--url", node.url]);
    assert.equal(err, "partial: b could not be reached, so what b has is missing here\n");
  });
});

describe("baton jobs show", () => {
  it("prints what matters about a job", async () => {
    const waiting = jobBody({
      status: "queued",
      worker: null,
      started_at: null,
      finished_at: null,
      waiting_for: { code: "unknown_task", message: "no node knows the task hello" },
    });
    await using node = await fakeNode({
      [`GET /jobs/${JOB_ID}`]: waiting,
      [`GET /jobs/${JOB_ID}/timeline`]: { runs: [], events: [], handoffs: [] },
    });
    const { code, out } = await runCli(["jobs", "show", JOB_ID, "--url", node.url]);
    assert.equal(code, 0);
    assert.match(out, /^status +queued$/m);
    assert.match(out, /^waits +no node knows the task hello$/m);
    assert.match(out, /^payload +\{"name":"world"\}$/m);
    assert.doesNotMatch(out, /^started/m);
  });

  it("exits with 3 when there is no such job", async () => {
    await using node = await fakeNode();
    const { code, out, err } = await runCli(["jobs", "show", JOB_ID, "--url", node.url]);
    assert.equal(code, 3);
    assert.equal(out, "");
    assert.equal(err, `error: there is no /jobs/${JOB_ID} (NOT_FOUND)\n`);
  });

  it("exits with 2 for what cannot be an id, without asking", async () => {
    await using node = await fakeNode();
    const { code, err } = await runCli(["jobs", "show", "17", "--url", node.url]);
    assert.equal(code, 2);
    assert.match(err, /'17' is invalid.*It is not a job id/);
    assert.equal(node.asked.length, 0);
  });
});

describe("baton jobs logs", () => {
  it("prints every line, page by page", async () => {
    const first = Array.from({ length: 5_000 }, (_, index) => ({ ...logLine(1, "x"), seq: index + 1 }));
    await using node = await fakeNode({
      [`GET /jobs/${JOB_ID}/logs`]: ({ query }: { query: Record<string, string> }) => {
        const logs = query["after"] === "5000" ? [{ ...logLine(2, "last"), seq: 5_001 }] : first;
        return { body: { job_id: JOB_ID, logs, next_after: logs.at(-1)!.seq } };
      },
    });
    const { code, out } = await runCli(["jobs", "logs", JOB_ID, "--url", node.url]);
    assert.equal(code, 0);
    const lines = out.trimEnd().split("\n");
    assert.equal(lines.length, 5_001);
    assert.equal(lines.at(-1), "2026-01-01T00:00:02.000Z warn  last");
  });

  it("follows a job to its end", async () => {
    await using node = await fakeNode({
      [`GET /jobs/${JOB_ID}`]: jobBody(),
      [`GET /jobs/${JOB_ID}/logs`]: (_: unknown, response: never) =>
        sendEvents(response, [logEvent(1, "one"), logEvent(2, "two"), endEvent]),
    });
    const { code, out, err } = await runCli(["jobs", "logs", "-f", JOB_ID, "--url", node.url]);
    assert.equal(code, 0);
    assert.equal(out, "2026-01-01T00:00:01.000Z info  one\n2026-01-01T00:00:02.000Z warn  two\n");
    assert.equal(err, `${JOB_ID} is completed\n`);
  });

  it("goes on behind the last line it saw when the connection breaks", async () => {
    let connections = 0;
    await using node = await fakeNode({
      [`GET /jobs/${JOB_ID}`]: jobBody(),
      [`GET /jobs/${JOB_ID}/logs`]: (_: unknown, response: never) =>
        ++connections === 1
          ? sendEvents(response, [logEvent(1, "one"), logEvent(2, "two")], true)
          : sendEvents(response, [logEvent(2, "two"), logEvent(3, "three"), endEvent]),
    });
    const { code, out } = await runCli(["jobs", "logs", "-f", JOB_ID, "-o", "json", "--url", node.url]);
    assert.equal(code, 0);
    const lines = out.trimEnd().split("\n");
    const found = lines.map((line) => (JSON.parse(line) as { message: string }).message);
    assert.deepEqual(found, ["one", "two", "three"]);
    assert.equal(connections, 2);
    const { query, headers } = node.asked.at(-1)!;
    assert.equal(headers["last-event-id"] ?? query["after"], "2");
  });
});

describe("baton jobs cancel, retry and delete", () => {
  it("print what became of the job", async () => {
    await using node = await fakeNode({
      [`POST /jobs/${JOB_ID}/cancel`]: () => ({
        status: 202,
        body: { job_id: JOB_ID, status: "processing", cancel_requested: true },
      }),
      [`POST /jobs/${JOB_ID}/retry`]: { job_id: JOB_ID, status: "queued" },
      [`DELETE /jobs/${JOB_ID}`]: { status: "ok", job_id: JOB_ID },
    });
    const cancelled = await runCli(["jobs", "cancel", JOB_ID, "--reason", "not needed", "--url", node.url]);
    assert.equal(cancelled.out, `${JOB_ID} processing (asked to stop)\n`);
    assert.deepEqual(node.asked[0]!.body, { reason: "not needed" });
    assert.equal((await runCli(["jobs", "retry", JOB_ID, "--url", node.url])).out, `${JOB_ID} queued\n`);
    assert.equal((await runCli(["jobs", "delete", JOB_ID, "--url", node.url])).out, `${JOB_ID} deleted\n`);
  });

  it("try every job they were given and exit with the first failure's code", async () => {
    await using node = await fakeNode({
      [`POST /jobs/${OTHER_ID}/retry`]: { job_id: OTHER_ID, status: "queued" },
    });
    const { code, out, err } = await runCli(["jobs", "retry", JOB_ID, OTHER_ID, "--url", node.url]);
    assert.equal(code, 3);
    assert.equal(out, `${OTHER_ID} queued\n`);
    assert.match(err, /1 of 2 jobs were not changed/);
  });
});

describe("a node that does not answer", () => {
  it("is named with what to do, and the exit code is 5", async () => {
    const node = await fakeNode();
    await node[Symbol.asyncDispose]();
    for (const args of [["jobs", "list"], ["status"], ["jobs", "logs", "-f", JOB_ID], ["submit", "hello"]]) {
      const { code, err } = await runCli([...args, "--url", node.url]);
      assert.equal(code, 5, args.join(" "));
      assert.ok(err.includes(node.url), err);
      assert.match(err, /hint: start a node with `baton start`, or name another one with --url or BATON_URL/);
    }
  });

  it("makes the command give up with 124 after --timeout", async () => {
    await using node = await fakeNode({ "GET /status": () => new Promise(() => {}) });
    const { code, err } = await runCli(["status", "--timeout", "50ms", "--url", node.url]);
    assert.equal(code, 124, err);
  });

  it("is not even tried when its URL is none", async () => {
    const { code, err } = await runCli(["status"], { environment: { BATON_URL: "localhost:80" } });
    assert.equal(code, 2);
    assert.equal(
      err,
      'error: BATON_URL must be a URL such as http://127.0.0.1:8420, not "localhost:80"\nhint: write http://localhost:80\n',
    );
  });
});
