/** `baton nodes`: lists all nodes with their roles and load. */

import type { Command } from "commander";
import type { NodeBody } from "../../api/bodies/node-body.ts";
import { NODE_ROLES } from "../../core/node.ts";
import { percent } from "../terminal/number-format.ts";
import { defaultCommand } from "../command-group.ts";
import { connect, withNodeOptions } from "../node-options.ts";
import { nodeSections } from "./node-sections.ts";
import { ago, print, statusText, table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { WatchOptions } from "../terminal/watch.ts";
import { watched, withWatch } from "../terminal/watch.ts";

export function addNodesCommands(program: Command, terminal: Terminal): void {
  const nodes = program.command("nodes").description("look at the nodes of the cluster");

  withWatch(withNodeOptions(defaultCommand(nodes, "list")))
    .description("list nodes, with what they do and how busy they are")
    .action((options: WatchOptions) =>
      watched(terminal, options, async (page) => {
        await using client = await connect(page, options);
        const answer = await client.cluster.nodes();
        print(page, options.output, answer, () =>
          [nodesTable(page, answer.nodes), ...nodeSections(page, answer.nodes)].join("\n\n"),
        );
      }),
    );
}

export function nodesTable(terminal: Terminal, nodes: readonly NodeBody[]): string {
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
      rolesText(node.roles),
      node.url ?? "-",
      node.version,
      String(node.load.jobs),
      ...(owns ? [String(node.load.owned ?? "-")] : []),
      percent(node.load.cpu),
      percent(node.load.memory),
      `${Math.round(node.load.loop_lag_ms)}ms`,
      ago(terminal, node.last_seen),
    ]),
    { spare: ["version", "memory", "roles", "url"] },
  );
}

export function rolesText(roles: readonly string[]): string {
  return NODE_ROLES.every((role) => roles.includes(role)) ? "all" : roles.join(",");
}
