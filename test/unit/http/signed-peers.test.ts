import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeName } from "../../../src/core/ids.ts";
import { authenticateBy } from "../../../src/http/authenticate.ts";
import { systemClock as clock } from "../../../src/platform/clock.ts";
import { systemRandom as random } from "../../../src/platform/random.ts";
import { Authenticator } from "../../../src/transport/signing/authenticator.ts";
import { clusterKeys } from "../../../src/transport/signing/cluster-keys.ts";
import { SignedTransport } from "../../../src/transport/signing/signed-transport.ts";
import { peerApps } from "../../support/peer-apps.ts";
import type { PeerApp } from "../../support/peer-apps.ts";

const SECRET = "NPN7Wy3sE1Tt0IqDkSx5kq3K1m7r2bC9a8u4v6w0x2y";

async function signedPeers(secretOf: (name: string) => string = () => SECRET) {
  const cluster = await peerApps({
    names: ["node-a", "node-b"],
    strategy: "per-node",
    authenticate: (name) =>
      authenticateBy(
        new Authenticator({ keys: clusterKeys([secretOf(name)]), self: name as NodeName, clock }),
      ),
    dress: (name, inner) =>
      new SignedTransport({
        inner,
        keys: clusterKeys([secretOf(name)]),
        self: { name: name as NodeName, incarnation: "i" },
        clock,
        random,
      }),
  });
  const [a, b] = cluster.nodes as [PeerApp, PeerApp];
  return { cluster, a, b };
}

async function ask(at: PeerApp, path: string, init: RequestInit = {}) {
  const answer = await fetch(`${at.url}${path}`, init);
  const text = await answer.text();
  return { status: answer.status, body: JSON.parse(text) };
}

describe("nodes that sign what they pass on", () => {
  it("believe each other, over the ordinary port", async () => {
    const { cluster, a, b } = await signedPeers();
    await using _ = cluster;
    const id = b.node.add();
    b.node.finish(id, "completed", "é");
    for (const rest of ["", "/result", "/logs?after=0"]) {
      assert.equal((await ask(a, `/jobs/${id}${rest}`)).status, 200, rest);
    }
    for (let n = 0; n < 4; n++) {
      const { status } = await ask(a, "/jobs", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ task: "hello", payload: "ü" }),
      });
      assert.equal(status, 200);
    }
    assert.equal(b.node.kept.size, 3);
    assert.equal((await ask(a, "/queues")).body.partial, false);
    const { body } = await ask(b, "/cluster/jobs");
    assert.deepEqual([body.partial, body.items.length], [false, 5]);
  });

  it("do not believe one with another secret, whose callers hear that the owner is not to be had", async () => {
    const { cluster, a, b } = await signedPeers((name) => SECRET + name);
    await using _ = cluster;
    const { status, body } = await ask(a, `/jobs/${b.node.add()}`);
    assert.deepEqual([status, body.error, body.owner], [503, "owner_node_unreachable", "node-b"]);
    assert.equal((await ask(a, "/queues")).body.partial, true);
    for (let n = 0; n < 2; n++) {
      const placed = await ask(a, "/jobs", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"task":"hello"}',
      });
      assert.match(placed.body.job_id, /^node-a-/, "new jobs stay here");
    }
  });
});
