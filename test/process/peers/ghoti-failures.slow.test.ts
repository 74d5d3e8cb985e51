/**
 * What the second seed's document admits: an order in which nodes must be started, and dead nodes that stay in the list. Here each
 * of them ends well.
 */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { roleOf } from "../../support/cluster.ts";
import { LeaderClaims } from "../../support/leader-claims.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { ghotiFile, PeerCluster, QUICK_PEERS, statuses } from "../../support/peer-cluster.ts";
import { eventually } from "../../support/wait.ts";

const NAMES = ["node1", "node2", "node3"];
const LONG = { LEADER__LEASE: "10s", LEADER__MARGIN: "3s", NODE__DEAD_AFTER: "10s" };

describe("nodes with the files of the second seed, and what it cannot do", () => {
  const suite = suiteScope();
  let cluster: PeerCluster;
  let claims: LeaderClaims;

  before(async () => {
    cluster = await PeerCluster.open(suite, {
      names: NAMES,
      file: ghotiFile(),
      // Nothing here waits for the end of a lease, and on a busy machine a node that lives may be silent for seconds.
      settings: { ...QUICK_PEERS, ...LONG, PEERS__FORGET_AFTER: "15s" },
      url: (_name, _seenBy, port) => `http://localhost:${port}`,
    });
    claims = new LeaderClaims(suite, () => cluster.nodes);
  });

  it("nodes that are started before the one that they join wait for it, and say so (S55)", async () => {
    const waiting = await Promise.all([cluster.start("node2"), cluster.start("node3")]);
    for (const [index, node] of waiting.entries()) {
      const name = NAMES[index + 1]!;
      const role = await roleOf(node);
      assert.deepEqual(
        [role?.role, role?.leader_id],
        ["STANDBY", null],
        "it founds nothing, and does not lead",
      );
      assert.deepEqual(await statuses(node), { [name]: "joining" });
      const { notes } = await node.client.cluster.info();
      assert.match(notes.join("\n"), /localhost:\d+ cannot be reached/);
      assert.equal((await node.call("/readyz")).status, 503);
    }
    await cluster.start("node1");
    await cluster.gathered();
    assert.equal((await cluster.leader()).name, "node1");
    for (const node of waiting) assert.equal((await node.call("/readyz")).status, 200);
  });

  it("a dead node is forgotten after a while, and joins again when it is back", async () => {
    const { name: leader, epoch } = await cluster.leader();
    const dead = NAMES.find((name) => name !== leader)!;
    await cluster.kill(dead);
    for (const node of cluster.nodes.values()) {
      await eventually(
        `${dead} to be forgotten`,
        async () => (await statuses(node))[dead] === undefined,
        60_000,
      );
    }
    assert.equal((await cluster.leader()).epoch, epoch);
    await cluster.restart(dead);
    assert.deepEqual(Object.keys(await statuses(cluster.node(leader))), NAMES);
    assert.equal((await cluster.leader()).epoch, epoch);
    claims.assertOneAtATime();
  });
});
