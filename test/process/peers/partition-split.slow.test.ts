/**
 * Networks that fall apart, with a host for each node (S43, S44, S45). The second seed has a leader on every side then, and
 * keeps them after the network has healed.
 */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { roleOf } from "../../support/cluster.ts";
import { startOnHosts, type HostCluster } from "../../support/host-cluster.ts";
import { LeaderClaims } from "../../support/leader-claims.ts";
import { whyNoHosts } from "../../support/net-hosts.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { QUICK_PEERS } from "../../support/peer-cluster.ts";
import type { NodeProcess } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";

/** A lease of 1.5 s, and a busy machine. */
const STEPS_DOWN_MS = 4_000;
const HEALS_MS = 5_000;
const EVERY_HOUR = { task: "tick", cron: "0 * * * *" } as const;

describe("a cluster whose network falls apart", { skip: whyNoHosts() }, () => {
  const suite = suiteScope();
  let hosts: HostCluster;
  let claims: LeaderClaims;

  before(async () => {
    hosts = await startOnHosts(suite, { settings: QUICK_PEERS });
    claims = new LeaderClaims(suite, () => hosts.cluster.nodes);
  });

  it("keeps its leader and its epoch when a follower was cut off and returns", async (t) => {
    const { net, cluster } = hosts;
    const { name, epoch } = await cluster.leader();
    const lost = cluster.names.find((each) => each !== name)!;
    net.split(
      [lost],
      cluster.names.filter((each) => each !== lost),
    );
    await eventually("the lost one to miss its leader", () => hasNoLeader(cluster.node(lost)), STEPS_DOWN_MS);
    // Long enough for it to have stood several times.
    await systemClock.sleep(1_000);
    net.heal();
    const healedAt = systemClock.monotonic();
    await cluster.gathered(HEALS_MS);
    t.diagnostic(`together again after ${(systemClock.monotonic() - healedAt).toFixed(0)} ms`);
    assert.deepEqual(await epochs(cluster.nodes.values()), [epoch, epoch, epoch]);
    claims.assertOneAtATime();
  });

  it("has its leader step down when it is in the smaller part, and another lead in the larger one", async (t) => {
    const { net, cluster } = hosts;
    const { name, node, epoch } = await cluster.leader();
    const majority = cluster.names.filter((each) => each !== name);
    const cutAt = systemClock.monotonic();
    net.split([name], majority);
    await eventually("the old leader to step down", () => leadsNot(node), STEPS_DOWN_MS);
    t.diagnostic(`stepped down after ${(systemClock.monotonic() - cutAt).toFixed(0)} ms`);
    const next = await cluster.leader(STEPS_DOWN_MS);
    t.diagnostic(`${next.name} leads after ${(systemClock.monotonic() - cutAt).toFixed(0)} ms`);
    assert.ok(majority.includes(next.name));
    assert.equal(next.epoch, epoch + 1, "an epoch is used up only by somebody who wins it");
    // Whatever only a leader may do is refused on the small side, and works on the other.
    const refused = await node.call("/schedules/there", put(EVERY_HOUR));
    assert.ok([409, 503].includes(refused.status), `${refused.status}: ${JSON.stringify(refused.body)}`);
    assert.match((refused.body as { error: string }).error, /^(NOT_LEADER|NO_LEADER)$/);
    const accepted = await next.node.call("/schedules/here", put(EVERY_HOUR));
    assert.equal(accepted.status, 201, JSON.stringify(accepted.body));

    net.heal();
    const healedAt = systemClock.monotonic();
    await cluster.gathered(HEALS_MS);
    t.diagnostic(`together again after ${(systemClock.monotonic() - healedAt).toFixed(0)} ms`);
    await systemClock.sleep(1_000);
    assert.deepEqual(await epochs(cluster.nodes.values()), [next.epoch, next.epoch, next.epoch]);
    const schedules = await eventually("the old leader to hear of the schedule", async () => {
      const { schedules } = await node.client.schedules();
      return schedules.some((schedule) => schedule.name === "here") ? schedules : null;
    });
    assert.ok(!schedules.some((schedule) => schedule.name === "there"));
    claims.assertOneAtATime();
  });

  it("has no leader when every node is alone, serves reads and takes jobs, and one leads when it heals", async (t) => {
    const { net, cluster } = hosts;
    const { epoch } = await cluster.leader();
    const own = new Map<string, string>();
    for (const name of cluster.names) own.set(name, await cluster.jobAt(name, { task: "tick" }));
    net.split(...cluster.names.map((name) => [name]));
    const nodes = [...cluster.nodes.values()];
    await eventually("everybody to be without a leader", () => allOf(nodes, hasNoLeader), STEPS_DOWN_MS);
    const until = systemClock.monotonic() + 1_500;
    while (systemClock.monotonic() < until) {
      assert.ok(await allOf(nodes, leadsNot), "somebody leads without a majority");
      await systemClock.sleep(50);
    }
    for (const [name, node] of cluster.nodes) {
      assert.equal((await node.client.job(own.get(name)!)).job_id, own.get(name));
      const { job_id } = await node.client.submit({ task: "work", payload: { ms: 0 } });
      assert.ok(job_id.startsWith(`${name}-`), "a job goes to whom it can reach");
      await node.client.wait(job_id, { timeoutMs: 5_000 });
    }
    net.heal();
    const healedAt = systemClock.monotonic();
    const next = await cluster.leader(HEALS_MS);
    t.diagnostic(`${next.name} leads ${(systemClock.monotonic() - healedAt).toFixed(0)} ms after the heal`);
    assert.ok(next.epoch > epoch);
    await cluster.gathered(HEALS_MS);
    claims.assertOneAtATime();
  });
});

function put(schedule: object): RequestInit {
  return {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(schedule),
  };
}

async function epochs(nodes: Iterable<NodeProcess>): Promise<(number | null)[]> {
  return Promise.all([...nodes].map(async (node) => (await roleOf(node))?.leader_epoch ?? null));
}

async function allOf(nodes: readonly NodeProcess[], holds: (node: NodeProcess) => Promise<boolean>) {
  const all = await Promise.all(nodes.map(holds));
  return all.every(Boolean);
}

async function leadsNot(node: NodeProcess): Promise<boolean> {
  const role = await roleOf(node);
  return role !== null && role.role !== "LEADER";
}

async function hasNoLeader(node: NodeProcess): Promise<boolean> {
  const role = await roleOf(node);
  return role !== null && role.leader_id === null;
}
