/** Nodes for people: columns, facts, drains, nodes that cannot be reached, and supervised processes. Lists and `baton top` share them. */

import type { NodeBody } from "../../api/operations/cluster/nodes.ts";
import { NODE_ROLES } from "../../core/node.ts";
import type { ChildReport } from "../../supervisor/supervised-child.ts";
import type { SupervisorReport } from "../../supervisor/supervisor-report.ts";
import {
  type Column,
  piece,
  type Shown,
  facts,
  type Facts,
  section,
  statusPiece,
  table,
} from "../terminal/output.ts";
import { ago, count, percent, short, since, span, timeAndAge } from "../../core/format-figures.ts";
import { styled, type Terminal } from "../terminal/terminal.ts";

const LAG_MS_BAD = 200;

export interface NodesContext {
  readonly now: number;
  readonly nodes: readonly NodeBody[];
  readonly live?: { readonly leader: string | null };
}

export function nodeColumns({ now, nodes, live }: NodesContext): readonly Column<NodeBody>[] {
  const figure = live ? short : count;
  // Only where jobs are dispatched is there an owner.
  const owns = nodes.some((node) => typeof node.load.owned === "number");
  const reaches = live !== undefined || nodes.some((node) => node.reach.length > 0);
  const columns: readonly (Column<NodeBody> | false)[] = [
    [live ? "nodes" : "name", ({ name }) => name, { width: 12, flexible: true }],
    ["status", ({ status }) => statusPiece(status), { width: 8 }],
    live ? ["role", leaderText(live.leader), { width: 7 }] : ["roles", rolesText, { spare: 5 }],
    ["jobs", ({ load }) => figure(load.jobs), { width: 5, align: "right" }],
    owns && ["owned", ({ load }) => load.owned ?? null, { width: 5, align: "right", spare: 3 }],
    ["cpu", ({ load }) => percent(load.cpu), { width: 4, align: "right" }],
    [live ? "mem" : "memory", ({ load }) => percent(load.memory), { width: 4, align: "right", spare: 1 }],
    ["lag", lagText, { width: 6, align: "right" }],
    reaches && ["reaches", reachText, { width: 7, align: "right", spare: 4 }],
    [
      "seen",
      ({ last_seen: at }) => (live ? since(now, at) : ago(now, at)),
      { width: 6, align: "right", spare: 2 },
    ],
    ["version", ({ version }) => version, { width: 8, spare: 6 }],
    ["url", ({ url }) => url, { width: 24, spare: live ? 7 : 4 }],
  ];
  return columns.filter((column) => column !== false);
}

function leaderText(leader: string | null): (node: NodeBody) => Shown {
  return ({ name, alive, roles }) => {
    if (name === leader) return piece("leader", ["bold", "magenta"]);
    return alive && roles.includes("scheduler") ? "standby" : null;
  };
}

export function rolesText({ roles }: Pick<NodeBody, "roles">): string {
  return NODE_ROLES.every((role) => roles.includes(role)) ? "all" : roles.join(",");
}

function lagText({ load: { loop_lag_ms: ms } }: NodeBody): Shown {
  return piece(span(Math.round(ms)), ms >= LAG_MS_BAD ? "red" : null);
}

/** `2/2`: of the others, how many it reaches. */
function reachText(node: NodeBody): Shown {
  const reach = node.reach;
  const ok = reach.filter((each) => each.ok).length;
  return reach.length === 0 ? null : piece(`${ok}/${reach.length}`, ok < reach.length ? "red" : null);
}

export function nodeFacts(node: NodeBody, now: number): Facts {
  const { load } = node;
  const figures = `cpu ${percent(load.cpu)}, memory ${percent(load.memory)}, loop lag ${span(Math.round(load.loop_lag_ms))}`;
  return [
    ["node", node.name],
    ["status", statusPiece(node.status)],
    ["drain", node.drain && drainText(node.drain)],
    ["url", node.url ?? "none"],
    ["host", node.hostname],
    ["version", node.version],
    ["roles", node.roles.join(", ")],
    ["tasks", node.capabilities.join(", ") || "none"],
    ["jobs", `${load.jobs} running${typeof load.owned === "number" ? `, ${load.owned} owned` : ""}`],
    ["load", figures],
    ["started", timeAndAge(now, node.started_at)],
    ["last seen", timeAndAge(now, node.last_seen) ?? "never"],
  ];
}

