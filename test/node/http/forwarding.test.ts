import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { before, beforeEach, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { jobId } from "../../../src/core/ids.ts";
import type { JobId, NodeName } from "../../../src/core/ids.ts";
import { atEnd, type Scope, suiteScope } from "../../support/node-cleanup.ts";
import { MemoryTracer } from "../../support/memory-tracer.ts";
import { peerApps } from "../../support/peer-apps.ts";
import type { PeerApp, PeerAppsOptions } from "../../support/peer-apps.ts";
import type { PeerHandler } from "../../../src/transport/transport.ts";
import { MeshNode } from "../../support/mesh-world.ts";
import { column } from "../../support/columns.ts";

const UUID = "0198c0de-0000-7000-8000-000000000000";

async function ask(at: PeerApp, path: string, init: RequestInit = {}) {
  const answer = await fetch(`${at.url}${path}`, init);
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text || "null") };
}

function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
}

async function two(t: Scope, options: Partial<PeerAppsOptions> = {}) {
  const cluster = await peerApps({ names: ["node-a", "node-b"], ...options });
  atEnd(t, () => cluster[Symbol.asyncDispose]());
  return { cluster, a: cluster.nodes[0]!, b: cluster.nodes[1]! };
}

/** For those that leave both nodes as they are. */
let pair: Awaited<ReturnType<typeof two>>;
const suite = suiteScope();
before(async () => void (pair = await two(suite)));
beforeEach(() => {
  for (const { node, sent } of [pair.a, pair.b]) {
    node.reset();
    sent.length = 0;
  }
});

/** A member that answers as it likes. */
async function member(t: Scope, name: string, handler: PeerHandler): Promise<MeshNode> {
  const node = await MeshNode.start(name, handler);
  atEnd(t, () => node.kill());
  return node;
}

