/**
 * What the second seed's document admits: a join that fails for good, an order in which nodes must be started, dead nodes that
 * stay in the list. Here each of them ends well.
 */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { roleOf } from "../../support/cluster.ts";
import { askManager } from "../../support/join-server-calls.ts";
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
  const manager = (name: string): string => cluster.plan(name).manager(name);

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

  it("a node with another password is refused, says why, and does no harm", async () => {
    const intruder = await PeerCluster.open(suite, {
      names: ["node1", "node4"],
      file: (plan) => {
        const own = ghotiFile({ user: "cluster_user", pass: "another_pass" })(plan);
        const wanted = plan.manager("node1");
        return { ...own, text: own.text.replace(`join: "${wanted}"`, `join: "${manager("node1")}"`) };
      },
      settings: QUICK_PEERS,
    });
    const node = await intruder.start("node4");
    const notes = await eventually("it to say why", async () => {
      const { notes } = await node.client.cluster.info();
      return notes.find((note) => /does not let this node join/.test(note)) ?? null;
    });
    assert.match(notes, /secret|password|sign/i);
    const join = { id: "node4", addr: intruder.plan("node4").manager("node4") };
    const credentials = { user: "cluster_user", pass: "another_pass" };
    assert.equal((await askManager(manager("node1"), "/join", { credentials, body: join })).status, 400);
    assert.equal((await roleOf(node))?.role, "STANDBY");
    await intruder.terminate("node4");
    assert.deepEqual(Object.keys(await statuses(cluster.node("node1"))), NAMES);
    await cluster.gathered();
  });

  it("all of them, killed at once, come back in any order with their jobs and without a second cluster", async (t) => {
    const kept: string[] = [];
    for (const name of NAMES) {
      const id = await cluster.jobAt(name, { task: "work", payload: { ms: 0 } });
      await cluster.node(name).client.wait(id, { timeoutMs: 10_000 });
      kept.push(id);
    }
    const { epoch } = await cluster.leader();
    const nodes = [...cluster.nodes.values()];
    for (const node of nodes) node.signal("SIGKILL");
    await Promise.all(nodes.map((node) => node.exited));
    cluster.nodes.clear();
    // The one that began the cluster last: in the seed the others give up meanwhile.
    await Promise.all([cluster.start("node3"), cluster.start("node2")]);
    const next = await cluster.leader();
    t.diagnostic(`${next.name} leads under ${next.epoch} before node1 is there`);
    assert.ok(next.epoch > epoch, "epochs are never used again");
    await cluster.restart("node1");
    const now = await cluster.leader();
    assert.deepEqual([now.name, now.epoch], [next.name, next.epoch]);
    for (const id of kept) assert.equal((await cluster.node("node1").client.job(id)).status, "completed");
    claims.assertOneAtATime();
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
