/** Nodes on a database and a Redis that fails. */

import assert from "node:assert/strict";
import { QUICK, TestCluster } from "./cluster.ts";
import type { Scope } from "./node-cleanup.ts";
import { eventually } from "./wait.ts";

export function openCluster(t: Scope): Promise<TestCluster> {
  const settings = { ...QUICK, DISPATCH__TIMEOUT: "1500ms" };
  return TestCluster.open(t, { settings, redis: {} });
}

/** The next term, and that jobs submitted now are run under it. */
export async function nextLeader(cluster: TestCluster, epoch: number): Promise<void> {
  const next = await eventually("a new leader", async () => {
    const found = await cluster.leader();
    return found.epoch > epoch ? found : null;
  });
  const { job_id } = await next.node.client.submit({ task: "work", payload: { ms: 0 } });
  const { job } = await next.node.client.wait(job_id, { timeoutMs: 30_000 });
  assert.equal(job.status, "completed");
}
