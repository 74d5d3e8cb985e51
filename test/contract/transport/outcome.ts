import assert from "node:assert/strict";
import { reached, type TransportWorld } from "../../support/peer-world.ts";
import type { Promises } from "../promises.ts";

const LONG = { deadlineMs: 20_000 };
const POST = { method: "POST", path: "/", body: "x" } as const;

export const outcomePromises: Promises<TransportWorld> = {
  "where nobody listens a call is refused, with a reason": async ({ transport, nowhere }) => {
    const outcome = await transport.call(await nowhere(), POST, LONG);
    assert.ok(outcome.outcome === "refused", JSON.stringify(outcome));
    assert.notEqual(outcome.reason, "");
  },

  "a peer that dies over a call leaves it unknown, not refused": async ({ transport, listen }) => {
    const peer = await listen(() => "dies");
    const outcome = await transport.call(peer.url, POST, LONG);
    assert.ok(outcome.outcome === "unknown", JSON.stringify(outcome));
    assert.notEqual(outcome.reason, "");
    assert.equal(peer.received.length, 1);
  },

  "a reply that breaks off is unknown, never a short one": async ({ transport, listen }) => {
    const peer = await listen(() => "breaks off");
    const outcome = await transport.call(peer.url, POST, LONG);
    assert.equal(outcome.outcome, "unknown", JSON.stringify(outcome));
  },

  "a peer that is killed while it works leaves its calls unknown, and later ones refused": async (world) => {
    const peer = await world.listen(() => "is silent");
    const calls = [1, 2, 3].map(() => world.transport.call(peer.url, POST, LONG));
    await reached(peer, 3);
    await peer.kill();
    for (const outcome of await Promise.all(calls)) assert.equal(outcome.outcome, "unknown");
    const later = await world.transport.call(peer.url, POST, LONG);
    assert.equal(later.outcome, "refused", JSON.stringify(later));
  },

  "a peer that comes back is reached again": async ({ transport, listen, nowhere }) => {
    const url = await nowhere();
    assert.equal((await transport.call(url, POST, LONG)).outcome, "refused");
    const peer = await listen(() => ({ status: 200 }), url);
    assert.equal((await transport.call(url, POST, LONG)).outcome, "reply");
    await peer.kill();
    assert.equal((await transport.call(url, POST, LONG)).outcome, "refused");
  },

  "nothing is sent twice": async ({ transport, listen }) => {
    const peer = await listen(({ path }) => (path === "/dies" ? "dies" : { status: 503 }));
    for (const method of ["GET", "POST"] as const) {
      await transport.call(peer.url, { method, path: "/dies" }, LONG);
      await transport.call(peer.url, { method, path: "/busy" }, LONG);
    }
    assert.deepEqual(
      peer.received.map(({ method, path }) => `${method} ${path}`),
      ["GET /dies", "GET /busy", "POST /dies", "POST /busy"],
    );
  },

  "what cannot be sent is refused, and says what is wrong": async ({ transport, listen }) => {
    const peer = await listen(() => ({ status: 200 }));
    const withUser = peer.url.replace("http://", "http://user:secret@");
    for (const [url, request, options, word] of [
      ["not a url", POST, LONG, "url"],
      ["", POST, LONG, "url"],
      ["ftp://peer:1", POST, LONG, "http://"],
      [withUser, POST, LONG, "password"],
      [peer.url, { ...POST, path: "jobs" }, LONG, "path"],
      [peer.url, POST, { deadlineMs: 0 }, "deadlineMs"],
      [peer.url, POST, { deadlineMs: Number.NaN }, "deadlineMs"],
    ] as const) {
      const outcome = await transport.call(url, request, options);
      assert.ok(outcome.outcome === "refused", JSON.stringify(outcome));
      assert.ok(outcome.reason.includes(word), outcome.reason);
      assert.ok(!outcome.reason.includes("secret"));
    }
    assert.deepEqual(peer.received, []);
  },

  "a transport that does not run refuses": async ({ transport, listen }) => {
    const peer = await listen(() => ({ status: 200 }));
    await transport.stop();
    assert.equal((await transport.call(peer.url, POST, LONG)).outcome, "refused");
    assert.deepEqual(peer.received, []);
  },

  "a stop ends the calls under way, as unknown": async ({ transport, listen }) => {
    const peer = await listen(() => "is silent");
    const call = transport.call(peer.url, POST, LONG);
    await reached(peer, 1);
    await transport.stop();
    assert.equal((await call).outcome, "unknown");
  },
};
