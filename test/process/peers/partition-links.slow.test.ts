/** Single connections that fail, in one direction or again and again, with a host for each node (S48). */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { roleOf } from "../../support/cluster.ts";
import { startOnHosts, type HostCluster } from "../../support/host-cluster.ts";
import { LeaderClaims } from "../../support/leader-claims.ts";
import { whyNoHosts } from "../../support/net-hosts.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { QUICK_PEERS } from "../../support/peer-cluster.ts";
import { eventually } from "../../support/wait.ts";

/** A lease of 1.5 s, and a busy machine. */
const STEPS_DOWN_MS = 4_000;
const LEASE_MS = 1_500;

describe("a cluster with bad connections", { skip: whyNoHosts() }, () => {
  const suite = suiteScope();
  let hosts: HostCluster;
  let claims: LeaderClaims;

  before(async () => {
    hosts = await startOnHosts(suite, { settings: QUICK_PEERS });
    claims = new LeaderClaims(suite, () => hosts.cluster.nodes);
  });

  it("keeps its leader when one follower and the leader do not reach each other", async () => {
    const { net, cluster } = hosts;
    const { name, epoch } = await cluster.leader();
    const [lonely] = cluster.names.filter((each) => each !== name);
    net.split([name], [lonely!]);
    const until = systemClock.monotonic() + 2 * LEASE_MS;
    while (systemClock.monotonic() < until) {
      const { name: leader, epoch: now } = await cluster.leader();
      assert.deepEqual([leader, now], [name, epoch]);
      await systemClock.sleep(50);
    }
    const role = await roleOf(cluster.node(lonely!));
    assert.equal(role?.leader_id, name, "it hears of its leader through the third");
    net.heal();
    await cluster.gathered();
    assert.equal((await cluster.leader()).epoch, epoch);
    claims.assertOneAtATime();
  });

  it("keeps its leader when one follower is heard by nobody and hears everybody", async () => {
    const { net, cluster } = hosts;
    const { name, epoch } = await cluster.leader();
    const [mute] = cluster.names.filter((each) => each !== name);
    for (const other of cluster.names) if (other !== mute) net.lose(mute!, other);
    await systemClock.sleep(2 * LEASE_MS);
    const now = await cluster.leader();
    assert.deepEqual([now.name, now.epoch], [name, epoch]);
    net.heal();
    await cluster.gathered();
    assert.equal((await cluster.leader()).epoch, epoch);
    claims.assertOneAtATime();
  });

  for (const [what, lose] of [
    ["is heard by nobody", (leader: string, other: string) => hosts.net.lose(leader, other)],
    ["hears nobody", (leader: string, other: string) => hosts.net.lose(other, leader)],
  ] as const) {
    it(`has another leader when its leader ${what}`, async (t) => {
      const { net, cluster } = hosts;
      const { name, node, epoch } = await cluster.leader();
      const lostAt = systemClock.monotonic();
      for (const other of cluster.names) if (other !== name) lose(name, other);
      const next = await eventually(
        "another leader",
        async () => {
          const { name: leader, epoch: now } = await cluster.leader();
          return leader === name ? null : { leader, epoch: now };
        },
        2 * STEPS_DOWN_MS,
      );
      t.diagnostic(`${next.leader} leads after ${(systemClock.monotonic() - lostAt).toFixed(0)} ms`);
      assert.ok(next.epoch > epoch);
      assert.notEqual((await roleOf(node))?.role, "LEADER");
      net.heal();
      await cluster.gathered();
      assert.equal((await cluster.leader()).epoch, next.epoch, "the old one comes back as a follower");
      claims.assertOneAtATime();
    });
  }

  it("changes its leader at most twice while cables are out for half of every second", async (t) => {
    const { net, cluster } = hosts;
    const { name, epoch } = await cluster.leader();
    const [flapping] = cluster.names.filter((each) => each !== name);
    for (const cable of [flapping!, name]) {
      for (let n = 0; n < 4; n++) {
        net.unplug(cable);
        await systemClock.sleep(500);
        net.plug(cable);
        await systemClock.sleep(500);
      }
    }
    await cluster.gathered();
    const now = await cluster.leader();
    const changes = [...claims.terms.keys()].filter((each) => each > epoch).length;
    t.diagnostic(`${changes} changes in 8 s, ${name} under ${epoch}, then ${now.name} under ${now.epoch}`);
    assert.ok(changes <= 2, `${changes} changes`);
    claims.assertOneAtATime();
  });
});
