import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stillForming } from "../../../src/leadership/coordination.ts";
import type { NodeInfo, NodeStatus } from "../../../src/core/node.ts";

const node = (status: NodeStatus, alive = true): NodeInfo => ({ status, alive }) as NodeInfo;

describe("a cluster", () => {
  it("has gathered when enough nodes are joining or active", () => {
    assert.equal(stillForming([node("joining")], 1), null);
    assert.equal(stillForming([node("joining"), node("active")], 2), null);
    assert.equal(stillForming([node("active")], 3), "1 of 3 nodes have gathered");
  });

  it("does not count nodes that drain or died, nor rows of nodes that fell silent", () => {
    const left = [node("joining"), node("draining"), node("dead", false), node("active", false)];
    assert.equal(stillForming(left, 2), "1 of 2 nodes have gathered");
  });
});
