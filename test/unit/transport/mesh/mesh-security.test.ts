/** What an attacker on the network can do to a node with a mesh, who has no key: nothing that a caller or the node would notice. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { describe, test, type TestContext } from "node:test";
import type { NodeName } from "../../../../src/core/ids.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { systemRandom } from "../../../../src/platform/random.ts";
import { clusterKeys } from "../../../../src/transport/signing/signing.ts";
import { greet } from "../../../../src/transport/mesh/handshake.ts";
import type { PeerHandler } from "../../../../src/transport/transport.ts";
import { MeshNode, SECRET, type MeshNodeOptions } from "../../../support/mesh-world.ts";
import { tamperingProxy, type Tamper } from "../../../support/tampering-proxy.ts";
import { eventually } from "../../../support/wait.ts";

const CALL = { method: "POST", path: "/transfer", body: "one hundred" } as const;
const QUICK: MeshNodeOptions = { limits: { pingMs: 50, silentMs: 300 }, connectMs: 500 };

interface Victim {
  readonly node: MeshNode;
  readonly received: string[];
}

async function victim(t: TestContext, name: string, options: MeshNodeOptions = {}): Promise<Victim> {
  const received: string[] = [];
  const handler: PeerHandler = async ({ from, path, body }) => {
    received.push(`${from} ${path} ${body}`);
    return { status: 200, body: "done" };
  };
  const node = await MeshNode.start(name, handler, options);
  t.after(() => node.kill());
  return { node, received };
}

async function outcomeOf(from: MeshNode, to: MeshNode, url = to.url, deadlineMs = 3_000): Promise<string> {
  const outcome = await from.mesh.call(url, CALL, { deadlineMs, to: to.name });
  return outcome.outcome === "reply" ? `reply ${outcome.status}` : `${outcome.outcome}: ${outcome.reason}`;
}

/** It still serves its peers. */
async function isWell(t: TestContext, { node, received }: Victim): Promise<void> {
  const friend = await victim(t, "friend");
  const before = received.length;
  assert.equal(await outcomeOf(friend.node, node), "reply 200");
  assert.equal(received.length, before + 1);
}

/** The bytes of an upgrade request with these headers. */
function upgrade(headers: Readonly<Record<string, string>>, path = "/peer/mesh"): string {
  const lines = Object.entries({
    host: "127.0.0.1",
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

function signedUpgrade(to: string | null, secret = SECRET): string {
  const claims = {
    from: { name: "mallory" as NodeName, incarnation: "m-1" },
    to: to as NodeName | null,
    time: systemClock.now(),
    nonce: systemRandom.uuid(),
    use: "shared" as const,
  };
  return upgrade(greet(clusterKeys([secret]), claims));
}

async function rawSocket(t: TestContext, url: string): Promise<{ socket: Socket; text: () => string }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  t.after(() => socket.destroy());
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString("latin1")));
  await once(socket, "connect");
  return { socket, text: () => text };
}

async function isClosed(socket: Socket): Promise<void> {
  await eventually("the end of the connection", () => socket.closed);
}

