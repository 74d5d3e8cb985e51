/** Three nodes on a database and a Redis with callers that never pause, and the audit behind whatever happens to them. */

import assert from "node:assert/strict";
import { Callers, QUICK, TestCluster } from "./cluster.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { eventually } from "./wait.ts";

const NAMES = ["ada", "bob", "cyd"];

export function openCluster(t: Scope): Promise<TestCluster> {
  const settings = { ...QUICK, DISPATCH__TIMEOUT: "1500ms" };
  return TestCluster.open(t, { settings, redis: {} });
}

export async function underLoad(t: Scope) {
  const cluster = await openCluster(t);
  await cluster.startAll(...NAMES);
  const callers = new Callers(
    () => [...cluster.nodes.values()],
    () => ({ task: "work", payload: { ms: 5 } }),
  );
  atEnd(t, () => callers.abandon());
  callers.start(6, 20);
  await more(callers);
  return { cluster, callers };
}

/** The load goes on, and is served. */
export async function more(callers: Callers): Promise<void> {
  const before = callers.acknowledged.size;
  await eventually("more work to be taken", () => callers.acknowledged.size > before + 40);
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
