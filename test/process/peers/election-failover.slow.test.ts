/** How fast another node leads at the default times, and what becomes of the leader that stood still or died. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { roleOf } from "../../support/cluster.ts";
import { listedFile } from "../../support/host-cluster.ts";
import { LeaderClaims } from "../../support/leader-claims.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { PeerCluster } from "../../support/peer-cluster.ts";
import { allVote, failover, killLeader } from "../../support/peer-failover.ts";
import { eventually } from "../../support/wait.ts";

/** The default. */
const LEASE_MS = 5_000;

describe("a cluster at its default times", () => {
  const suite = suiteScope();
  let cluster: PeerCluster;
  let claims: LeaderClaims;

  before(async () => {
    cluster = await PeerCluster.start(suite, { file: listedFile });
    claims = new LeaderClaims(suite, () => cluster.nodes);
  });

  it("does not change its leader for one that is slow for less than its lease", async () => {
    const { name, node, epoch } = await cluster.leader();
    node.signal("SIGSTOP");
    // The seed elects anew after 2 s. Its own trust ends 3.5 s after the last renewal, which may be a second ago.
    await systemClock.sleep(2_100);
    node.signal("SIGCONT");
    await cluster.gathered();
    const now = await cluster.leader();
    assert.deepEqual([now.name, now.epoch], [name, epoch]);
    claims.assertOneAtATime();
  });

  it("has another leader when its leader stands still, and the old one follows when it goes on", async (t) => {
    const { name, node, next, epoch, tookMs } = await failover(cluster, (each) => each.signal("SIGSTOP"));
    t.diagnostic(`${next} leads ${tookMs.toFixed(0)} ms after SIGSTOP`);
    node.signal("SIGCONT");
    const role = await eventually(`${name} to follow`, async () => {
      const role = await roleOf(node);
      return role?.leader_id === next ? role : null;
    });
    assert.deepEqual([role.role, role.leader_epoch], ["STANDBY", epoch]);
    await cluster.gathered();
    assert.equal((await cluster.leader()).epoch, epoch, "it does not take its place back");
    claims.assertOneAtATime();
  });

  it("has another leader before the lease of one that was killed has ended, and the old one follows when it is back", async (t) => {
    await allVote(cluster);
    const dead = await killLeader(cluster);
    t.diagnostic(`led again after ${dead.tookMs.toFixed(0)} ms`);
    assert.ok(dead.tookMs < LEASE_MS, `${dead.tookMs} ms`);
    await cluster.restart(dead.name);
    const now = await cluster.leader();
    assert.deepEqual([now.name, now.epoch], [dead.next, dead.epoch], "who comes back does not take over");
    claims.assertOneAtATime();
  });

  it("has another leader at once when its leader is stopped in good order", async (t) => {
    const { name, next, tookMs, node } = await failover(cluster, (each) => each.signal("SIGTERM"));
    t.diagnostic(`${next} leads ${tookMs.toFixed(0)} ms after SIGTERM`);
    assert.ok(tookMs < LEASE_MS, `${tookMs} ms`);
    assert.equal((await node.exited).code, 0);
    cluster.nodes.delete(name);
    claims.assertOneAtATime();
  });
});
