import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { describe, test } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { HttpTransport } from "../../../src/transport/http/http-transport.ts";
import type { HttpTransportOptions } from "../../../src/transport/http/http-transport.ts";
import type { Outcome } from "../../../src/transport/transport.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { openHttpTransport, reached, withTransport } from "../../support/peer-world.ts";
import { transportContract } from "./contract.ts";

transportContract("http", openHttpTransport());

const LONG = { deadlineMs: 10_000 };
const PING = { method: "POST", path: "/ping", body: "x" } as const;

/** A peer that answers with these very bytes and then ends its side of the connection. */
async function rawPeer(
  answer: (socket: Socket) => void,
): Promise<AsyncDisposable & { url: string; server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function callRaw(bytes: string, options: Partial<HttpTransportOptions> = {}): Promise<Outcome> {
  await using peer = await rawPeer((socket) => socket.end(bytes));
  await using transport = new HttpTransport({ clock: systemClock, ...options });
  await transport.start();
  return await transport.call(peer.url, PING, LONG);
}

describe("the http transport", () => {
  for (const [title, bytes] of [
    ["shorter than its length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"],
    [
      "shorter than its length, on a connection to be closed",
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\nshort",
    ],
    ["in chunks without the last one", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"],
    [
      "in chunks without the last one, on a connection to be closed",
      "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
    ],
    [
      "that ends with the connection",
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwho knows whether this is all",
    ],
    ["that ends within its head", "HTTP/1.1 200 OK\r\nContent-Le"],
    ["that is no HTTP", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["of nothing", ""],
  ] as const) {
    test(`takes a reply ${title} for unknown`, async () => {
      const outcome = await callRaw(bytes);
      assert.equal(outcome.outcome, "unknown", JSON.stringify(outcome));
    });
  }

  test("takes a whole reply on a connection that is closed after it", async () => {
    const outcome = await callRaw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwhole");
    assert.ok(outcome.outcome === "reply", JSON.stringify(outcome));
    assert.equal(outcome.body, "whole");
  });

  test("passes over interim replies", async () => {
    const outcome = await callRaw(
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    assert.ok(outcome.outcome === "reply", JSON.stringify(outcome));
    assert.deepEqual([outcome.status, outcome.body], [200, "ok"]);
  });

  test("joins a header that comes several times", async () => {
    const outcome = await callRaw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: 1\r\nX-A: 2\r\n\r\n");
    assert.ok(outcome.outcome === "reply");
    assert.equal(outcome.headers["x-a"], "1, 2");
  });

  test("gives up a reply that is larger than it may be", async () => {
    const reply = `HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n${"x".repeat(2_000)}`;
    const outcome = await callRaw(reply, { replyBytesMax: 1_999 });
    assert.ok(outcome.outcome === "unknown", JSON.stringify(outcome));
    assert.match(outcome.reason, /1999 bytes/);
    assert.equal((await callRaw(reply, { replyBytesMax: 2_000 })).outcome, "reply");
  });

  test("refuses a name that does not exist and a header that would break the request", () =>
    withTransport(openHttpTransport())(async ({ transport, listen }) => {
      const nobody = await transport.call("http://nobody.invalid:80", PING, LONG);
      assert.equal(nobody.outcome, "refused", JSON.stringify(nobody));
      const peer = await listen(() => ({ status: 200 }));
      const headers = { "x-a": "1\r\nx-internal: 1" };
      const broken = await transport.call(peer.url, { ...PING, headers }, LONG);
      assert.equal(broken.outcome, "refused", JSON.stringify(broken));
      const split = await transport.call(peer.url, { ...PING, path: "/a HTTP/1.1\r\nx: y\r\n\r\n" }, LONG);
      assert.equal(split.outcome, "refused", JSON.stringify(split));
      assert.deepEqual(peer.received, []);
    }));

  test("refuses a call whose deadline comes while it waits for a connection, and never sends it later", () =>
    withTransport(openHttpTransport({ connectionsMax: 1 }))(async ({ transport, listen }) => {
      const peer = await listen(({ path }) => (path === "/slow" ? "is silent" : { status: 200 }));
      const slow = transport.call(peer.url, { method: "GET", path: "/slow" }, { deadlineMs: 300 });
      await reached(peer, 1);
      const queued = await transport.call(peer.url, PING, { deadlineMs: 50 });
      assert.equal(queued.outcome, "refused", JSON.stringify(queued));
      assert.equal((await slow).outcome, "unknown");
      const next = await transport.call(peer.url, { method: "GET", path: "/next" }, LONG);
      assert.equal(next.outcome, "reply");
      assert.deepEqual(
        peer.received.map(({ path }) => path),
        ["/slow", "/next"],
      );
    }));

  test("keeps its connections for the next calls to the same peer", async () => {
    await using peer = await rawPeer((socket) => {
      const reply = (): void => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      reply();
      socket.on("data", reply);
    });
    let connections = 0;
    peer.server.on("connection", () => (connections += 1));
    await using transport = new HttpTransport({ clock: systemClock });
    await transport.start();
    for (let i = 0; i < 10; i++) {
      assert.equal((await transport.call(peer.url, { method: "GET", path: "/" }, LONG)).outcome, "reply");
    }
    // One rests for a turn of the event loop after each call, so two take turns.
    assert.ok(connections <= 2, `10 calls opened ${connections} connections`);
  });

  test("keeps the connections of so many peers only, and calls under way are not cut by that", () =>
    withTransport(openHttpTransport({ peersMax: 1 }))(async ({ transport, listen }) => {
      const answer = Promise.withResolvers<void>();
      const first = await rawPeer((socket) => {
        void answer.promise.then(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
      });
      await using _ = first;
      const connected = once(first.server, "connection");
      const slow = transport.call(first.url, PING, LONG);
      const [socket] = (await connected) as [Socket];
      const second = await listen(() => ({ status: 200 }));
      assert.equal((await transport.call(second.url, PING, LONG)).outcome, "reply");
      answer.resolve();
      assert.equal((await slow).outcome, "reply");
      if (!socket.closed) await once(socket, "close");
      assert.equal((await transport.call(first.url, PING, { deadlineMs: 2_000 })).outcome, "reply");
    }));

  lifecycleStress("the http transport", async () => {
    const world = await openHttpTransport()();
    await world.transport.stop();
    const peer = await world.listen(() => ({ status: 200 }));
    return {
      service: world.transport,
      works: async (transport) => {
        const outcome = await transport.call(peer.url, PING, { deadlineMs: 5_000 });
        assert.equal(outcome.outcome, "reply");
      },
      close: world.close,
    };
  });
});
