import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { before, beforeEach, describe, it } from "node:test";
import { BatonClient, CallError } from "../../../src/client/baton-client.ts";
import type { FollowEvent } from "../../../src/client/baton-client.ts";
import type { JobId } from "../../../src/core/ids.ts";
import { HEARTBEAT_MS } from "../../../src/api/schema/event-bytes.ts";
import { atEnd, suiteScope, type Scope } from "../../support/node-cleanup.ts";
import { FakeNode, serverOf } from "./fake-node.ts";
import { column } from "../../support/columns.ts";

async function opened(t: Scope) {
  const node = new FakeNode();
  const server = serverOf(node);
  await server.start();
  const client = new BatonClient({ url: server.url });
  atEnd(t, () => server.stop());
  atEnd(t, () => client.close());
  return { node, server, client };
}

const scope = suiteScope();
let { node, server, client } = {} as Awaited<ReturnType<typeof opened>>;
before(async () => ({ node, server, client } = await opened(scope)));
beforeEach(() => node.reset());

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((turn) => setImmediate(turn));
}

async function refusal(call: Promise<unknown>): Promise<CallError> {
  const error = await call.then(
    () => assert.fail("it was not refused"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof CallError, String(error));
  return error;
}

describe("the client and the cluster", () => {
  it("looks at the cluster, its nodes and its leaders", async () => {
    node.join("node-b");
    assert.equal((await client.cluster.info()).total_nodes, 2);
    assert.deepEqual(column((await client.cluster.nodes()).nodes, "name"), ["node-a", "node-b"]);
    assert.equal((await client.cluster.node("node-b")).url, "http://node-b:8420");
    assert.equal((await client.cluster.leaders()).leaders[0]!.node_id, "node-a");
    assert.deepEqual((await client.cluster.metrics(1)).samples, []);
    node.add();
    assert.equal((await client.cluster.jobs({ limit: 5 })).items.length, 1);
  });

  it("calls a function and gets its result", async () => {
    node.ending = { status: "completed", result: { sum: 3 } };
    const { job_id, result } = await client.call("math/add", [1, 2], { timeoutMs: 700 });
    assert.deepEqual(result, { sum: 3 });
    const { job } = node.kept.get(job_id)!;
    assert.deepEqual([job.task, job.payload, job.timeoutMs], ["math/add", "[1,2]", 700]);
  });

  it("is told why a function failed, or under which id it goes on", async () => {
    node.ending = { status: "failed", result: null };
    const failed = await refusal(client.call("hello"));
    assert.deepEqual([failed.code, failed.status], ["FUNCTION_FAILED", 422]);
    node.ending = null;
    const late = await refusal(client.call("hello", null, { timeoutMs: 5 }));
    assert.deepEqual([late.code, late.status, late.maybeDone], ["TIMEOUT", 202, false]);
    const { job_id: id } = late.body as { job_id: string };
    assert.ok(node.kept.has(id));
  });
});

describe("the client", () => {
  it("can do all that the table offers", async () => {
    const { job_id } = await client.submit({ task: "hello", payload: { n: 1 } });
    const many = await client.submitMany([{ task: "a" }, { task: "b" }]);
    assert.equal(many.length, 2);
    assert.equal((await client.job(job_id)).task, "hello");
    node.log(job_id as JobId, "line");
    assert.equal((await client.logs(job_id, { after: 0, limit: 10 })).logs[0]!.message, "line");
    assert.equal((await client.cancel(many[0]!.job_id, "no need")).status, "cancelled");
    assert.equal((await client.retry(many[0]!.job_id)).status, "queued");
    assert.equal((await client.remove(many[1]!.job_id)).status, "ok");
    assert.equal((await client.jobs({ status: "queued", limit: 1 })).jobs.length, 1);
    assert.equal((await client.jobs({ since: "2025-12-31T23:00:00+00:00" })).jobs.length, 2);
    assert.equal((await client.pauseQueue("mail/eu", { allowUnknown: true })).paused, true);
    assert.equal((await client.queues()).queues.length, 2);
    assert.equal((await client.resumeQueue("mail/eu", { allowUnknown: true })).paused, false);
    assert.equal((await client.putSchedule({ name: "s/1", task: "a", every_ms: 60_000 })).outcome, "created");
    assert.equal((await client.schedule("s/1")).name, "s/1");
    assert.equal((await client.schedules()).schedules.length, 1);
    assert.equal((await client.pauseSchedule("s/1")).paused, true);
    assert.equal((await client.resumeSchedule("s/1")).paused, false);
    assert.ok((await client.triggerSchedule("s/1")).job_id);
    assert.equal((await client.previewSchedule({ cron: "* * * * *", count: 3 })).fires.length, 3);
    assert.equal((await client.previewStored("s/1", 4)).fires.length, 4);
    assert.deepEqual((await client.scheduleHistory("s/1", 1)).occurrences, []);
    assert.equal((await client.removeSchedule("s/1")).status, "ok");
    assert.equal((await client.health()).node, "node-a");
    assert.equal((await client.role()).role, "LEADER");
    assert.equal((await client.status()).version, "0.0.0-test");
    assert.equal((await client.tasks()).tasks.length, 1);
  });

  it("tells a refusal with its code, status and body", async () => {
    const error = await refusal(client.result(node.add()));
    assert.deepEqual([error.code, error.status], ["NOT_FINISHED", 409]);
    assert.equal((error.body as { status: string }).status, "queued");
    assert.equal(error.maybeDone, false);
    assert.equal((await refusal(client.job("nonsense"))).code, "BAD_ID");
    assert.equal((await refusal(client.submit({ task: "" }))).code, "BAD_REQUEST");
  });

  it("tells a node that is not there from one that does not answer", async () => {
    const gone = serverOf(node);
    await gone.start();
    const { url } = gone;
    await gone.stop();
    await using lost = new BatonClient({ url });
    const unreachable = await refusal(lost.health());
    assert.deepEqual([unreachable.code, unreachable.maybeDone], ["UNREACHABLE", false]);
    node.hold = new Promise(() => {});
    await using hasty = new BatonClient({ url: server.url, timeoutMs: 50 });
    const late = await refusal(hasty.submit({ task: "a" }));
    assert.deepEqual([late.code, late.maybeDone], ["TIMEOUT", true]);
    await hasty.close();
  });

  it("does not take another server for a node", async () => {
    const other: Server = createServer((_, response) => response.writeHead(502).end("<html>")).listen(0);
    try {
      const port = (other.address() as AddressInfo).port;
      await using stranger = new BatonClient({ url: `http://127.0.0.1:${port}` });
      const error = await refusal(stranger.health());
      assert.deepEqual([error.code, error.status], ["BAD_REPLY", 502]);
    } finally {
      other.close();
    }
  });

  it("refuses an address that is none", () => {
    for (const url of ["", "localhost", "ftp://x", "localhost:4000"]) {
      assert.throws(() => new BatonClient({ url }), { code: "BAD_URL" }, url);
    }
  });
});

describe("waiting for a job", () => {
  it("ends with the job and its result", async () => {
    const id = node.add("processing");
    const waiting = client.wait(id, { timeoutMs: 30_000 });
    await until(() => node.followers(id) === 1);
    node.finish(id, "completed", { n: 2 });
    const { job, result } = await waiting;
    assert.deepEqual([job.status, result], ["completed", { n: 2 }]);
  });

  it("ends with a failed job too", async () => {
    const id = node.add();
    node.finish(id, "failed");
    const { job, result } = await client.wait(id);
    assert.deepEqual([job.error!.message, result], ["it broke", null]);
  });

  it("gives up after its time, and at once when it is told to", async () => {
    const id = node.add("processing");
    assert.equal((await refusal(client.wait(id, { timeoutMs: 20 }))).code, "TIMEOUT");
    const stop = new AbortController();
    const waiting = client.wait(id, { signal: stop.signal });
    await until(() => node.followers(id) === 1);
    stop.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    await until(() => node.followers(id) === 0);
  });

  it("is refused for a job that is not there", async () => {
    assert.equal((await refusal(client.wait(node.id()))).code, "NOT_FOUND");
  });
});

describe("following a job", () => {
  async function collect(events: AsyncIterable<FollowEvent>, into: string[]): Promise<string[]> {
    for await (const event of events) {
      if (event.event === "log") into.push(`log ${event.line.seq} ${event.line.message}`);
      else if (event.event === "progress") into.push(`progress ${event.progress} ${event.message}`);
      else into.push(`end ${event.status}`);
    }
    return into;
  }

  it("gives what was, what comes, and the end", async () => {
    const id = node.add("processing");
    node.log(id, "before");
    const seen: string[] = [];
    const following = collect(client.followLogs(id), seen);
    await until(() => seen.length === 1);
    node.progress(id, 0.5, "half");
    await until(() => seen.length === 2);
    node.log(id, "later");
    node.log(id, "line\nbreak \u2028 ü");
    node.finish(id, "completed");
    assert.deepEqual(await following, [
      "log 1 before",
      "progress 0.5 half",
      "log 2 later",
      "log 3 line\nbreak \u2028 ü",
      "end completed",
    ]);
  });

  it("gives thousands of lines without losing one", async () => {
    const id = node.add();
    for (let n = 1; n <= 5_000; n++) node.log(id, `line ${n}`);
    node.finish(id, "completed");
    const seen = await collect(client.followLogs(id), []);
    assert.equal(seen.length, 5_001);
    assert.equal(seen[4_999], "log 5000 line 5000");
  });

  it("ends silently when it is told to, and the node forgets the reader", async () => {
    const id = node.add("processing");
    const stop = new AbortController();
    const following = collect(client.followLogs(id, { signal: stop.signal }), []);
    await until(() => node.followers(id) === 1);
    stop.abort();
    assert.deepEqual(await following, []);
    await until(() => node.followers(id) === 0);
  });

  it("ends when the job is deleted", async () => {
    const id = node.add();
    const following = collect(client.followLogs(id), []);
    await until(() => node.followers(id) === 1);
    await client.remove(id);
    assert.deepEqual(await following, ["end deleted"]);
  });
});

describe("the event stream on the wire", () => {
  async function open(id: JobId, headers = "", url = server.url) {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    let text = "";
    socket.on("data", (chunk) => (text += String(chunk)));
    socket.on("error", () => {});
    socket.write(
      `GET /jobs/${id}/logs HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n${headers}\r\n`,
    );
    return { socket, text: () => text };
  }

  it("has ids to resume behind, and the server closes after the end", async () => {
    const id = node.add();
    node.log(id, "one");
    node.log(id, "two");
    node.finish(id, "completed");
    const { socket, text } = await open(id, "last-event-id: 1\r\n");
    await until(() => socket.closed);
    assert.match(text(), /^HTTP\/1\.1 200 /);
    assert.match(text(), /content-type: text\/event-stream/i);
    assert.match(text(), /x-baton-node: node-a/i);
    assert.match(text(), /id: 2\nevent: log\ndata: \{"seq":2,/);
    assert.doesNotMatch(text(), /id: 1\n/);
    assert.match(text(), /event: end\ndata: \{"job_id":"[^"]+","status":"completed","error":null\}\n\n/);
  });

  it("beats every 15 seconds, so that nobody takes silence for death", async (t) => {
    const { node, server } = await opened(t);
    const id = node.add("processing");
    const { socket, text } = await open(id, "", server.url);
    try {
      await until(() => node.followers(id) === 1 && node.clock.waiting === 1);
      for (const beats of [1, 2]) {
        await node.clock.advance(HEARTBEAT_MS);
        await until(() => text().split("\n:\n\n").length === beats + 1);
      }
    } finally {
      socket.destroy();
    }
    await until(() => node.followers(id) === 0 && node.clock.waiting === 0);
  });

  it("is ended at once when the server stops", async (t) => {
    const { node, server } = await opened(t);
    const id = node.add("processing");
    const { socket, text } = await open(id, "", server.url);
    await until(() => node.followers(id) === 1);
    await server.stop();
    await until(() => socket.closed);
    assert.doesNotMatch(text(), /event: end/);
    assert.equal(node.followers(id), 0);
  });

  it("drops a reader that takes nothing", async () => {
    const id = node.add("processing");
    const { socket } = await open(id);
    socket.pause();
    try {
      await until(() => node.followers(id) === 1);
      for (let n = 0; n < 40; n++) node.log(id, "x".repeat(1_000_000));
      await node.clock.advance(HEARTBEAT_MS);
      await until(() => node.followers(id) === 0);
    } finally {
      socket.destroy();
    }
  });
});