/** Something that listens where no node should call. */
async function stranger(t: Scope) {
  let connections = 0;
  const server = createServer((_request, response) => response.end("{}"));
  server.on("connection", () => connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(t, async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, connections: () => connections };
}

describe("a request about a job of another node", () => {
  it("is answered through any node as by its owner", async () => {
    const { a, b } = pair;
    const id = b.node.add();
    const direct = await ask(b, `/jobs/${id}`);
    const passed = await ask(a, `/jobs/${id}`);
    assert.equal(passed.status, 200);
    assert.equal(passed.text, direct.text);
    assert.equal(passed.headers.get("content-type"), direct.headers.get("content-type"));
    assert.equal(passed.headers.get("x-baton-node"), "node-b", "who answers");
    assert.equal(passed.headers.get("x-baton-via"), "node-a", "who passed it on");
    assert.equal(a.sent.length, 1);
    const { path, method } = a.sent[0]!.request;
    assert.equal(method, "GET");
    assert.match(path, new RegExp(`^/jobs/${id}\\?internal=1&`));
    const own = a.node.add();
    assert.equal((await ask(a, `/jobs/${own}`)).status, 200);
    assert.equal(a.sent.length, 1, "what is its own is answered here");
  });

  it("reaches it with method, query and body, and so do cancel, retry, delete, result and logs", async () => {
    const { a, b } = pair;
    const id = b.node.add();
    b.node.log(id, "one");
    b.node.log(id, "two");
    const logs = await ask(a, `/jobs/${id}/logs?after=1&limit=5`);
    assert.deepEqual(column(logs.body.logs as any[], "message"), ["two"]);
    assert.equal((await ask(a, `/jobs/${id}/result`)).status, 409);
    assert.equal((await ask(a, `/jobs/${id}/cancel`, post({ reason: "no more" }))).status, 200);
    assert.equal(b.node.kept.get(id)!.job.error!.message, "no more");
    assert.equal((await ask(a, `/jobs/${id}/retry`, { method: "POST" })).status, 200);
    b.node.finish(id, "completed", { words: ["é", "😀"] });
    assert.deepEqual((await ask(a, `/jobs/${id}/result`)).body.result, { words: ["é", "😀"] });
    assert.equal((await fetch(`${a.url}/jobs/${id}`, { method: "HEAD" })).status, 200);
    assert.equal((await fetch(`${a.url}/jobs/${id}/result`, { method: "HEAD" })).status, 200);
    assert.deepEqual((await ask(a, `/jobs/${id}`, { method: "DELETE" })).body, { status: "ok", job_id: id });
    assert.equal((await ask(a, `/jobs/${id}`)).status, 404);
    assert.equal((await ask(b, `/jobs/${id}`)).status, 404);
  });

  it("takes along the headers that matter, and none that only this node should see", async () => {
    const { a, b } = pair;
    const id = b.node.add();
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const answer = await ask(a, `/jobs/${id}`, {
      headers: {
        "x-request-id": "mine-1",
        traceparent,
        authorization: "Bearer caller",
        cookie: "secret=1",
        "x-forwarded-host": "elsewhere.example",
        "x-http-method-override": "DELETE",
        "x-baton-config": "forged",
      },
    });
    assert.equal(answer.headers.get("x-request-id"), "mine-1");
    const { headers } = a.sent[0]!.request;
    assert.deepEqual(
      [
        headers!["x-request-id"],
        headers!["traceparent"],
        headers!["x-baton-config"],
        headers!["x-baton-principal"],
      ],
      ["mine-1", traceparent, "same", "admin loopback loopback"],
    );
    for (const name of ["authorization", "cookie", "x-forwarded-host", "x-http-method-override", "host"]) {
      assert.equal(headers![name], undefined, name);
    }
  });

  it("is a span of the caller's trace here, and the parent of what the owner does", async () => {
    const tracer = new MemoryTracer().register();
    try {
      const { a, b } = pair;
      const [traceId, caller] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
      const headers = { traceparent: `00-${traceId}-${caller}-01`, tracestate: "vendor=value" };
      await ask(a, `/jobs/${b.node.add()}`, { headers });
      const [hop, ...others] = tracer.named("baton.proxy");
      assert.deepEqual([hop!.kind, hop!.traceId, hop!.parentSpanId, others], ["client", traceId, caller, []]);
      assert.equal(hop!.attributes["baton.target"], "node-b");
      assert.equal(hop!.attributes["http.route"], "/jobs/{id}");
      const { headers: passed } = a.sent[0]!.request;
      assert.equal(passed!["traceparent"], `00-${traceId}-${hop!.spanId}-01`);
      assert.equal(passed!["tracestate"], "vendor=value");
    } finally {
      tracer.unregister();
    }
  });

  it("has its log streamed live, and the stream ends when the reader leaves", async () => {
    const { a, b } = pair;
    const id = b.node.add("processing");
    b.node.log(id, "before");
    const left = new AbortController();
    const answer = await fetch(`${a.url}/jobs/${id}/logs`, {
      headers: { accept: "text/event-stream" },
      signal: left.signal,
    });
    assert.match(answer.headers.get("content-type")!, /^text\/event-stream/);
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    const until = async (word: string): Promise<string> => {
      let text = "";
      while (!text.includes(word)) {
        const { value, done } = await reader.read();
        assert.ok(!done, `the stream ended before "${word}"`);
        text += value;
      }
      return text;
    };
    await until("before");
    b.node.log(id, "meanwhile");
    assert.match(await until("meanwhile"), /^id: 2\nevent: log\n/);
    assert.equal(b.node.followers(id), 1);
    left.abort();
    await reader.read().catch(() => {});
    while (b.node.followers(id) > 0) await new Promise((turn) => setImmediate(turn));
  });

  it("has its log resumed behind the last event, and ended with the job", async () => {
    const { a, b } = pair;
    const id = b.node.add("processing");
    for (const line of ["one", "two", "three"]) b.node.log(id, line);
    b.node.finish(id, "completed");
    const headers = { accept: "text/event-stream", "last-event-id": "2" };
    const text = await (await fetch(`${a.url}/jobs/${id}/logs`, { headers })).text();
    assert.match(text, /^id: 3\nevent: log\n/);
    assert.match(text, /event: end\n/);
  });
});

describe("an owner that does not answer", () => {
  it("is named in a 503 when it is down", async (t) => {
    const { a, b } = await two(t);
    const id = b.node.add();
    await b.kill();
    for (const path of [`/jobs/${id}`, `/jobs/${id}/result`]) {
      const { status, body, headers } = await ask(a, path);
      assert.deepEqual([status, body.error, body.owner], [503, "owner_node_unreachable", "node-b"], path);
      assert.equal(headers.get("retry-after"), "1");
    }
  });

  it("is not even called when it is known to be dead, or has no address", async (t) => {
    const { cluster, a, b } = await two(t, { others: [{ name: "node-c", url: null }] });
    const id = b.node.add();
    cluster.see("node-b", { status: "dead", alive: false });
    for (const job of [id, jobId("node-c" as NodeName, UUID)]) {
      const { status, body } = await ask(a, `/jobs/${job}`);
      assert.deepEqual([status, body.error], [503, "owner_node_unreachable"]);
    }
    assert.equal(a.sent.length, 0);
  });

  it("S88: is too slow for a caller's own deadline, which travels along", async (t) => {
    const slow = await member(t, "node-z", () => new Promise(() => {}));
    const { a } = await two(t, { others: [{ name: "node-z", url: slow.url }] });
    const path = `/jobs/${jobId("node-z" as NodeName, UUID)}`;
    const { status, body } = await ask(a, path, { headers: { "x-baton-deadline-ms": "150" } });
    assert.deepEqual([status, body.error, body.owner], [504, "DEADLINE", "node-z"]);
    const told = Number(a.sent[0]!.request.headers!["x-baton-deadline-ms"]);
    assert.ok(told > 0 && told <= 150, String(told));
    const cancel = await ask(a, `${path}/cancel`, {
      method: "POST",
      headers: { "x-baton-deadline-ms": "50" },
    });
    assert.deepEqual([cancel.status, cancel.body.outcome], [504, "unknown"], "it may have been carried out");
    await ask(a, path, { headers: { "x-baton-deadline-ms": "999999999" } });
    assert.ok(
      Number(a.sent[2]!.request.headers!["x-baton-deadline-ms"]) <= 2_000,
      "the node's own limit holds",
    );
  });

  it("S89: does not make a short answer look whole", async (t) => {
    const broken = await member(t, "node-z", async () => ({
      status: 200,
      headers: { "content-type": "application/json" },
      stream: (async function* () {
        yield Buffer.from('{"job_id":"x","result":[1,2,');
        throw new Error("broken off");
      })(),
    }));
    const { a } = await two(t, { others: [{ name: "node-z", url: broken.url }] });
    const id = jobId("node-z" as NodeName, UUID);
    const whole = await ask(a, `/jobs/${id}`);
    assert.deepEqual([whole.status, whole.body.error], [503, "owner_node_unreachable"]);
    await assert.rejects(fetch(`${a.url}/jobs/${id}/result`).then((answer) => answer.text()));
    await assert.rejects(fetch(`${a.url}/jobs/${id}/logs`).then((answer) => answer.text()));
  });

  it("X11: is not followed elsewhere when it redirects", async (t) => {
    const other = await stranger(t);
    const wrong = await member(t, "node-z", async () => ({
      status: 302,
      headers: { location: other.url },
    }));
    const { a } = await two(t, { others: [{ name: "node-z", url: wrong.url }] });
    for (const rest of ["", "/result"]) {
      const { status, body } = await ask(a, `/jobs/${jobId("node-z" as NodeName, UUID)}${rest}`);
      assert.deepEqual([status, body.error], [502, "BAD_PEER_REPLY"]);
    }
    assert.equal(other.connections(), 0);
  });

  it("does not pass on, as if it were one of the caller, its refusal of a node with another secret", async (t) => {
    const { a, b } = await two(t, {
      secretOf: (name) => `the secret of ${name}, long enough for this`,
    });
    const { status, body } = await ask(a, `/jobs/${b.node.add()}`);
    assert.deepEqual([status, body.error, body.owner], [503, "owner_node_unreachable", "node-b"]);
    assert.match(body.message, /cluster\.secret differs/);
    assert.equal((await ask(a, "/queues")).body.partial, true);
    for (let n = 0; n < 2; n++) {
      const placed = await ask(a, "/jobs", post({ task: "hello" }));
      assert.match(placed.body.job_id, /^node-a-/, "new jobs stay here");
    }
  });

  it("holds a large result back while its reader is slow, without keeping it in memory", async (t) => {
    const chunk = Buffer.alloc(64 * 1_024, "x");
    let written = 0;
    const total = 64 * 1_024 * 1_024;
    const large = await member(t, "node-z", async () => ({
      status: 200,
      headers: { "content-type": "application/json" },
      stream: (async function* () {
        for (; written < total; written += chunk.length) yield chunk;
      })(),
    }));
    const { a } = await two(t, { others: [{ name: "node-z", url: large.url }] });
    const { hostname, port } = new URL(a.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET /jobs/${jobId("node-z" as NodeName, UUID)}/result HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n\r\n`,
    );
    await once(socket, "readable");
    for (let [before, quiet] = [0, 0]; quiet < 5; before = written) {
      await systemClock.sleep(100);
      quiet = written > before || written === 0 ? 0 : quiet + 1;
    }
    assert.ok(written < 32 * 1_024 * 1_024, `${written} bytes were taken for a reader that takes none`);
    socket.destroy();
  });
});

describe("a name that is no node", () => {
  it("S87: is looked up nowhere: 400 or 404, and no connection", async (t) => {
    const evil = await stranger(t);
    const { a } = pair;
    const { host } = new URL(evil.url);
    const ids = [
      `evil.com-${UUID}`,
      `${host.split(":")[0]}-${UUID}`,
      `node-c-${UUID}`,
      `..%2f..%2fadmin-${UUID}`,
      encodeURIComponent(`http://${host}/-${UUID}`),
      encodeURIComponent(`${host}@node-b-${UUID}`),
      `${"n".repeat(10_000)}-${UUID}`,
      "nodash",
      UUID,
      "%00",
    ];
    for (const id of ids) {
      for (const rest of ["", "/result", "/logs"]) {
        const { status } = await ask(a, `/jobs/${id}${rest}`);
        assert.ok(status === 400 || status === 404, `${id.slice(0, 50)}${rest}: ${status}`);
      }
      const { status } = await ask(a, `/jobs/${id}`, { method: "DELETE" });
      assert.ok(status === 400 || status === 404, `${id.slice(0, 50)}: ${status}`);
    }
    assert.deepEqual(a.sent, []);
    assert.equal(evil.connections(), 0);
  });

  it("is told as such while the cluster may not know all its nodes", async (t) => {
    const { cluster, a } = await two(t);
    cluster.lead(null);
    const { status, body } = await ask(a, `/jobs/node-c-${UUID}`);
    assert.deepEqual(
      [status, body.error, body.owner, body.detail],
      [503, "owner_node_unreachable", "node-c", "unknown_node"],
    );
  });

  it("S93: is not mistaken for another one of which it is a part", async () => {
    await using cluster = await peerApps({ names: ["node", "node-a", "node-a-1"] });
    const [first] = cluster.nodes;
    for (const each of cluster.nodes) {
      const { status, headers } = await ask(first!, `/jobs/${each.node.add()}`);
      assert.deepEqual([status, headers.get("x-baton-node")], [200, each.name]);
    }
  });
});

describe("being internal", () => {
  it("X1: is nothing that a caller can say", async (t) => {
    const { cluster, a, b } = await two(t);
    const id = b.node.add();
    for (const query of [
      "internal=1",
      "internal=1&internal=1",
      "%69nternal=1",
      "internal_first=x&internal=1",
    ]) {
      const { status, headers } = await ask(a, `/jobs/${id}?${query}`, {
        headers: { "x-baton-from": "node-b" },
      });
      assert.deepEqual([status, headers.get("x-baton-node")], [200, "node-b"], query);
    }
    for (const { request } of a.sent) {
      assert.equal(request.path.match(/internal=/g)!.length, 1, request.path);
      assert.equal(request.path.includes("internal_first"), false, request.path);
    }
    assert.equal((await ask(a, "/admin/jobs?internal=1&limit=3")).status, 200, "it is dropped, not refused");
    assert.equal((await ask(a, `/cluster/jobs?internal_first=${UUID}&internal=1`)).status, 200);
    const forged = `/jobs?internal=1&internal_first=${UUID}`;
    cluster.see("node-b", { status: "draining" });
    const { body } = await ask(a, forged, post({ task: "hello" }));
    assert.notEqual(body.job_id, `node-a-${UUID}`, "a caller does not choose ids");
  });

  it("is not possible over HTTP: what nodes ask of each other is not there", async () => {
    const { a } = pair;
    for (const path of ["/peer/queues", "/peer/", "/peer/nothing/here", "/peer/heartbeat", "/peer/mesh"]) {
      for (const init of [{}, post({})]) {
        const answer = await ask(a, path, init);
        assert.deepEqual([answer.status, answer.body.error], [404, "NOT_FOUND"], path);
      }
    }
  });

  it("S86: ends a request that two nodes would send to each other, with both views", async (t) => {
    // Each thinks that the other one is called node-z.
    const { a, b } = await two(t, {
      way: "memory",
      configHash: (name) => `hash-of-${name}`,
      view: (name, nodes) =>
        nodes.map((each) => (each.name === name ? each : { ...each, name: "node-z" as NodeName })),
    });
    for (const rest of ["", "/result"]) {
      const answer = await a.app.inject(`/jobs/node-z-${UUID}${rest}`);
      const body = answer.json();
      assert.deepEqual(
        [answer.statusCode, body.error, body.sender_config, body.node_config],
        [508, "LOOP", "hash-of-node-a", "hash-of-node-b"],
      );
    }
    assert.equal(b.sent.length, 0);
  });
});

describe("what only the leader does", () => {
  const plan = { task: "hello", every_ms: 60_000 };

  it("is passed on to it by the others", async () => {
    const { a, b } = pair;
    const put = { ...post(plan), method: "PUT" };
    const { status, headers } = await ask(b, "/schedules/tick", put);
    assert.deepEqual([status, headers.get("x-baton-node")], [201, "node-a"]);
    assert.ok(await a.node.schedules.get("tick"));
    assert.equal(await b.node.schedules.get("tick"), null);
  });

  it("is refused with the leader's name and address to whoever wants no forwarding", async () => {
    const { a, b } = pair;
    const put = { ...post(plan, { "x-baton-no-forward": "1" }), method: "PUT" };
    const { status, body } = await ask(b, "/schedules/tick", put);
    assert.deepEqual(
      [status, body.error, body.leader_id, body.leader_url, body.node_id],
      [409, "NOT_LEADER", "node-a", a.url, "node-b"],
    );
    assert.equal(b.sent.length, 0);
  });

  it("is done by nobody while nobody leads, or the leader is gone", async (t) => {
    const { cluster, a, b } = await two(t);
    const put = { ...post(plan), method: "PUT" };
    cluster.lead(null);
    assert.equal((await ask(b, "/schedules/tick", put)).body.error, "NOT_LEADER");
    cluster.lead("node-a");
    await a.kill();
    const { status, body } = await ask(b, "/schedules/tick", put);
    assert.deepEqual([status, body.error, body.leader_id], [503, "NO_LEADER", "node-a"]);
  });
});

describe("a function", () => {
  it("runs here where it can, and elsewhere where it cannot", async (t) => {
    const { cluster, a, b } = await two(t);
    a.node.ending = b.node.ending = { status: "completed", result: "done" };
    const here = await ask(a, "/functions/hello", post({}));
    assert.deepEqual([here.status, here.body.result, a.sent.length], [200, "done", 0]);
    cluster.see("node-a", { capabilities: [] });
    const there = await ask(a, "/functions/hello?timeout_ms=1000", post({}));
    assert.deepEqual([there.status, there.headers.get("x-baton-node")], [200, "node-b"]);
    assert.ok((there.body.job_id as JobId).startsWith("node-b-"));
  });
});

describe("a node that drains", () => {
  it("still passes on what belongs to others, and is waited for", async (t) => {
    const { cluster, a, b } = await two(t);
    const id = b.node.add();
    a.node.health.draining = true;
    a.inFlight.close();
    assert.equal((await ask(a, `/jobs/${id}/cancel`, { method: "POST" })).status, 200);
    const { status, body } = await ask(a, "/jobs", post({ task: "hello" }));
    assert.equal(status, 200);
    assert.ok(body.job_id.startsWith("node-b-"));
    cluster.see("node-b", { status: "draining" });
    const refused = await ask(a, "/jobs", post({ task: "hello" }));
    assert.deepEqual([refused.status, refused.body.error], [503, "DRAINING"]);
  });

  it("still cancels its own jobs, which nobody else can, whoever is asked", async (t) => {
    const { a, b } = await two(t);
    a.node.health.draining = true;
    a.inFlight.close();
    for (const through of [a, b]) {
      const id = a.node.add();
      assert.equal((await ask(through, `/jobs/${id}/cancel`, { method: "POST" })).status, 200);
    }
  });
});
