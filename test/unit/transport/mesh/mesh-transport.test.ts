import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test, type TestContext } from "node:test";
import type { NodeName } from "../../../../src/core/ids.ts";
import { promisify } from "node:util";
import { systemClock } from "../../../../src/platform/clock.ts";
import { systemRandom } from "../../../../src/platform/random.ts";
import type { PeerHandler, PeerRequest } from "../../../../src/transport/transport.ts";
import { MeshNode, type MeshNodeOptions } from "../../../support/mesh-world.ts";
import { TcpProxy } from "../../../support/tcp-proxy.ts";
import { eventually } from "../../../support/wait.ts";

const PING: PeerRequest = { method: "POST", path: "/ping", body: "x" };
const echo: PeerHandler = async ({ from, body }) => ({ status: 200, body: `${from}:${body}` });
const QUICK: MeshNodeOptions = {
  limits: { pingMs: 50, silentMs: 300 },
  connectMs: 300,
};

async function node(
  t: TestContext,
  name: string,
  handler: PeerHandler = echo,
  options: MeshNodeOptions = {},
): Promise<MeshNode> {
  const started = await MeshNode.start(name, handler, options);
  t.after(() => started.kill());
  return started;
}

async function bodyOf(from: MeshNode, to: MeshNode, url = to.url, request = PING): Promise<string> {
  const outcome = await from.mesh.call(url, request, { deadlineMs: 5_000, to: to.name });
  return outcome.outcome === "reply" ? outcome.body : `${outcome.outcome}: ${outcome.reason}`;
}

