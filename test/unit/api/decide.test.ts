import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Gate } from "../../../src/api/decide.ts";
import type { NodeServices } from "../../../src/api/services.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { ErrorCode } from "../../../src/core/errors.ts";
import type { JobId, NodeName } from "../../../src/core/ids.ts";
import type { NodeInfo } from "../../../src/core/node.ts";
import type { Target } from "../../../src/core/route.ts";
import { FakeNode } from "../http/fake-node.ts";

const UUID = "0198c0de-0000-7000-8000-000000000000";

/** The fake node with others beside it. */
function among(others: readonly string[], over: Partial<NodeServices> = {}): { node: FakeNode; gate: Gate } {
  const node = new FakeNode();
  const self = node.membership.nodes()[0]!;
  const nodes: NodeInfo[] = [...others.map((name) => ({ ...self, name: name as NodeName })), self];
  const services: NodeServices = Object.assign(Object.create(node) as NodeServices, {
    membership: { ...node.membership, nodes: () => nodes },
    ...over,
  });
  return { node, gate: new Gate(services) };
}

function refusedWith(gate: Gate, target: Target, mutates: boolean, code: ErrorCode): Record<string, unknown> {
  let details: Record<string, unknown> = {};
  assert.throws(
    () => gate.admit(target, mutates),
    (error) => {
      if (!hasCode(error, code)) return false;
      details = error.details;
      return true;
    },
  );
  return details;
}

describe("where a request is answered", () => {
  const ours: Target = { at: "owner", job: `node-a-${UUID}` as JobId };
  const theirs: Target = { at: "owner", job: `node-b-${UUID}` as JobId };

  it("is here for all that a single node is asked", () => {
    const { gate } = among([]);
    for (const target of [{ at: "here" }, { at: "any" }, { at: "leader" }, ours, theirs] as const) {
      gate.admit(target, true);
      gate.admit(target, false);
    }
  });

  it("is not here for a job of another node that keeps its own store", () => {
    const { gate } = among(["node-b"]);
    gate.admit(ours, true);
    assert.deepEqual(refusedWith(gate, theirs, false, "OWNER_UNREACHABLE"), { owner: "node-b" });
  });

  it("is here for every job of a shared store", () => {
    const { gate } = among(["node-b"], {
      guarantees: { name: "pg", durability: "power loss", shared: true },
    });
    gate.admit(theirs, true);
    gate.admit(theirs, false);
  });

  it("is here for what the leader carries out, where all write the same store", () => {
    const { node, gate } = among(["node-b"], {
      guarantees: { name: "pg", durability: "power loss", shared: true },
    });
    node.leading = false;
    gate.admit({ at: "leader" }, true);
  });

  it("is here for a new job although another node was its turn, unless this one drains", () => {
    const { node, gate } = among(["node-b"]);
    gate.admit({ at: "any" }, true);
    node.health.draining = true;
    refusedWith(gate, { at: "any" }, true, "DRAINING");
    gate.admit({ at: "any" }, false);
  });

  it("is with the leader, who is named", () => {
    const { node, gate } = among(["node-b"]);
    node.leading = false;
    const details = refusedWith(gate, { at: "leader" }, true, "NOT_LEADER");
    assert.deepEqual(details, {
      leader_id: "node-a",
      leader_url: "http://127.0.0.1:4000",
      leader_epoch: 7,
      node_id: "node-a",
      role: "STANDBY",
    });
  });
});
