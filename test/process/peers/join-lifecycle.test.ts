/** Nodes that join through join servers, configured by a foreign `cluster:` section: from the first node to the removal of one. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { roleOf } from "../../support/cluster.ts";
import { askManager, heartbeatOf } from "../../support/join-server-calls.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { clusterSectionFile, PeerCluster, statuses } from "../../support/peer-cluster.ts";
import { killLeader } from "../../support/peer-failover.ts";
import { eventually } from "../../support/wait.ts";

const NAMES = ["node1", "node2", "node3"];

describe("three nodes that join through a join server", () => {
  const suite = suiteScope();
  let cluster: PeerCluster;
  /** Of the present leader. An attempt that a busy machine does not end in time uses an epoch up too. */
  let epoch: number;
  const manager = (name: string): string => cluster.plan(name).manager(name);
  const members = async (name: string): Promise<string[]> => {
    const { nodes } = await cluster.node(name).client.cluster.nodes();
    return nodes.map((node) => node.name);
  };

  before(async () => {
    cluster = await PeerCluster.open(suite, {
      names: NAMES,
      file: clusterSectionFile(),
      // A candidate has to wait for a higher name that a busy machine keeps from answering.
      settings: { DRAIN__TIMEOUT: "60s", LEADER__LEASE: "8s", PEERS__ELECTION_TIMEOUT: "1200ms" },
      url: (_name, _seenBy, port) => `http://localhost:${port}`,
    });
  });

  it("the first, with nothing to join, leads a cluster of its own", async () => {
    await cluster.start("node1");
    const leader = await cluster.leader();
    epoch = leader.epoch;
    assert.equal(leader.name, "node1");
    assert.deepEqual(await members("node1"), ["node1"]);
  });

  it("the others join as followers, and higher names do not push the leader out", async () => {
    for (const name of ["node2", "node3"]) {
      await cluster.start(name);
      await cluster.gathered();
      const role = await roleOf(cluster.node(name));
      assert.deepEqual([role?.role, role?.leader_id, role?.leader_epoch], ["STANDBY", "node1", epoch]);
    }
    for (const name of NAMES) {
      assert.deepEqual(await members(name), NAMES, `as ${name} sees it`);
      assert.deepEqual(await statuses(cluster.node(name)), {
        node1: "active",
        node2: "active",
        node3: "active",
      });
    }
    assert.equal((await cluster.leader()).epoch, epoch);
  });

  it("a join with a wrong address does not take a living node away from the others", async () => {
    const until = systemClock.monotonic() + 2_000;
    while (systemClock.monotonic() < until) {
      for (const id of ["node1", "node2"]) {
        for (const through of NAMES)
          await askManager(manager(through), "/join", { body: { id, addr: "localhost:9" } });
      }
      const { body } = await askManager(manager("node3"), "/remove", { body: { id: "nobody" } });
      assert.equal(body["leader_url"], cluster.node("node1").url);
      for (const name of NAMES) {
        const seen = await statuses(cluster.node(name));
        assert.deepEqual(Object.values(seen), ["active", "active", "active"], `as ${name} sees them`);
      }
      const leader = await cluster.leader();
      assert.deepEqual([leader.name, leader.epoch], ["node1", epoch]);
    }
  });

  it("a leader that crashes is followed by the highest of those that are left, and comes back as a follower", async (t) => {
    const { job_id } = await cluster.node("node1").client.submit({ task: "work", payload: { ms: 0 } });
    const kept = await cluster.jobAt("node1", { task: "work", payload: { ms: 0 } });
    await cluster.node("node1").client.wait(kept, { timeoutMs: 30_000 });
    const dead = await killLeader(cluster, 30_000);
    t.diagnostic(`${dead.next} leads after ${dead.tookMs.toFixed(0)} ms`);
    assert.deepEqual([dead.name, dead.next, dead.epoch > epoch], ["node1", "node3", true]);
    ({ epoch } = dead);
    await eventually(
      "node2 to follow",
      async () => (await roleOf(cluster.node("node2")))?.leader_id === "node3",
    );
    // With its file as it was, which has nothing to join: it must not found a second cluster.
    await cluster.restart("node1");
    const now = await cluster.leader();
    assert.deepEqual([now.name, now.epoch], ["node3", epoch]);
    assert.deepEqual(await members("node1"), NAMES);
    // And with what it had.
    assert.equal((await cluster.node("node2").client.job(kept)).status, "completed");
    assert.equal((await cluster.node("node2").client.job(job_id)).job_id, job_id);
  });

  it("a leader that is stopped says 503 while it finishes its work, and another leads meanwhile", async () => {
    const held = await cluster.jobAt("node3", { task: "hold" });
    await cluster.node("node3").processing(held);
    const leaving = cluster.node("node3");
    leaving.signal("SIGTERM");
    await eventually("a heartbeat of 503", async () => (await heartbeatOf(manager("node3"))) === 503);
    cluster.nodes.delete("node3");
    const next = await cluster.leader();
    assert.deepEqual([next.name, next.epoch > epoch], ["node2", true]);
    ({ epoch } = next);
    await leaving.client.cancel(held);
    assert.equal((await leaving.exited).code, 0, leaving.stderr);
    assert.equal(await heartbeatOf(manager("node3")), null);
    await cluster.restart("node3");
    assert.equal((await cluster.leader()).epoch, epoch);
  });

  it("a node that the leader removes is told, is ignored, and may come back when it is started again", async () => {
    const answer = await askManager(manager("node2"), "/remove", { body: { id: "node3" } });
    assert.deepEqual([answer.status, answer.text], [200, ""]);
    assert.equal((await askManager(manager("node2"), "/remove", { body: { id: "nobody" } })).status, 200);
    for (const name of ["node1", "node2"]) {
      await eventually(`${name} to forget node3`, async () =>
        (await members(name)).includes("node3") ? null : true,
      );
    }
    const removed = cluster.node("node3");
    await eventually("node3 to know", async () =>
      removed.stdout.includes("this node was removed from the cluster"),
    );
    await askManager(manager("node3"), "/election", { body: { id: "node1" } });
    assert.notEqual((await roleOf(removed))?.role, "LEADER", "it does not lead, nor found a cluster");
    await cluster.terminate("node3");
    await cluster.gathered();
    await cluster.restart("node3");
    assert.deepEqual(await members("node1"), NAMES);
    const now = await cluster.leader();
    assert.deepEqual([now.name, now.epoch], ["node2", epoch]);
  });
});
