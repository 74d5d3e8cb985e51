/** `baton cluster`, `baton nodes` and `baton leaders`: the cluster as any of its nodes sees it. */

import type { Command } from "commander";
import type { NodeBody } from "../api/node-body.ts";
import type { ClusterBody, LeaderBody } from "../api/operations/cluster.ts";
import type { NodeOptions } from "./node-options.ts";
import { connect, withNodeOptions } from "./node-options.ts";
import { ago, facts, print, statusText, table } from "./output.ts";
import type { Terminal } from "./terminal.ts";
import { styled } from "./terminal.ts";

export function addClusterCommands(program: Command, terminal: Terminal): void {
  const cluster = program.command("cluster").description("look at the cluster");

  withNodeOptions(cluster.command("status"))
    .description("show the cluster: its numbers, its leaders, its nodes, and what to know about it")
    .action((options: NodeOptions) => clusterStatus(terminal, options));

  const nodes = program.command("nodes").description("look at the nodes of the cluster");

  withNodeOptions(nodes.command("list"))
    .description("list nodes, with what they do and how busy they are")
    .action(async (options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.cluster.nodes();
      print(terminal, options.output, answer, () => nodesTable(terminal, answer.nodes));
    });

  withNodeOptions(program.command("leaders"))
    .description("show who leads in each role")
    .action(async (options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.cluster.leaders();
      print(terminal, options.output, answer, () => leadersTable(terminal, answer.leaders));
    });
}

async function clusterStatus(terminal: Terminal, options: NodeOptions): Promise<void> {
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

function leadersTable(terminal: Terminal, leaders: readonly LeaderBody[]): string {
  if (leaders.length === 0) return "nobody leads";
  return table(
    terminal,
    ["role", "node", "epoch", "since", "lease until", "valid"],
    leaders.map((leader) => [
      leader.role,
      leader.node_id,
      String(leader.epoch),
      ago(terminal, leader.acquired_at),
      leader.lease_until,
      leader.valid ? "yes" : "no",
    ]),
  );
}

function nodesTable(terminal: Terminal, nodes: readonly NodeBody[]): string {
  // Only where jobs are dispatched is there an owner; an older node says nothing of it.
  const owns = nodes.some((node) => typeof node.load.owned === "number");
  return table(
    terminal,
    [
      "name",
      "status",
      "roles",
      "url",
      "version",
      "jobs",
      ...(owns ? ["owned"] : []),
      "cpu",
      "memory",
      "loop lag",
      "last seen",
    ],
    nodes.map((node) => [
      node.name,
      statusText(terminal, node.status),
      node.roles.join(","),
      node.url ?? "-",
      node.version,
      String(node.load.jobs),
      ...(owns ? [String(node.load.owned ?? "-")] : []),
      percent(node.load.cpu),
      percent(node.load.memory),
      `${Math.round(node.load.loop_lag_ms)}ms`,
      ago(terminal, node.last_seen),
    ]),
  );
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}