export function reachFacts(node: NodeBody): Facts {
  return node.reach.map((each) => [
    `reaches ${each.node}`,
    each.ok ? `in ${span(each.latency_ms)}` : piece(`no: ${each.reason ?? "no answer"}`, "red"),
  ]);
}

export function nodeText(terminal: Terminal, node: NodeBody): string {
  const now = terminal.clock.now();
  const report = reportOf(node);
  const children = report ? [childTable(terminal, report)] : [];
  return [facts(terminal, [...nodeFacts(node, now), ...reachFacts(node)]), ...children].join("\n\n");
}

export function drainText(drain: NonNullable<NodeBody["drain"]>): string {
  const { owned, handed_over: handedOver, finished, waiting, orphaned, released } = drain;
  return [
    `${handedOver} of ${owned} owned ${owned === 1 ? "job" : "jobs"} handed over`,
    ...(finished > 0 ? [`${finished} ended`] : []),
    `${waiting} waiting`,
    `${orphaned} orphaned`,
    ...(released > 0 ? [`${released} released`] : []),
  ].join(", ");
}

interface ChildRow {
  readonly node: string;
  readonly name: string;
  readonly child: ChildReport;
}

function childColumns(now: number): readonly Column<ChildRow>[] {
  return [
    ["child", ({ name }) => name],
    ["state", ({ child }) => child.state],
    ["pid", ({ child }) => child.pid],
    ["started", ({ child }) => ago(now, child.started_at), { spare: 1 }],
    ["restarts", ({ child }) => child.restarts],
    ["crashes", ({ child }) => child.crashes_in_a_row, { spare: 2 }],
    ["last exit", ({ child: { last_exit: last } }) => last && exitText(now, last), { flexible: true }],
  ];
}

export function childTable(terminal: Terminal, report: SupervisorReport): string {
  return table(terminal, childColumns(terminal.clock.now()), childRows(report.node, report));
}

function exitText(now: number, last: NonNullable<ChildReport["last_exit"]>): string {
  const how = last.signal ?? (last.code === null ? "" : `code ${last.code}`);
  return [how, last.reason, ago(now, last.at)].filter((part) => part !== "").join(", ");
}

function childRows(node: string, { controller, agent }: SupervisorReport): ChildRow[] {
  return [
    { node, name: "controller", child: controller },
    ...("none" in agent ? [] : [{ node, name: "agent", child: agent }]),
  ];
}

/** Any JSON travels in this field; a node of another version may send something else. */
function reportOf({ supervised }: NodeBody): SupervisorReport | null {
  const report = supervised as Partial<SupervisorReport> | null | undefined;
  return report?.controller && report.agent ? (report as SupervisorReport) : null;
}

export function nodeSections(terminal: Terminal, nodes: readonly NodeBody[]): readonly string[] {
  const cut = unreached(waysBetween(nodes)).map(({ from, to, reason }) => {
    const line = styled(terminal.out, "red", `  ${from.join(", ")} → ${to}`);
    return `${line}${reason === null ? "" : ` (${reason})`}\n`;
  });
  const children = nodes.flatMap((node) => {
    const report = reportOf(node);
    return report ? childRows(node.name, report) : [];
  });
  const columns: readonly Column<ChildRow>[] = [
    ["node", ({ node }) => node],
    ...childColumns(terminal.clock.now()),
  ];
  return [
    ...section(terminal, "Do not reach", cut.length === 0 ? null : `${cut.join("")}  See \`baton doctor\`.`),
    ...section(terminal, "Processes", children.length === 0 ? null : table(terminal, columns, children)),
  ];
}

/** From each living node to each other one: a dead one is not expected to be reached. */
export function waysBetween(
  nodes: readonly (Pick<NodeBody, "name" | "alive"> & { readonly reach: Readonly<NodeBody["reach"]> })[],
) {
  const alive = nodes.filter((node) => node.alive);
  const names = new Set(alive.map(({ name }) => name));
  return alive.flatMap(({ name: from, reach }) =>
    reach.filter(({ node }) => names.has(node)).map(({ node: to, ...how }) => ({ from, to, ...how })),
  );
}

/** Who does not reach whom, by the reason. */
export function unreached(ways: ReturnType<typeof waysBetween>) {
  const groups = Map.groupBy(
    ways.filter(({ ok }) => !ok),
    ({ to, reason }) => `${to} ${reason}`,
  );
  return [...groups.values()].map((group) => ({ ...group[0]!, from: group.map(({ from }) => from) }));
}
