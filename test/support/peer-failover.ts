/** How long a cluster of peers is without a leader, as its own nodes tell. */

import { roleOf } from "./cluster.ts";
import type { PeerCluster } from "./peer-cluster.ts";
import type { NodeProcess } from "./process-node.ts";
import { eventually } from "./wait.ts";

export interface Failover {
  readonly name: string;
  readonly node: NodeProcess;
  readonly next: string;
  readonly epoch: number;
  readonly tookMs: number;
}

/** Does it to whoever leads, and waits until another node says that it leads under a higher epoch. */
export async function failover(
  cluster: PeerCluster,
  strike: (node: NodeProcess) => void,
  withinMs = 15_000,
): Promise<Failover> {
  const leader = await cluster.leader();
  const { name, node } = leader;
  strike(node);
  const next = await cluster.successor(leader, withinMs).catch(async (error: unknown) => {
    throw new Error(`${String(error)}\n${await viewsOf(cluster)}`, { cause: error });
  });
  return { name, node, next: next.name, epoch: next.epoch, tookMs: next.tookMs };
}

/** What everybody says when nobody leads, for whoever reads why a test failed. */
async function viewsOf(cluster: PeerCluster): Promise<string> {
  const lines = [...cluster.nodes].map(async ([name, node]) => {
    const role = await roleOf(node, 2_000);
    const info = await node.client.cluster.info().catch(() => null);
    return `${name}: ${JSON.stringify(role)} ${JSON.stringify(info?.notes)}\n${node.stdout.slice(-1_000)}`;
  });
  return (await Promise.all(lines)).join("\n");
}

/** With kill -9; the dead one is no node of the cluster any more until it is started again. */
export async function killLeader(cluster: PeerCluster, withinMs?: number): Promise<Failover> {
  const result = await failover(cluster, (node) => node.signal("SIGKILL"), withinMs);
  await cluster.kill(result.name);
  return result;
}

/**
 * Until everybody votes. Whoever finds no record of its votes, as the last one to start of a new cluster does, keeps still for
 * a lease (S51); a leader that dies so early is followed as slowly.
 */
export async function allVote(cluster: PeerCluster, withinMs = 20_000): Promise<void> {
  for (const [name, node] of cluster.nodes) {
    await eventually(
      `${name} to vote`,
      async () => {
        const { notes } = await node.client.cluster.info();
        return notes.every((note) => !note.includes("does not vote yet"));
      },
      withinMs,
    );
  }
}
