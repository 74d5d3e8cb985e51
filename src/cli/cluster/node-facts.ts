/** Formats one node for people: its identity, its load, and the nodes that it reaches. */

import type { NodeBody } from "../../api/bodies/node-body.ts";
import { CHILD_COLUMNS, childRows } from "./child-rows.ts";
import { percent, span } from "../terminal/number-format.ts";
import { drainText } from "./drain-text.ts";
import { reportOf } from "./node-sections.ts";
import { ago, facts, statusText, table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { styled } from "../terminal/terminal.ts";

export function nodeFacts(terminal: Terminal, node: NodeBody): string {
  const { load } = node;
  // An older node does not tell.
  const reach = (node as Partial<NodeBody>).reach ?? [];
  const about = facts(terminal, [
    ["node", node.name],
    ["status", statusText(terminal, node.status)],
    ["drain", node.drain ? drainText(node.drain) : null],
    ["url", node.url ?? "none"],
    ["host", node.hostname],
    ["version", node.version],
    ["roles", node.roles.join(", ")],
    ["tasks", node.capabilities.length === 0 ? "none" : node.capabilities.join(", ")],
    ["jobs", `${load.jobs} run${typeof load.owned === "number" ? `, ${load.owned} owned` : ""}`],
    [
      "load",
      `cpu ${percent(load.cpu)}, memory ${percent(load.memory)}, loop lag ${span(Math.round(load.loop_lag_ms))}`,
    ],
    ["started", `${node.started_at} (${ago(terminal, node.started_at)})`],
    ["last seen", node.last_seen === null ? "never" : `${node.last_seen} (${ago(terminal, node.last_seen)})`],
  ]);
  const report = reportOf(node);
  const children = report
    ? [table(terminal, CHILD_COLUMNS, childRows(terminal, report), { cut: "last exit" })]
    : [];
  if (reach.length === 0) return [about, ...children].join("\n\n");
  const rows = reach.map((each) => [
    each.node,
    each.ok ? "yes" : styled(terminal.out, "red", "no"),
    each.ok ? span(each.latency_ms) : "-",
    each.reason ?? "",
  ]);
  const ways = table(terminal, ["reaches", "", "in", "why not"], rows, { cut: "why not" });
  return [about, ways, ...children].join("\n\n");
}
