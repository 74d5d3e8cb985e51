/** `baton status` and `baton tasks`: the status of a node, and the tasks that it can run. */

import type { Command } from "commander";
import { span } from "../terminal/number-format.ts";
import type { NodeOptions } from "../node-options.ts";
import { connect, nodeUrl, withNodeOptions } from "../node-options.ts";
import { facts, hanging, print, table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { styled } from "../terminal/terminal.ts";

export function addStatusCommands(program: Command, terminal: Terminal): void {
  withNodeOptions(program.command("status"))
    .description("show a node, its role, and what it promises")
    .action((options: NodeOptions) => status(terminal, options));

  withNodeOptions(program.command("tasks"))
    .description("list the tasks that a node can run")
    .action(async (options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.tasks();
      print(terminal, options.output, answer, () =>
        table(
          terminal,
          ["task", "runs in", "schema"],
          answer.tasks.map((task) => [
            task.name,
            task.isolation === "thread" ? "own thread" : "main thread",
            task.has_schema ? "yes" : "no",
          ]),
        ),
      );
    });
}

async function status(terminal: Terminal, options: NodeOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const answer = await client.status();
  print(terminal, options.output, answer, () => {
    const node = facts(terminal, [
      ["node", answer.node],
      ["url", nodeUrl(terminal, options)],
      ["version", answer.version],
      ["role", answer.role],
      ["roles", answer.roles.join(", ")],
      ["leader", answer.leader_id === null ? "none" : `${answer.leader_id} (epoch ${answer.leader_epoch})`],
      ["cluster", clusterText(answer.cluster)],
      ["up for", span(answer.uptime_ms)],
      ["store", `${answer.store.name} (survives: ${answer.store.durability})`],
      ["fabric", fabricText(answer.cluster)],
    ]);
    const section = (title: string, lines: readonly string[]): string =>
      [styled(terminal.out, "bold", title), ...lines.map((line) => hanging(terminal, "  - ", line))].join(
        "\n",
      );
    return [
      node,
      ...(answer.cluster.notes.length > 0 ? [section("Notes", answer.cluster.notes)] : []),
      section("Promised", answer.guarantees.promised),
      section("Not promised", answer.guarantees.not_promised),
    ].join("\n\n");
  });
}

function fabricText(cluster: {
  readonly coordination: string;
  readonly channels: string;
  readonly dispatch: string;
}): string {
  const way = cluster.dispatch === "push" ? "the leader pushes jobs to workers" : "workers pull jobs";
  return `coordination ${cluster.coordination}, channels ${cluster.channels}; ${way}`;
}

function clusterText(cluster: {
  readonly name: string;
  readonly active_nodes: number;
  readonly total_nodes: number;
  readonly formed: boolean;
}): string {
  const state = cluster.formed ? "" : ", still forming";
  return `${cluster.name} (${cluster.active_nodes} of ${cluster.total_nodes} nodes active${state})`;
}
