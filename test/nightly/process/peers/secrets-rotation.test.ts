/** A secret that is changed node by node, three times round as the documentation says, while callers go on. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { Callers } from "../../../support/cluster.ts";
import { listedFile, TEST_SECRET } from "../../../support/host-cluster.ts";
import { PeerCluster, QUICK_PEERS } from "../../../support/peer-cluster.ts";

const NEXT_SECRET = "hV3nC8xK1qW6zR9mT4bJ7pL2sD5fG0yU";
const ROUNDS = [`${TEST_SECRET},${NEXT_SECRET}`, `${NEXT_SECRET},${TEST_SECRET}`, NEXT_SECRET];

it("the secret is changed without a submit that is lost and without a node that is refused", async (t) => {
  const cluster = await PeerCluster.start(t, {
    file: listedFile,
    settings: { ...QUICK_PEERS, SECRET: TEST_SECRET, LOG__LEVEL: "warn" },
  });
  const callers = Callers.start(t, cluster, { count: 2, payload: () => ({ ms: 0 }) });
  for (const SECRET of ROUNDS) {
    for (const name of cluster.names) {
      await cluster.terminate(name);
      // Everybody sees everybody again, and one leads: nobody's calls are refused.
      await cluster.restart(name, { settings: { SECRET } });
      for (const node of cluster.nodes.values()) {
        assert.doesNotMatch(node.stdout, /does not take the calls of this node/);
      }
    }
  }
  await callers.stop();
  for (const node of cluster.nodes.values()) await node.idle();
  const jobs = await cluster.everyJob({ task: "work" });
  const kept = new Map(jobs.map((job) => [job.job_id, job.status]));
  for (const id of callers.acknowledged) assert.equal(kept.get(id), "completed", id);
  assert.ok(callers.acknowledged.size > 50, `${callers.acknowledged.size} submits`);
  t.diagnostic(
    `${callers.acknowledged.size} submits, ${callers.refusals} of them tried again at another node`,
  );
});
