/** 9.2: only one node leads at a time. 9.3: leader_epoch increments with every acquisition. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../src/platform/clock.ts";
import { BRISK_LEASE_MS, type ConformanceCluster, type Led } from "../support/conformance-cluster.ts";
import { ConformanceWriters } from "../support/conformance-writers.ts";
import { LeaderClaims } from "../support/leader-claims.ts";
import { eventually } from "../support/wait.ts";
import type { Suite } from "./suite.ts";

/** What happens to a leader, until another one leads and the first stands by. */
type Fault = (cluster: ConformanceCluster, leader: Led) => Promise<Led>;

const killed: Fault = async (cluster, { name, epoch }) => {
  await cluster.end(name, "SIGKILL");
  const next = await cluster.successor(epoch);
  await cluster.start(name);
  return next;
};

const stopped: Fault = async (cluster, { name, epoch }) => {
  await cluster.end(name, "SIGTERM");
  const next = await cluster.successor(epoch);
  await cluster.start(name);
  return next;
};

const paused: Fault = async (cluster, { node, epoch }) => {
  node.signal("SIGSTOP");
  const next = await cluster.successor(epoch);
  // Both are to have been there for a while when the first goes on.
  await systemClock.sleep(BRISK_LEASE_MS / 4);
  node.signal("SIGCONT");
  return next;
};

/** Nobody is left who could remember: the epoch is. */
const allKilled: Fault = async (cluster, { epoch }) => {
  const names = [...cluster.nodes.keys()];
  await Promise.all(names.map((name) => cluster.end(name, "SIGKILL")));
  await Promise.all(names.map((name) => cluster.start(name)));
  return cluster.successor(epoch);
};

export function leadership({ open, faults }: Suite): void {
  it("9.2 only one leads at a time, through kills and pauses", async (t) => {
    const cluster = await open(t, "brisk");
    const claims = new LeaderClaims(t, () => cluster.nodes);
    const writers = new ConformanceWriters(t, () => cluster.nodes);
    const plan = faults === "once" ? [paused] : [paused, killed, paused, stopped, paused, killed];
    for (const fault of plan) {
      await fault(cluster, await writtenUnder(cluster, writers));
      claims.assertOneAtATime();
    }
    await writtenUnder(cluster, writers);
    await writers.stop();
    claims.assertOneAtATime();
    writers.assertOneWriterPerEpoch();
    // Stores that are apart cannot compare each other's epochs.
    if (cluster.store === "shared") writers.assertEpochsNeverFall();
    const wrote = new Set(writers.accepted.map(({ epoch }) => epoch));
    t.diagnostic(
      `${claims.terms.size} terms seen, ${writers.accepted.length} writes under ${wrote.size} epochs, ${writers.refusals} refused`,
    );
    assert.ok(claims.terms.size > plan.length, "every fault brought another leader, and it was seen");
    assert.ok(wrote.size > plan.length, "and wrote");
    assert.ok(writers.refusals > 0, "and those who did not lead were asked as well");
  });

  it("9.3 leader_epoch increments with every acquisition, whatever ended the term before", async (t) => {
    const cluster = await open(t, "brisk");
    const epochs = [await assertToldEverywhere(cluster)];
    const plan = faults === "once" ? [killed] : [killed, stopped, paused, allKilled, killed];
    for (const fault of plan) {
      const { leader } = await cluster.settled();
      const next = await fault(cluster, leader);
      assert.ok(next.epoch > leader.epoch, `${next.epoch} after ${leader.epoch}`);
      epochs.push(await assertToldEverywhere(cluster));
    }
    t.diagnostic(`epochs ${epochs.join(", ")}`);
    assert.ok(epochs[0]! >= 1 && epochs.every(Number.isSafeInteger));
    epochs.slice(1).forEach((epoch, at) => assert.ok(epoch > epochs[at]!, epochs.join(", ")));
  });
}

/** Whoever leads, once it has been written under its term: a fault that comes before that proves little. */
async function writtenUnder(cluster: ConformanceCluster, writers: ConformanceWriters): Promise<Led> {
  return eventually(
    "a write under the leader's epoch",
    async () => {
      const { leader } = await cluster.settled();
      return writers.accepted.some(({ epoch }) => epoch === leader.epoch) ? leader : null;
    },
    30_000,
  );
}

/** The same number in the roles of all, in the headers, and in what the leader answers; it does not change within a term. */
async function assertToldEverywhere(cluster: ConformanceCluster): Promise<number> {
  const { leader, standby } = await cluster.settled();
  const { name, epoch } = leader;
  for (let turn = 0; turn < 2; turn++) {
    const { status, body, headers } = await cluster.at(name).post("/v1/jobs", { task: "work" });
    assert.deepEqual([status, body.leader_epoch], [200, epoch], JSON.stringify(body));
    assert.equal(headers.get("x-baton-leader-epoch"), String(epoch));
  }
  const refused = await cluster.at(standby).post("/v1/jobs", { task: "work" });
  assert.deepEqual([refused.status, refused.body.leader_epoch], [409, epoch]);
  return epoch;
}