describe("on the way of a connection", () => {
  /** A caller behind somebody who tampers from the given chunk on. The handshake is one chunk each way, then the first frames. */
  async function through(t: TestContext, tamper: Tamper) {
    const b = await victim(t, "b", QUICK);
    const a = await victim(t, "a", QUICK);
    const proxy = await tamperingProxy(b.node.url, tamper);
    t.after(() => proxy.close());
    return { a: a.node, b, proxy };
  }

  test("an altered frame is not acted upon, and ends the connection", async (t) => {
    let alter = false;
    const { a, b, proxy } = await through(t, (direction, chunk) => {
      if (alter && direction === "up") chunk[chunk.length - 1]! ^= 1;
      return chunk;
    });
    assert.equal(await outcomeOf(a, b.node, proxy.url), "reply 200");
    alter = true;
    assert.match(await outcomeOf(a, b.node, proxy.url), /^unknown/);
    assert.equal(b.received.length, 1);
    assert.ok(
      b.node.log.some(({ level, fields }) => level === "warn" && String(fields["err"]).includes("seal")),
    );
    alter = false;
    assert.equal(await outcomeOf(a, b.node, proxy.url), "reply 200");
  });

  test("an altered reply is not believed", async (t) => {
    let alter = false;
    const { a, b, proxy } = await through(t, (direction, chunk) => {
      if (alter && direction === "down") chunk[chunk.length - 1]! ^= 1;
      return chunk;
    });
    assert.equal(await outcomeOf(a, b.node, proxy.url), "reply 200");
    alter = true;
    assert.match(await outcomeOf(a, b.node, proxy.url), /^unknown: the seal/);
  });

  test("a repeated frame is acted upon once, and ends the connection", async (t) => {
    let repeat = false;
    const { a, b, proxy } = await through(t, (direction, chunk) =>
      repeat && direction === "up" ? Buffer.concat([chunk, chunk]) : chunk,
    );
    assert.equal(await outcomeOf(a, b.node, proxy.url), "reply 200");
    repeat = true;
    await outcomeOf(a, b.node, proxy.url);
    await eventually("the end of the connection", () => !b.node.mesh.isConnected(a.name));
    assert.equal(b.received.length, 2);
    assert.ok(
      b.node.log.some(({ fields }) => /frame \d+ came where \d+ was due/.test(String(fields["err"]))),
    );
  });

  test("an altered handshake is refused, either way", async (t) => {
    for (const [from, to] of [
      ["x-baton-from: a", "x-baton-from: c"],
      ["x-baton-from: b", "x-baton-from: c"],
      ["x-baton-to: b", "x-baton-to: c"],
      ["x-baton-proof: ", "x-baton-proof: A"],
    ] as const) {
      const { a, b, proxy } = await through(t, (_direction, chunk) =>
        Buffer.from(chunk.toString("latin1").replace(from, to), "latin1"),
      );
      assert.match(await outcomeOf(a, b.node, proxy.url), /^refused/, from);
      assert.deepEqual(b.received, []);
      assert.ok(!b.node.mesh.isConnected(a.name) && !a.mesh.isConnected(b.node.name));
    }
  });

  test("a recorded handshake opens nothing, at the same node or another, and disturbs nobody", async (t) => {
    const { a, b, proxy } = await through(t, (_direction, chunk) => chunk);
    const c = await victim(t, "c", QUICK);
    assert.equal(await outcomeOf(a, b.node, proxy.url), "reply 200");
    const recorded = proxy.up[0]!;
    assert.match(recorded.toString("latin1"), /^GET \/peer\/mesh/);
    for (const [target, why] of [
      [b, /sent a second time/],
      [c, /meant for b/],
    ] as const) {
      const { socket, text } = await rawSocket(t, target.node.url);
      socket.write(recorded);
      await isClosed(socket);
      assert.match(text(), /^HTTP\/1\.1 401/);
      assert.match(text(), why);
    }
    assert.ok(b.node.mesh.isConnected(a.name));
    assert.equal(b.node.mesh.connections, 1);
  });

  test("a recorded handshake that names no receiver takes nobody's place at another node", async (t) => {
    const { a, b, proxy } = await through(t, (_direction, chunk) => chunk);
    const c = await victim(t, "c", QUICK);
    assert.equal((await a.mesh.call(proxy.url, CALL, { deadlineMs: 3_000 })).outcome, "reply");
    assert.equal(await outcomeOf(a, c.node), "reply 200");
    const { socket, text } = await rawSocket(t, c.node.url);
    // With all the frames that followed it: they are sealed for another session.
    socket.write(Buffer.concat(proxy.up));
    await isClosed(socket);
    assert.match(text(), /^HTTP\/1\.1 101/);
    assert.equal(await outcomeOf(a, c.node), "reply 200");
    assert.equal(c.received.length, 2);
    await eventually("a connection", () => c.node.mesh.connections === 1);
    assert.equal(b.received.length, 1);
  });
});