describe("nodes of a mesh", () => {
  test("call each other over one connection, whoever dialled", async (t) => {
    const [a, b] = [await node(t, "a"), await node(t, "b")];
    assert.equal(await bodyOf(a, b), "a:x");
    assert.equal(await bodyOf(b, a), "b:x");
    assert.deepEqual([a.mesh.connections, b.mesh.connections], [1, 1]);
  });

  test("that dial each other in the same moment keep one connection, and lose no call", async (t) => {
    for (let round = 0; round < 10; round++) {
      const [a, b] = [await node(t, "a"), await node(t, "b")];
      const calls = Array.from({ length: 40 }, (_, n) => (n % 2 ? bodyOf(a, b) : bodyOf(b, a)));
      for (const [n, body] of (await Promise.all(calls)).entries()) assert.equal(body, n % 2 ? "a:x" : "b:x");
      await eventually("one connection", () => a.mesh.connections === 1 && b.mesh.connections === 1);
      assert.equal(await bodyOf(a, b), "a:x");
      assert.equal(await bodyOf(b, a), "b:x");
      assert.deepEqual([a.mesh.connections, b.mesh.connections], [1, 1]);
    }
  });

  test("leave a server that closes, and dial from then on", async (t) => {
    const [a, b] = [await node(t, "a"), await node(t, "b")];
    assert.equal(await bodyOf(b, a), "b:x");
    await a.detach();
    const closed = once(a.server, "close");
    a.server.close();
    await closed;
    assert.equal(await bodyOf(a, b), "a:x");
    assert.equal(await bodyOf(b, a), "b:x", "over the connection that a dialled");
  });

  test("are not called when another one is meant", async (t) => {
    const [a, b] = [await node(t, "a"), await node(t, "b")];
    const options = { deadlineMs: 2_000, to: "c" as NodeName };
    const outcome = await a.mesh.call(b.url, PING, options);
    assert.ok(outcome.outcome === "refused", JSON.stringify(outcome));
    assert.match(outcome.reason, /meant for c/);
  });

  test("are reached also while their name is not known yet", async (t) => {
    const [a, b] = [await node(t, "a"), await node(t, "b")];
    const outcome = await a.mesh.call(b.url, PING, { deadlineMs: 2_000 });
    assert.equal(outcome.outcome, "reply", JSON.stringify(outcome));
    assert.ok(a.mesh.isConnected(b.name));
  });

  test("refuse to be their own peer, under any address", async (t) => {
    const a = await node(t, "a");
    const outcome = await a.mesh.call(a.url, PING, { deadlineMs: 2_000 });
    assert.ok(outcome.outcome === "refused" && outcome.reason.includes("itself"), JSON.stringify(outcome));
  });

  test("learn the deadline of a call, and that nobody waits for it any more", async (t) => {
    const seen: { deadline?: string; signal?: AbortSignal } = {};
    const a = await node(t, "a");
    const b = await node(t, "b", ({ headers, signal }) => {
      Object.assign(seen, { deadline: headers["x-baton-deadline-ms"], signal });
      return new Promise(() => {});
    });
    const off = new AbortController();
    const call = a.mesh.call(b.url, PING, { deadlineMs: 5_000, to: b.name, signal: off.signal });
    await eventually("the request", () => seen.signal !== undefined);
    assert.ok(Number(seen.deadline) > 4_000 && Number(seen.deadline) <= 5_000, seen.deadline);
    assert.equal(seen.signal!.aborted, false);
    off.abort();
    assert.equal((await call).outcome, "unknown");
    await eventually("its abort", () => seen.signal!.aborted);
  });

  test("refuse calls beyond the limit, on both sides, and go on", async (t) => {
    const waiting: (() => void)[] = [];
    const slow: PeerHandler = () =>
      new Promise((resolve) => void waiting.push(() => resolve({ status: 200, body: "late" })));
    const a = await node(t, "a");
    const b = await node(t, "b", slow, { limits: { callsMax: 3 } });
    const calls = Array.from({ length: 5 }, () => bodyOf(a, b));
    await eventually("three requests", () => waiting.length === 3);
    const refusals = await Promise.all(calls.slice(3));
    for (const refusal of refusals) assert.match(refusal, /^refused: 3 calls/);
    for (const finish of waiting.splice(0)) finish();
    assert.deepEqual(await Promise.all(calls.slice(0, 3)), ["late", "late", "late"]);
    const again = bodyOf(a, b);
    await eventually("one request", () => waiting.length === 1);
    waiting[0]!();
    assert.equal(await again, "late");
  });

  test("refuse bodies that are too large, both ways", async (t) => {
    const limits = { bodyBytesMax: 300_000 };
    const a = await node(t, "a", echo, { limits });
    const b = await node(
      t,
      "b",
      async ({ path }) => ({ status: 200, body: path === "/big" ? "x".repeat(400_000) : "" }),
      {
        limits,
      },
    );
    const big = { ...PING, body: "x".repeat(400_000) };
    assert.match(await bodyOf(a, b, b.url, big), /^refused: the request is larger than 300000 bytes/);
    assert.match(
      await bodyOf(a, b, b.url, { ...PING, path: "/big" }),
      /^unknown: the reply is larger than 300000 bytes/,
    );
    assert.equal(await bodyOf(a, b), "");
  });

  test("do not let a slow stream or a large body hold up small calls", async (t) => {
    const big = "x".repeat(8_000_000);
    const endless = async function* (): AsyncGenerator<Buffer> {
      for (;;) yield Buffer.alloc(64 * 1024);
    };
    const a = await node(t, "a");
    const b = await node(t, "b", async ({ path, body }) => {
      if (path === "/endless") return { status: 200, stream: endless() };
      return { status: 200, body: path === "/big" ? big : body };
    });
    const stream = await a.mesh.stream(
      b.url,
      { method: "GET", path: "/endless" },
      { headMs: 2_000, to: b.name },
    );
    assert.ok(stream.outcome === "reply");
    const large = bodyOf(a, b, b.url, { ...PING, path: "/big", body: big });
    for (let n = 0; n < 20; n++) assert.equal(await bodyOf(a, b), "x");
    assert.equal((await large).length, big.length);
    for await (const chunk of stream.body) if (chunk.length > 0) break;
  });

  test("survive a handler that throws, and one whose reply cannot be sent", async (t) => {
    const a = await node(t, "a");
    const b = await node(t, "b", ({ path }) => {
      if (path === "/throws") throw new Error("at once");
      if (path === "/header") return Promise.resolve({ status: 200, headers: { a: "x\r\ny" } });
      return Promise.resolve({ status: 200, body: "fine" });
    });
    for (const path of ["/throws", "/header"])
      assert.match(await bodyOf(a, b, b.url, { ...PING, path }), /^unknown/);
    assert.match(await bodyOf(a, b, b.url, { ...PING, headers: { a: "x\ny" } }), /^refused/);
    assert.equal(await bodyOf(a, b), "fine");
    assert.deepEqual([a.mesh.connections, b.mesh.connections], [1, 1]);
  });
});

describe("a connection of the mesh", () => {
  test("whose other end vanished is noticed, and its calls are unknown", async (t) => {
    const a = await node(t, "a", echo, QUICK);
    const b = await node(t, "b", ({ path }) =>
      path === "/hang" ? new Promise(() => {}) : Promise.resolve({ status: 200 }),
    );
    const proxy = await TcpProxy.start(b.url);
    t.after(() => proxy.stop());
    const url = proxy.through(b.url);
    assert.equal(await bodyOf(a, b, url), "");
    const hanging = bodyOf(a, b, url, { ...PING, path: "/hang" });
    const began = systemClock.monotonic();
    await proxy.freeze();
    assert.match(await hanging, /^unknown: nothing was heard/);
    assert.ok(systemClock.monotonic() - began < 3_000);
    assert.match(await bodyOf(a, b, url), /^refused/);
  });

  test("that is idle stays", async (t) => {
    const [a, b] = [await node(t, "a", echo, QUICK), await node(t, "b", echo, QUICK)];
    await bodyOf(a, b);
    await systemClock.sleep(900);
    assert.ok(a.mesh.isConnected(b.name) && b.mesh.isConnected(a.name));
  });

  test("of a peer that started anew replaces the one of its former life", async (t) => {
    const a = await node(t, "a");
    const b = await MeshNode.start("b", echo);
    const proxy = await TcpProxy.start(b.url);
    t.after(() => proxy.stop());
    assert.equal(await bodyOf(a, b, proxy.through(b.url)), "a:x");
    await proxy.freeze();
    // The machine of b is gone without a word, and b comes up elsewhere and calls.
    const again = await node(t, "b", async () => ({ status: 200, body: "new life" }));
    assert.equal(await bodyOf(again, a), "b:x");
    assert.equal(await bodyOf(a, again), "new life");
    assert.equal(a.mesh.connections, 1);
    await b.kill();
  });
});

