/** Voters that have lost their disk, and clusters that have lost their majority (S51, S53, S56). */

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { roleOf } from "../../support/cluster.ts";
import { listedFile } from "../../support/host-cluster.ts";
import { LeaderClaims } from "../../support/leader-claims.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import { killLeader } from "../../support/peer-failover.ts";
import type { NodeProcess } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";

const LEASE_MS = 1_500;
const NOT_VOTING = /does not vote yet/;

describe("a cluster whose nodes lose their disks", () => {
  const suite = suiteScope();
  let cluster: PeerCluster;
  let claims: LeaderClaims;

  before(async () => {
    cluster = await PeerCluster.start(suite, { file: listedFile, settings: QUICK_PEERS });
    claims = new LeaderClaims(suite, () => cluster.nodes);
  });

  it("keeps its leader when its highest node comes back with nothing, which votes again after a while", async () => {
    const dead = await killLeader(cluster);
    assert.deepEqual([dead.name, dead.next], ["node-c", "node-b"]);
    await rm(cluster.data("node-c"), { recursive: true });
    await cluster.restart("node-c");
    await eventually("it to vote", async () =>
      NOT_VOTING.test(await notesOf(cluster.node("node-c"))) ? null : true,
    );
    const now = await cluster.leader();
    assert.deepEqual([now.name, now.epoch], [dead.next, dead.epoch]);
    claims.assertOneAtATime();
  });

  it("has no leader by the vote of a node that may have forgotten one", async () => {
    const { name, epoch } = await cluster.leader();
    const [lost] = cluster.names.filter((each) => each !== name);
    await cluster.kill(lost!);
    await rm(cluster.data(lost!), { recursive: true });
    await cluster.kill(name);
    const forgetful = await cluster.start(lost!);
    const nodes = [...cluster.nodes.values()];
    assert.equal(nodes.length, 2, "a majority is there, and one of them remembers");
    const until = systemClock.monotonic() + 2 * LEASE_MS;
    while (systemClock.monotonic() < until) {
      for (const node of nodes) assert.equal((await roleOf(node, 2_000))?.role, "STANDBY");
      await systemClock.sleep(50);
    }
    assert.match(await notesOf(forgetful), NOT_VOTING);
    await cluster.restart(name);
    assert.ok((await cluster.leader()).epoch > epoch);
    await eventually("it to vote", async () => (NOT_VOTING.test(await notesOf(forgetful)) ? null : true));
    claims.assertOneAtATime();
  });
});

it("of two nodes the one that is left does not lead, takes jobs, and says what is missing", async (t) => {
  const cluster = await PeerCluster.start(t, {
    names: ["one", "two"],
    file: listedFile,
    settings: QUICK_PEERS,
  });
  await cluster.kill("two");
  const one = cluster.node("one");
  await eventually("it to see that it is alone", async () =>
    /nobody can lead: 1 of 2 voters/.test(await notesOf(one)) ? true : null,
  );
  await systemClock.sleep(LEASE_MS);
  const role = await roleOf(one, 2_000);
  assert.deepEqual([role?.role, role?.leader_id], ["STANDBY", null]);
  assert.match(await notesOf(one), /with two nodes the loss of either leaves no majority/);
  const { job_id } = await one.client.submit({ task: "work", payload: { ms: 0 } });
  await one.client.wait(job_id, { timeoutMs: 10_000 });

  // For those who would rather have two leaders than none: an explicit choice, which is told for as long as it is made.
  await cluster.terminate("one");
  const alone = await cluster.start("one", { settings: { CLUSTER__QUORUM: "none" } });
  assert.equal((await cluster.leader()).name, "one");
  assert.match(await notesOf(alone), /split brain possible/);
  assert.match(alone.stdout, /split brain possible/);
  assert.equal((await alone.client.job(job_id)).status, "completed");
});

async function notesOf(node: NodeProcess): Promise<string> {
  const { notes } = await node.client.cluster.info();
  return notes.join("\n");
}