describe("a node with another secret, or another clock", () => {
  test("is refused, and told what is wrong", async (t) => {
    const b = await victim(t, "b");
    const stranger = await victim(t, "a", { secrets: ["another secret altogether, also long enough"] });
    assert.match(await outcomeOf(stranger.node, b.node), /^refused: .*cluster\.secret differs/);
    const late = { ...systemClock, now: () => systemClock.now() - 45_000 };
    const slow = await victim(t, "slow", { clock: late });
    assert.match(await outcomeOf(slow.node, b.node), /^refused: .*clock of slow is 45 s behind that of b/);
    assert.match(await outcomeOf(b.node, slow.node), /^refused: .*clock of b is 45 s ahead of that of slow/);
    assert.deepEqual(b.received, []);
  });

  test("is understood while a secret is being changed, node by node", async (t) => {
    const [old, fresh] = [
      "an old secret of this cluster, quite long",
      "a fresh secret of this cluster, quite long",
    ] as const;
    const stages = [[old], [old, fresh], [fresh, old], [fresh]];
    for (let stage = 0; stage + 1 < stages.length; stage++) {
      const a = await victim(t, "a", { secrets: stages[stage]! });
      const b = await victim(t, "b", { secrets: stages[stage + 1]! });
      assert.equal(await outcomeOf(a.node, b.node), "reply 200", `stage ${stage}`);
      assert.equal(await outcomeOf(b.node, a.node), "reply 200", `stage ${stage}`);
      await Promise.all([a.node.kill(), b.node.kill()]);
    }
  });
});

