/** `baton cluster`: the cluster as any of its nodes sees it. */

import type { Command } from "commander";
import type { ClusterBody } from "../api/operations/cluster.ts";
import { defaultCommand } from "./group.ts";
import { leadersTable } from "./leader.ts";
import { connect, withNodeOptions } from "./node-options.ts";
import { nodesTable } from "./nodes.ts";
import { facts, print } from "./output.ts";
import type { Terminal } from "./terminal.ts";
import { styled } from "./terminal.ts";
import type { WatchOptions } from "./watch.ts";
import { watched, withWatch } from "./watch.ts";

export function addClusterCommands(program: Command, terminal: Terminal): void {
  const cluster = program.command("cluster").description("look at the cluster as a whole");

  withWatch(withNodeOptions(defaultCommand(cluster, "status")))
    .description("show the cluster: its numbers, its leaders, its nodes, and what to know about it")
    .action((options: WatchOptions) => watched(terminal, options, (page) => clusterStatus(page, options)));
}

async function clusterStatus(terminal: Terminal, options: WatchOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const [cluster, { leaders }, { nodes }] = await Promise.all([
    client.cluster.info(),
    client.cluster.leaders(),
    client.cluster.nodes(),
  ]);
  print(terminal, options.output, { cluster, leaders, nodes }, () => {
    const title = (text: string): string => styled(terminal.out, "bold", text);
    return [
      clusterFacts(terminal, cluster),
      ...(cluster.notes.length === 0
        ? []
        : [[title("Notes"), ...cluster.notes.map((note) => `  - ${note}`)].join("\n")]),
      `${title("Leaders")}\n${leadersTable(terminal, leaders)}`,
      `${title("Nodes")}\n${nodesTable(terminal, nodes)}`,
    ].join("\n\n");
  });
}

function clusterFacts(terminal: Terminal, cluster: ClusterBody): string {
  const parts = [
    [cluster.active_nodes, "active"],
    [cluster.joining_nodes, "joining"],
    [cluster.draining_nodes, "draining"],
    [cluster.dead_nodes, "dead"],
  ] as const;
  const counted = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  const state = cluster.formed
    ? "formed"
    : `forming: ${cluster.active_nodes + cluster.joining_nodes} of at least ${cluster.minimum_nodes} nodes have gathered`;
  return facts(terminal, [
    ["cluster", cluster.name],
    ["state", state],
    ["nodes", `${cluster.total_nodes} (${counted.join(", ") || "none"})`],
    ["leader", cluster.scheduler_leader ?? "none"],
  ]);
}
