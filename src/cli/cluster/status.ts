/** `baton status` and `baton tasks`: the status of a node, and the tasks that it can run. */

import type { Command } from "commander";
import type { AnswerOf } from "../../api/operation-table.ts";
import { addClientCommand } from "../client-command.ts";
import { nodeUrl } from "../node-options.ts";
import { span } from "../../core/figures.ts";
import type { Facts } from "../terminal/output.ts";
import { facts, listSection, table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";

export function addStatusCommands(program: Command, terminal: Terminal): void {
  addClientCommand(program, terminal, {
    usage: "status",
    about: "show a node, its role, and what it promises",
    call: (client) => client.status(),
    text: (status, { options }) =>
      [
        facts(terminal, statusFacts(status, nodeUrl(terminal, options))),
        ...listSection(terminal, "Notes", status.cluster.notes),
        ...listSection(terminal, "Promised", status.guarantees.promised),
        ...listSection(terminal, "Not promised", status.guarantees.not_promised),
      ].join("\n\n"),
  });

  addClientCommand(program, terminal, {
    usage: "tasks",
    about: "list the tasks that a node can run",
    call: (client) => client.tasks(),
    text: ({ tasks }) =>
      table(
        terminal,
        [
          ["task", ({ name }) => name],
          ["runs in", ({ isolation }) => (isolation === "thread" ? "own thread" : "main thread")],
          ["schema", ({ has_schema: has }) => (has ? "yes" : "no")],
        ],
        tasks,
      ),
  });
}

function statusFacts(status: AnswerOf<"GET /status">, url: string): Facts {
  const { cluster, store } = status;
  const forming = cluster.formed ? "" : ", still forming";
  const way = cluster.dispatch === "push" ? "the leader pushes jobs to workers" : "workers pull jobs";
  return [
    ["node", status.node],
    ["url", url],
    ["version", status.version],
    ["role", status.role],
    ["roles", status.roles.join(", ")],
    ["leader", status.leader_id === null ? "none" : `${status.leader_id} (epoch ${status.leader_epoch})`],
    ["cluster", `${cluster.name} (${cluster.active_nodes} of ${cluster.total_nodes} nodes active${forming})`],
    ["up for", span(status.uptime_ms)],
    ["store", `${store.name} (survives: ${store.durability})`],
    ["fabric", `coordination ${cluster.coordination}, channels ${cluster.channels}; ${way}`],
  ];
}