describe("a server without a mesh", () => {
  test("is sent nothing but the handshake, and the caller hears what is missing", async (t) => {
    const a = await node(t, "a");
    const b = await node(t, "b", echo, { mesh: false });
    const requests: string[] = [];
    b.server.on("request", ({ method, url }) => requests.push(`${method} ${url}`));
    assert.match(await bodyOf(a, b), /^refused: .*answered 404 .*must pass WebSockets/);
    const outcome = await a.mesh.stream(b.url, PING, { headMs: 2_000, to: b.name });
    assert.ok(outcome.outcome === "refused" && outcome.denied, JSON.stringify(outcome));
    assert.deepEqual([...new Set(requests)], ["GET /peer/mesh"]);
  });
});

describe("a call with a large body", () => {
  const big = "x".repeat(300_000);

  test("gets a connection of its own, which is gone afterwards; so does a large reply to a small call", async (t) => {
    const a = await node(t, "a");
    const b = await node(t, "b", async ({ path, body }) => ({
      status: 200,
      body: path === "/big" ? big : String(body.length),
    }));
    let sockets = 0;
    b.server.on("connection", () => sockets++);
    assert.equal(await bodyOf(a, b), "1");
    assert.equal(sockets, 1);
    assert.equal(await bodyOf(a, b, b.url, { ...PING, body: big }), "300000");
    assert.equal(sockets, 2);
    assert.equal(await bodyOf(a, b, b.url, { ...PING, path: "/big" }), big);
    assert.equal(sockets, 3);
    // Also over a connection that the other side has dialled.
    assert.equal((await bodyOf(b, a, a.url, { ...PING, body: big })).length, "b:".length + big.length);
    const open = promisify(b.server.getConnections.bind(b.server));
    while ((await open()) > 1) await systemClock.sleep(1);
    assert.deepEqual([a.mesh.connections, b.mesh.connections], [1, 1]);
  });

  test("whose reply is kept is not fetched by another node, nor twice", async (t) => {
    const b = await node(t, "b", async () => ({ status: 200, body: big }));
    const a = await node(t, "a");
    const c = await node(t, "c");
    const fetch = (from: MeshNode, ticket: string) =>
      from.mesh.stream(
        b.url,
        { method: "GET", path: `/peer/mesh/reply/${ticket}` },
        { headMs: 2_000, to: b.name },
      );
    for (const [from, ticket] of [
      [a, systemRandom.uuid()],
      [c, ""],
    ] as const)
      assert.equal((await fetch(from, ticket)).outcome, "unknown");
    assert.equal(await bodyOf(a, b), big);
  });
});

describe("watching a peer", () => {
  async function watched(t: TestContext, b: MeshNode, url = b.url) {
    const a = await node(t, "a", echo, QUICK);
    const off = new AbortController();
    let breaks = 0;
    const watching = (async () => {
      for await (const _ of a.mesh.watch(url, off.signal, b.name)) breaks++;
    })();
    t.after(() => off.abort());
    await eventually("a connection", () => a.mesh.isConnected(b.name));
    return { a, breaks: () => breaks, off, watching };
  }

  test("tells at once that its process is gone, and nothing more until it is back", async (t) => {
    const b = await MeshNode.start("b", echo);
    const { a, breaks } = await watched(t, b);
    await b.kill();
    await eventually("a break", () => breaks() === 1);
    const again = await node(t, "b", echo, { port: Number(new URL(b.url).port) });
    await eventually("a connection", () => a.mesh.isConnected(again.name));
    assert.equal(breaks(), 1);
    await again.kill();
    await eventually("a break", () => breaks() === 2);
  });

  test("tells that a connection was lost, and that a machine is silent", async (t) => {
    const b = await node(t, "b");
    const proxy = await TcpProxy.start(b.url);
    t.after(() => proxy.stop());
    const { a, breaks } = await watched(t, b, proxy.through(b.url));
    proxy.reset();
    await eventually("a break", () => breaks() === 1);
    await eventually("a connection", () => a.mesh.isConnected(b.name));
    await proxy.freeze();
    await eventually("a break", () => breaks() === 2);
  });

  test("ends with its signal, and with the transport", async (t) => {
    const b = await node(t, "b");
    const first = await watched(t, b);
    first.off.abort();
    await first.watching;
    const second = first.a.mesh.watch(b.url, new AbortController().signal, b.name)[Symbol.asyncIterator]();
    const next = second.next();
    await first.a.mesh.stop();
    assert.equal((await next).done, true);
  });
});
