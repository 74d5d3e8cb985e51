import assert from "node:assert/strict";
import type { TransportWorld } from "../../support/peer-world.ts";
import type { Promises } from "../promises.ts";

const LONG = { deadlineMs: 20_000 };
const GET = { method: "GET", path: "/" } as const;

export const replyPromises: Promises<TransportWorld> = {
  "a reply has the peer's status, headers and body": async ({ transport, listen }) => {
    const headers = { "X-Baton-Epoch": "7", "content-type": "text/plain; charset=utf-8" };
    const peer = await listen(() => ({ status: 201, headers, body: "grüße 😀" }));
    const outcome = await transport.call(peer.url, GET, LONG);
    assert.ok(outcome.outcome === "reply", JSON.stringify(outcome));
    assert.equal(outcome.status, 201);
    assert.equal(outcome.body, "grüße 😀");
    assert.equal(outcome.headers["x-baton-epoch"], "7");
    assert.equal(outcome.headers["content-type"], "text/plain; charset=utf-8");
  },

  "the peer gets method, path with its query, headers and body as they were given": async (world) => {
    const peer = await world.listen(() => ({ status: 200 }));
    const path = "/jobs/a%2Fb?since=1&q=%C3%BC";
    const body = '{"text": "ünï"}';
    for (const method of ["POST", "PUT", "DELETE"] as const) {
      await world.transport.call(peer.url, { method, path, body, headers: { "X-Key": "abc" } }, LONG);
    }
    // A path in the url is where a proxy offers the node; the node itself does not see it.
    await world.transport.call(`${peer.url}/base/`, GET, LONG);
    assert.deepEqual(
      peer.received.map((request) => [request.method, request.path, request.headers["x-key"], request.body]),
      [
        ["POST", path, "abc", body],
        ["PUT", path, "abc", body],
        ["DELETE", path, "abc", body],
        ["GET", "/", undefined, ""],
      ],
    );
  },

  "every status is a reply": async ({ transport, listen }) => {
    const peer = await listen(({ path }) => ({ status: Number(path.slice(1)) }));
    for (const status of [200, 202, 204, 304, 400, 401, 404, 409, 429, 500, 502, 503, 504]) {
      const outcome = await transport.call(peer.url, { method: "GET", path: `/${status}` }, LONG);
      assert.ok(outcome.outcome === "reply", `${status}: ${JSON.stringify(outcome)}`);
      assert.equal(outcome.status, status);
    }
  },

  "a redirect is a reply, and nobody follows it": async ({ transport, listen }) => {
    const other = await listen(() => ({ status: 200, body: "elsewhere" }));
    const peer = await listen(({ path }) => ({
      status: Number(path.slice(1)),
      headers: { location: `${other.url}/here` },
    }));
    for (const status of [301, 302, 303, 307, 308]) {
      const outcome = await transport.call(peer.url, { method: "POST", path: `/${status}`, body: "x" }, LONG);
      assert.ok(outcome.outcome === "reply");
      assert.equal(outcome.status, status);
      assert.equal(outcome.headers["location"], `${other.url}/here`);
    }
    assert.deepEqual(other.received, []);
    assert.equal(peer.received.length, 5);
  },

  "calls made together get each its own reply": async ({ transport, listen }) => {
    const peers = await Promise.all(
      ["a", "b"].map((name) => listen(({ body }) => ({ status: 200, body: `${name}${body}` }))),
    );
    const calls = Array.from({ length: 200 }, async (_, i) => {
      const request = { method: "POST", path: "/", body: String(i) } as const;
      const outcome = await transport.call(peers[i % 2]!.url, request, LONG);
      assert.ok(outcome.outcome === "reply");
      assert.equal(outcome.body, `${i % 2 ? "b" : "a"}${i}`);
    });
    const settled = await Promise.allSettled(calls);
    for (const call of settled) if (call.status === "rejected") throw call.reason;
  },

  "large bodies arrive whole, both ways": async ({ transport, listen }) => {
    const body = "0123456789abcdeü".repeat(200_000);
    const peer = await listen((request) => ({ status: 200, body: request.body + request.body }));
    const outcome = await transport.call(peer.url, { method: "POST", path: "/", body }, LONG);
    assert.ok(outcome.outcome === "reply", JSON.stringify(outcome).slice(0, 200));
    assert.ok(peer.received[0]!.body === body, "the request was changed");
    assert.ok(outcome.body === body + body, "the reply was changed");
  },
};
