/** Nodes on a database and a Redis that fails. */

import { QUICK, TestCluster } from "./cluster.ts";
import type { Scope } from "./node-cleanup.ts";

export function openCluster(t: Scope, mode: "push" | "pull" = "push"): Promise<TestCluster> {
  const settings = { ...QUICK, DISPATCH__MODE: mode, DISPATCH__TIMEOUT: "1500ms" };
  return TestCluster.open(t, { settings, redis: {} });
}

/** The next term, and that jobs submitted now are run under it. */
export async function nextLeader(cluster: TestCluster, epoch: number): Promise<void> {
  const next = await cluster.leaderAfter(epoch);
  await next.node.does({ task: "work", payload: { ms: 0 } });
}
