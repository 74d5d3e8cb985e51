/** `baton cluster`: the cluster as any of its nodes sees it. */

import type { Command } from "commander";
import type { ClusterBody } from "../../api/operations/cluster/cluster.ts";
import type { AlertBody, OverviewBody } from "../../api/overview.ts";
import { JOB_STATUSES } from "../../core/jobs/job.ts";
import { count, perSecond, several, span } from "../../core/format-figures.ts";
import { addClientCommand } from "../client-command.ts";
import { leadersTable } from "./leader.ts";
import { nodesTable } from "./node.ts";
import { nodeSections } from "./node-text.ts";
import {
  facts,
  type Facts,
  hanging,
  listSection,
  sayUnreachable,
  section,
  table,
} from "../terminal/output.ts";
import { styled, type Terminal } from "../terminal/terminal.ts";
import type { AnswerOf } from "../../api/operation-table.ts";
import { nodeUrls } from "../node-options.ts";

export function addClusterCommands(program: Command, terminal: Terminal): void {
  addClientCommand(program.command("cluster").description("show the cluster as a whole"), terminal, {
    usage: "status",
    about: "show the cluster: its numbers, its alerts, its leaders and its nodes",
    isDefault: true,
    watch: true,
    call: async (client) => {
      const [overview, cluster, { leaders }, { nodes }] = await Promise.all([
        client.cluster.overview(),
        client.cluster.info(),
        client.cluster.leaders(),
        client.cluster.nodes(),
      ]);
      return { overview, cluster, leaders, nodes };
    },
    text: ({ overview, cluster, leaders, nodes }) =>
      [
        facts(terminal, clusterFacts(cluster, overview)),
        ...section(terminal, "Alerts", alertsText(terminal, overview.alerts)),
        ...listSection(terminal, "Notes", cluster.notes),
        ...section(terminal, "Leaders", leadersTable(terminal, leaders)),
        ...section(terminal, "Nodes", nodesTable(terminal, nodes)),
        ...nodeSections(terminal, nodes),
      ].join("\n\n"),
    note: ({ overview }) => sayUnreachable(terminal, overview.unreachable),
  });
}

function alertsText(terminal: Terminal, alerts: readonly AlertBody[]): string {
  return alerts
    .map(({ severity, message, remedy }) => {
      // Wrapped before it is coloured: sequences have no width.
      const what = hanging(terminal, `  ${severity} `, message);
      const todo = hanging(terminal, "    → ", remedy);
      const word = styled(terminal.out, severity === "critical" ? ["bold", "red"] : "yellow", severity);
      return `${what.replace(severity, () => word)}\n${styled(terminal.out, "cyan", todo)}`;
    })
    .join("\n");
}

function clusterFacts(cluster: ClusterBody, overview: OverviewBody): Facts {
  const parts = [
    [cluster.active_nodes, "active"],
    [cluster.joining_nodes, "joining"],
    [cluster.draining_nodes, "draining"],
    [cluster.dead_nodes, "dead"],
  ] as const;
  const counted = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  const { ready, oldest_age_ms: oldest } = overview.backlog;
  const state = cluster.formed
    ? "formed"
    : `forming: ${cluster.active_nodes + cluster.joining_nodes} of at least ${cluster.minimum_nodes} nodes have gathered`;
  return [
    ["cluster", cluster.name],
    ["state", state],
    ["nodes", `${cluster.total_nodes} (${counted.join(", ") || "none"})`],
    ["leader", cluster.scheduler_leader ?? "none"],
    ["jobs", jobsText(overview)],
    ["flow", flowText(overview)],
    ["waiting", ready === 0 ? null : `${several(ready, "job")}, the oldest for ${span(oldest)}`],
  ];
}

function jobsText({ jobs, workers, counted_at: at }: OverviewBody): string {
  if (at === null) return "not counted yet";
  const parts = JOB_STATUSES.filter((status) => jobs[status] > 0).map(
    (status) => `${count(jobs[status])} ${status}`,
  );
  return `${parts.join(", ") || "none"}; ${count(workers.running)} of ${several(workers.slots, "slot")} in use`;
}

function flowText({ rates, times }: OverviewBody): string {
  const of = (name: string, ms: OverviewBody["times"]["run_ms"]): string =>
    ms === null ? "" : `; ${name} p50 ${span(ms.p50)}, p95 ${span(ms.p95)}`;
  const { submitted_per_second: come, finished_per_second: end, failed_per_second: fail } = rates;
  return `in ${perSecond(come)}, out ${perSecond(end)}, failing ${perSecond(fail)}${of("wait", times.wait_ms)}${of("run", times.run_ms)}`;
}

export function addStatusCommands(program: Command, terminal: Terminal): void {
  addClientCommand(program, terminal, {
    usage: "status",
    about: "show a node, its role, and what it promises",
    call: (client) => client.status(),
    text: (status, { options }) =>
      [
        facts(terminal, statusFacts(status, nodeUrls(terminal, options).join(","))),
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
