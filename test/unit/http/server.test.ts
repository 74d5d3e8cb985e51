import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, it } from "node:test";
import { Agent, request } from "undici";
import type { HttpServer } from "../../../src/http/http-server.ts";
import { hasCode } from "../../../src/core/errors.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { FakeNode, keptLog, serverOf } from "./fake-node.ts";

let node: FakeNode;
let server: HttpServer;
let agent: Agent;
let sockets: Socket[];

beforeEach(async () => {
  node = new FakeNode();
  agent = new Agent();
  sockets = [];
  server = serverOf(node, {}, { clock: systemClock });
  await server.start();
});
afterEach(async () => {
  await agent.destroy();
  for (const socket of sockets) socket.destroy();
  await server.stop();
});

async function call(
  method: "GET" | "POST",
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) {
  const answer = await request(server.url + path, {
    method,
    dispatcher: agent,
    headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: (await answer.body.json()) as Record<string, unknown>,
  };
}

async function dial(): Promise<Socket> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Sends bytes as they are and gives all that comes until the other side closes. */
async function raw(text: string): Promise<string> {
  const socket = await dial();
  socket.write(text);
  let answer = "";
  for await (const chunk of socket) answer += String(chunk);
  return answer;
}

describe("every answer", () => {
  it("says who gave it, in which role and under which epoch", async () => {
    const { headers } = await call("GET", "/health");
    assert.equal(headers["x-baton-node"], "node-a");
    assert.equal(headers["x-baton-role"], "LEADER");
    assert.equal(headers["x-baton-epoch"], "7");
    assert.match(String(headers["x-request-id"]), /^inc-1234-/);
    const lost = await call("GET", "/nowhere");
    assert.equal(lost.headers["x-baton-node"], "node-a");
  });

  it("carries the caller's request id if it is sane, and a new one each time if not", async () => {
    assert.equal(
      (await call("GET", "/health", undefined, { "x-request-id": "abc-1" })).headers["x-request-id"],
      "abc-1",
    );
    const odd = { "x-request-id": "a b<script>" };
    const first = (await call("GET", "/health", undefined, odd)).headers["x-request-id"];
    const second = (await call("GET", "/health", undefined, odd)).headers["x-request-id"];
    assert.match(String(first), /^inc-1234-/);
    assert.notEqual(first, second);
  });
});

describe("a web page", () => {
  it("under a name that was pointed at this machine is refused", async () => {
    for (const host of [
      "evil.example",
      "evil.example:80",
      "127.0.0.1.evil.example",
      "localhost.evil.example:1",
    ]) {
      const { status, body } = await call("GET", "/admin/jobs", undefined, { host });
      assert.deepEqual([status, body["error"], body["field"]], [403, "FORBIDDEN", "host"], host);
    }
  });

  it("is served under the names of loopback and of the node", async () => {
    for (const host of ["localhost", "LOCALHOST:4000", "127.0.0.1:9", "[::1]:4000", "node-a"]) {
      assert.equal((await call("GET", "/health", undefined, { host })).status, 200, host);
    }
  });

  it("of another origin may read nothing into being", async () => {
    for (const origin of ["https://evil.example", "null", "http://localhost:1"]) {
      const { status, body } = await call("POST", "/jobs", { task: "a" }, { origin });
      assert.deepEqual([status, body["error"], body["field"]], [403, "FORBIDDEN", "origin"], origin);
    }
    assert.equal(node.kept.size, 0);
    assert.equal((await call("POST", "/jobs", { task: "a" }, { origin: server.url })).status, 200);
  });
});

describe("what is not HTTP", () => {
  it("is refused on the socket, flat", async () => {
    const answer = await raw("NONSENSE\r\n\r\n");
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.equal(JSON.parse(answer.split("\r\n\r\n")[1]!).error, "BAD_REQUEST");
  });

  it("or has too large headers is refused with 431", async () => {
    const answer = await raw(`GET /health HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(17_000)}\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 431 /);
    assert.equal(JSON.parse(answer.split("\r\n\r\n")[1]!).error, "HEADERS_TOO_LARGE");
  });

  it("does not keep a body that grows without end", async () => {
    const socket = await dial();
    socket.write(
      "POST /jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    const chunk = `10000\r\n${" ".repeat(0x10000)}\r\n`;
    const answers: string[] = [];
    socket.on("data", (data) => answers.push(String(data)));
    for (let n = 0; n < 40 && !socket.closed && answers.length === 0; n++) {
      socket.write(chunk);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (!socket.closed) await once(socket, "close");
    assert.match(answers.join(""), /413/);
    assert.match(answers.join(""), /BODY_TOO_LARGE/);
  });
});

describe("draining", () => {
  it("refuses new work, still answers questions, and lets connections go", async () => {
    const id = node.add();
    node.health.draining = true;
    const refused = await call("POST", "/jobs", { task: "a" });
    assert.deepEqual([refused.status, refused.body["error"]], [503, "DRAINING"]);
    assert.equal(refused.headers["retry-after"], "1");
    assert.equal(refused.headers["connection"], "close");
    const asked = await call("GET", `/jobs/${id}`);
    assert.equal(asked.status, 200);
    assert.equal(asked.headers["x-baton-role"], "DRAINING");
    assert.equal((await call("POST", `/jobs/${id}/cancel`)).status, 200);
  });
});

describe("starting and stopping", () => {
  it("names a port that is in use, and starts elsewhere later", async () => {
    const port = Number(new URL(server.url).port);
    const second = serverOf(node, { port }, { clock: systemClock });
    await assert.rejects(second.start(), (error) => {
      assert.ok(hasCode(error, "BAD_CONFIG"));
      assert.match(error.message, new RegExp(`port ${port} .*in use.*another port`));
      assert.equal(error.details.field, "port");
      return true;
    });
    await server.stop();
    await second.start();
    await second.stop();
  });

  it("names a host that is none of ours", async () => {
    const lost = serverOf(node, { host: "192.0.2.1" }, { clock: systemClock });
    await assert.rejects(
      lost.start(),
      (error) => hasCode(error, "BAD_CONFIG") && error.details.field === "host",
    );
  });

  it("has no address before it starts, may stop before that, twice, and start again", async () => {
    const another = serverOf(node, {}, { clock: systemClock });
    assert.throws(() => another.url, /not been started/);
    await another.stop();
    await another.start();
    await another.stop();
    await another.stop();
    await another.start();
    assert.equal((await request(`${another.url}/health`, { dispatcher: agent })).statusCode, 200);
    await agent.destroy();
    await another.stop();
  });

  it("counts the connections that are open", async () => {
    const before = server.connections;
    const socket = await dial();
    await call("GET", "/health");
    assert.ok(server.connections > before);
    const open = server.connections;
    socket.destroy();
    while (server.connections === open) await new Promise((turn) => setImmediate(turn));
    assert.equal(server.connections, open - 1);
  });

  it("closes idle sockets at once: those that were used and those that never were", async () => {
    const used = await dial();
    used.write("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(used, "data");
    const fresh = await dial();
    // The server has accepted both once a later connection was answered.
    await call("GET", "/health");
    const closed = Promise.all([once(used, "close"), once(fresh, "close")]);
    used.resume();
    fresh.resume();
    const startedAt = systemClock.monotonic();
    await server.stop();
    await closed;
    assert.ok(systemClock.monotonic() - startedAt < 5_000, "nothing waited for a time-out");
  });

  it("lets a request that is being served finish", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.hold = promise;
    const answer = call("POST", "/jobs", { task: "a" });
    while (node.submits === 0) await new Promise((turn) => setImmediate(turn));
    const startedAt = systemClock.monotonic();
    const stopped = server.stop();
    // Closing has begun when the port no longer answers.
    while (
      await dial().then(
        (socket) => !socket.destroy().closed,
        () => false,
      )
    );
    resolve();
    assert.equal((await answer).status, 200);
    assert.equal((await answer).headers["connection"], "close");
    await stopped;
    assert.ok(systemClock.monotonic() - startedAt < 5_000, "nothing waited for a keep-alive to run out");
  });

  it("cuts a request that hangs, after a while", async () => {
    const log = keptLog();
    const hanging = serverOf(node, {}, { log });
    await hanging.start();
    node.hold = new Promise(() => {});
    const answer = request(`${hanging.url}/jobs`, {
      method: "POST",
      dispatcher: agent,
      headers: { "content-type": "application/json" },
      body: '{"task":"a"}',
    });
    const cut = assert.rejects(answer);
    while (node.submits === 0) await new Promise((turn) => setImmediate(turn));
    const stopped = hanging.stop();
    while (node.clock.waiting === 0) await new Promise((turn) => setImmediate(turn));
    await node.clock.advance(5_000);
    await stopped;
    await cut;
    assert.match(log.lines[0]!.message, /cutting connections/);
  });
});