describe("somebody who pretends to be a node", () => {
  async function impostor(t: TestContext, headers: string): Promise<{ url: string; heard: () => string }> {
    let heard = "";
    const server = createServer();
    server.on("upgrade", (request, socket) => {
      const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accept = createHash("sha1").update(key).digest("base64");
      socket.on("error", () => {});
      socket.on("data", (chunk: Buffer) => (heard += chunk.toString("latin1")));
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n${headers}\r\n`,
      );
      t.after(() => socket.destroy());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard: () => heard };
  }

  test("gets to see no call", async (t) => {
    const a = await victim(t, "a");
    const proof = "A".repeat(43);
    const nonce = systemRandom.uuid();
    for (const headers of [
      "x-baton-mesh: 2\r\n",
      `x-baton-mesh: 2\r\nx-baton-from: b\r\nx-baton-incarnation: b-1\r\nx-baton-nonce: ${nonce}\r\nx-baton-proof: ${proof}\r\n`,
      `x-baton-mesh: 2\r\nx-baton-from: b\r\nx-baton-incarnation: b-1\r\nx-baton-nonce: ${nonce}\r\nx-baton-proof: short\r\n`,
    ]) {
      const { url, heard } = await impostor(t, headers);
      const outcome = await a.node.mesh.call(url, CALL, { deadlineMs: 2_000, to: "b" as NodeName });
      assert.equal(outcome.outcome, "refused", JSON.stringify(outcome));
      assert.ok(!heard().includes("one hundred"));
    }
  });
});

describe("on the port of a node", () => {
  test("an upgrade that is unsigned, or signed by a stranger, is answered and holds nothing", async (t) => {
    const b = await victim(t, "b");
    for (const request of [
      upgrade({}),
      upgrade({ "x-baton-signature": "x" }),
      signedUpgrade("b", "another secret altogether, also long enough"),
      signedUpgrade("c"),
    ]) {
      const { socket, text } = await rawSocket(t, b.node.url);
      socket.write(request);
      await isClosed(socket);
      assert.match(text(), /^HTTP\/1\.1 401/);
    }
    assert.equal(b.node.mesh.connections, 0);
    await isWell(t, b);
  });

  test("another upgrade is an ordinary request, as if there were no mesh", async (t) => {
    const b = await victim(t, "b");
    const { socket, text } = await rawSocket(t, b.node.url);
    socket.write("GET /x HTTP/1.1\r\nhost: b\r\nconnection: Upgrade, close\r\nupgrade: h2c\r\n\r\n");
    await isClosed(socket);
    assert.match(text(), /^HTTP\/1\.1 404 Not Found\r\n/);
  });

  test("one who was let in and then says nothing, or little by little, is dropped and never counted", async (t) => {
    const b = await victim(t, "b", QUICK);
    for (const drip of [null, Buffer.from([0x82, 0xfe, 0xff])]) {
      const { socket, text } = await rawSocket(t, b.node.url);
      socket.write(signedUpgrade("b"));
      await eventually("the upgrade", () => text().startsWith("HTTP/1.1 101"));
      if (drip) socket.write(drip);
      await isClosed(socket);
      assert.equal(b.node.mesh.isConnected("mallory" as NodeName), false);
    }
    await eventually("the end of all connections", () => b.node.mesh.connections === 0);
    await isWell(t, b);
  });

  test("garbage, text, oversize and lying frames end the connection and nothing else", async (t) => {
    const b = await victim(t, "b", QUICK);
    const masked = (first: number, length: Buffer, payload = Buffer.alloc(0)) =>
      Buffer.concat([Buffer.from([first]), length, Buffer.alloc(4), payload]);
    const huge = Buffer.alloc(9);
    huge[0] = 0xff;
    huge.writeBigUInt64BE(10_000_000_000n, 1);
    const large = Buffer.alloc(9);
    large[0] = 0xff;
    large.writeBigUInt64BE(600_000n, 1);
    const zeros = Buffer.alloc(100);
    for (const [what, bytes] of Object.entries({
      garbage: Buffer.from("\xff\xfe nonsense \r\n\r\n\0\0\0 GET / HTTP/1.1", "latin1"),
      unmasked: Buffer.concat([Buffer.from([0x82, 100]), zeros]),
      text: masked(0x81, Buffer.from([0x80 | 5]), Buffer.from("hello")),
      empty: masked(0x82, Buffer.from([0x80])),
      unsealed: masked(0x82, Buffer.from([0x80 | 100]), zeros),
      "ten gigabytes": masked(0x82, huge),
      "more than a frame may have": masked(0x82, large, Buffer.alloc(600_000)),
      reserved: masked(0xf2, Buffer.from([0x80 | 5]), Buffer.from("hello")),
    })) {
      const { socket, text } = await rawSocket(t, b.node.url);
      socket.write(signedUpgrade("b"));
      await eventually("the upgrade", () => text().startsWith("HTTP/1.1 101"));
      socket.write(bytes);
      socket.resume();
      await isClosed(socket);
      assert.equal(b.node.mesh.isConnected("mallory" as NodeName), false, what);
    }
    await eventually("the end of all connections", () => b.node.mesh.connections === 0);
    assert.deepEqual(b.received, []);
    await isWell(t, b);
  });

  test("no more connections are taken than there may be", async (t) => {
    const b = await victim(t, "b", { connectionsMax: 3 });
    const held = await Promise.all(Array.from({ length: 5 }, () => rawSocket(t, b.node.url)));
    for (const { socket } of held) socket.write(signedUpgrade("b"));
    await eventually("an answer on each connection", () =>
      held.every(({ text }) => text().includes("\r\n\r\n")),
    );
    const taken = held.filter(({ text }) => text().startsWith("HTTP/1.1 101")).length;
    assert.equal(taken, 3);
    for (const { socket } of held) socket.destroy();
    await eventually("the end of all connections", () => b.node.mesh.connections === 0);
    await isWell(t, b);
  });
});
