import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { requestRouter, type RequestRouter } from "../../../src/api/route.ts";
import { OUTSIDE } from "../../../src/transport/hop-headers.ts";
import type { Inbound } from "../../../src/transport/hop-headers.ts";
import type { NodeServices } from "../../../src/api/node-services.ts";
import type { Peers } from "../../../src/transport/hop-headers.ts";
import type { JobId, NodeName } from "../../../src/core/ids.ts";
import type { NodeInfo } from "../../../src/core/node.ts";
import type { Target } from "../../../src/core/route.ts";
import { FakeNode } from "../http/fake-node.ts";

const UUID = "0198c0de-0000-7000-8000-000000000000";

/** The fake node with others beside it; with a way to them unless told otherwise. */
function among(
  others: readonly string[],
  over: Partial<NodeServices> = {},
): { node: FakeNode; router: RequestRouter } {
  const node = new FakeNode();
  const self = node.membership.nodes()[0]!;
  const nodes: NodeInfo[] = [...others.map((name) => ({ ...self, name: name as NodeName })), self];
  const services: NodeServices = Object.assign(Object.create(node) as NodeServices, {
    membership: { ...node.membership, nodes: () => nodes },
    peers: PEERS,
    ...over,
  });
  return { node, router: requestRouter(services) };
}

const PEERS: Peers = {
  requestTimeoutMs: 5_000,
  configHash: () => "ours",
  agreed: () => true,
  call: () => Promise.reject(new Error("a decision calls nobody")),
  stream: () => Promise.reject(new Error("a decision calls nobody")),
};
const fromPeer: Inbound = { ...OUTSIDE, from: "node-b", configHash: "theirs", mayForward: false };

/** What is done, to whom, or the code of the refusal. */
function where(router: RequestRouter, target: Target, mutates: boolean, inbound = OUTSIDE): string {
  const decision = router.decide(target, mutates, inbound);
  if (decision.do === "forward") return `to ${decision.to.name}`;
  return decision.do === "refuse" ? decision.code : decision.do;
}

describe("where a request is answered", () => {
  const theirs: Target = { at: "owner", job: `node-b-${UUID}` as JobId };
  const nobodys: Target = { at: "owner", job: `evil.com-${UUID}` as JobId };
  const shared = {
    guarantees: { name: "pg", durability: "power loss", shared: true, keepsTokenFile: false },
  } as const;

  it("is nowhere for a job of another node when there is no way to it, or the caller wants none", () => {
    const { router } = among(["node-b"], { peers: null });
    assert.equal(where(router, theirs, false), "OWNER_UNREACHABLE");
    const stays = { ...OUTSIDE, mayForward: false };
    const other = among(["node-b"]).router;
    assert.equal(where(other, theirs, false, stays), "OWNER_UNREACHABLE");
    const { details } = other.refusal("OWNER_UNREACHABLE", theirs, stays);
    assert.deepEqual(details, {
      owner: "node-b",
      detail: "not_forwarded",
      owner_url: "http://127.0.0.1:4000",
    });
  });

  it("is here for a job of nobody, unless the list of nodes is not agreed upon", () => {
    const { node, router } = among(["node-b"]);
    assert.equal(where(router, nobodys, false), "serve");
    const peers = { ...PEERS, agreed: () => false };
    assert.equal(where(among(["node-b"], { peers }).router, nobodys, false), "OWNER_UNREACHABLE");
    node.health.forming = "1 of 2 nodes";
    assert.equal(where(router, nobodys, false), "OWNER_UNREACHABLE");
    assert.deepEqual(router.refusal("OWNER_UNREACHABLE", nobodys, OUTSIDE).details, {
      owner: "evil.com",
      detail: "unknown_node",
    });
  });

  it("S86: is not passed on a second time, and both views are told", () => {
    const { router } = among(["node-b"]);
    assert.equal(where(router, theirs, false, fromPeer), "LOOP");
    assert.deepEqual(router.refusal("LOOP", theirs, fromPeer).details, {
      owner: "node-b",
      sender: "node-b",
      sender_config: "theirs",
      node_id: "node-a",
      node_config: "ours",
    });
  });

  it("is here for what the leader carries out, where all write the same store", () => {
    const { node, router } = among(["node-b"], shared);
    node.leading = false;
    assert.equal(where(router, { at: "leader" }, true), "serve");
  });

  it("is with whoever's turn it is for a new job, and here when it cannot be passed on", () => {
    const { router } = among(["node-b"]);
    assert.equal(where(router, { at: "any" }, true), "place");
    const alone = among(["node-b"], { peers: null });
    assert.equal(where(alone.router, { at: "any" }, true), "serve");
    alone.node.health.draining = true;
    assert.equal(where(alone.router, { at: "any" }, true), "DRAINING");
  });

  it("is with the leader, who is named to a caller that wants no forwarding", () => {
    const { node, router } = among(["node-b"], {
      leadership: {
        ...new FakeNode().leadership,
        held: () => null,
        current: () => ({ role: "scheduler", leader: "node-b" as NodeName, incarnation: "i", epoch: 7 }),
      },
    });
    assert.equal(node.health.draining, false);
    assert.equal(where(router, { at: "leader" }, true), "to node-b");
    const stays = { ...OUTSIDE, mayForward: false };
    assert.equal(where(router, { at: "leader" }, true, stays), "NOT_LEADER");
    assert.equal(where(router, { at: "leader" }, true, fromPeer), "NOT_LEADER");
    assert.deepEqual(router.refusal("NOT_LEADER", { at: "leader" }, stays).details, {
      leader_id: "node-b",
      leader_url: "http://127.0.0.1:4000",
      leader_epoch: 7,
      node_id: "node-a",
      role: "STANDBY",
    });
  });
});
