/** Two real controllers on one database. */

import assert from "node:assert/strict";
import { LONG_LEASES, QUICK, TestCluster } from "./cluster.ts";
import type { Scope } from "./node-cleanup.ts";
import type { NodeProcess } from "./process-node.ts";

/** Controllers run no jobs themselves: what is done here, agents do. */
export async function openControllers(
  t: Scope,
  own: Readonly<Record<string, string>> = {},
): Promise<TestCluster> {
  const settings = { ...QUICK, ...LONG_LEASES, WORKER__CONCURRENCY: "0", AGENTS__LEASE: "10s", ...own };
  const cluster = await TestCluster.open(t, { settings });
  await cluster.startAll("ada", "bob");
  return cluster;
}

export function urlsOf(cluster: TestCluster): string[] {
  return [...cluster.nodes.values()].map(({ url }) => url);
}

export async function submitTo(node: NodeProcess, jobs: readonly object[]): Promise<string[]> {
  const { status, body } = await node.post("/v1/jobs", jobs);
  assert.equal(status, 200, JSON.stringify(body));
  return (body as { job_id: string }[]).map(({ job_id }) => job_id);
}

export async function killLeader(cluster: TestCluster): Promise<NodeProcess> {
  const { name } = await cluster.leader();
  await cluster.kill(name);
  return (await cluster.leader()).node;
}
