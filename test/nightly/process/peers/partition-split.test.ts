/**
 * A network that falls apart, with a host for each node (S44). Without a majority there would be a leader on every side, also
 * after the network has healed. Other ways to fall apart (S43, S45): test/unit/peers/bully/election.
 */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { roleOf } from "../../../support/cluster.ts";
import { startOnHosts, type HostCluster } from "../../../support/host-cluster.ts";
import { LeaderClaims } from "../../../support/leader-claims.ts";
import { whyNoHosts } from "../../../support/net-hosts.ts";
import { suiteScope } from "../../../support/node-cleanup.ts";
import { QUICK_PEERS } from "../../../support/peer-cluster.ts";
import type { NodeProcess } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";

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

async function leadsNot(node: NodeProcess): Promise<boolean> {
  const role = await roleOf(node);
  return role !== null && role.role !== "LEADER";
}
