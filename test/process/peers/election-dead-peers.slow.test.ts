/**
 * Dead nodes that stand above everybody in the list (S54). The second seed asks them one after the other and waits for each:
 * five of them cost a quarter of a minute there.
 */

import assert from "node:assert/strict";
import { it } from "node:test";
import { hangingAddress } from "../../support/hanging-address.ts";
import { listedFile } from "../../support/host-cluster.ts";
import { PeerCluster } from "../../support/peer-cluster.ts";
import { allVote, killLeader } from "../../support/peer-failover.ts";

/** Thirteen with the dead: seven of the living are a majority, so one of them may die. */
const LIVING = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
const REFUSING = ["z1", "z2"];
const SILENT = ["z3", "z4", "z5"];
const KILLS = 2;

it("five dead nodes with higher names do not hold up an election", async (t) => {
  const silent = new Map<string, string>();
  for (const name of SILENT) silent.set(name, await hangingAddress(t));
  const cluster = await PeerCluster.open(t, {
    names: [...LIVING, ...REFUSING, ...SILENT],
    file: listedFile,
    settings: { LOG__LEVEL: "info" },
    url: (name, _seenBy, port) => silent.get(name) ?? `http://127.0.0.1:${port}`,
  });
  // Two at a time: a start takes its time from a processor, and all at once each would look hung.
  for (let n = 0; n < LIVING.length; n += 2)
    await Promise.all(LIVING.slice(n, n + 2).map((name) => cluster.start(name)));
  await cluster.gathered();
  await allVote(cluster);
  const tookMs: number[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const dead = await killLeader(cluster, 30_000); // all of those that are left have to vote, on a busy machine
    tookMs.push(dead.tookMs);
    await cluster.restart(dead.name);
  }
  t.diagnostic(`led again after ${tookMs.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  assert.ok(Math.min(...tookMs) < 2_000, `${tookMs.join(", ")} ms`);
});
