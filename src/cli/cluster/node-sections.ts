/** The sections below the list of nodes: unreachable pairs, and the child processes of supervisors. */

import type { NodeBody } from "../../api/bodies/node-body.ts";
import type { SupervisorReport } from "../../supervisor/supervisor-report.ts";
import { CHILD_COLUMNS, childRows } from "./child-rows.ts";
import { table } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { styled } from "../terminal/terminal.ts";

/** Each with its title; none where all reach all and nobody is supervised. */
export function nodeSections(terminal: Terminal, nodes: readonly NodeBody[]): readonly string[] {
  const title = (text: string): string => styled(terminal.out, "bold", text);
  const cut = unreached(nodes).map(({ from, to, reason }) => {
    const line = `  ${from.join(", ")} → ${to}`;
    return `${styled(terminal.out, "red", line)}${reason === null ? "" : ` (${reason})`}`;
  });
  const children = nodes.flatMap((node) => {
    const report = reportOf(node);
    return report ? childRows(terminal, report).map((row) => [node.name, ...row]) : [];
  });
  return [
    ...(cut.length === 0
      ? []
      : [[title("Do not reach"), ...cut, "  `baton doctor` tells what to look at"].join("\n")]),
    ...(children.length === 0
      ? []
      : [
          `${title("Processes")}\n${table(terminal, ["node", ...CHILD_COLUMNS], children, {
            spare: ["crashes", "started"],
            cut: "last exit",
          })}`,
        ]),
  ];
}

interface Unreached {
  /** Those who do not reach it for that reason. */
  readonly from: readonly string[];
  readonly to: string;
  readonly reason: string | null;
}

/** Of living nodes: that a dead one is not reached is no news. */
function unreached(nodes: readonly NodeBody[]): Unreached[] {
  const alive = nodes.filter((node) => node.alive);
  const names = new Set(alive.map(({ name }) => name));
  const pairs = alive.flatMap(({ name, reach }) =>
    // An older node does not tell.
    ((reach as NodeBody["reach"] | undefined) ?? [])
      .filter(({ node, ok }) => !ok && names.has(node))
      .map(({ node, reason }) => ({ from: name, to: node, reason })),
  );
  const groups = Map.groupBy(pairs, ({ to, reason }) => `${to} ${reason}`);
  return [...groups.values()].map((group) => ({ ...group[0]!, from: group.map(({ from }) => from) }));
}

/** It travels loosely, and a node of another version may tell something else. */
export function reportOf({ supervised }: NodeBody): SupervisorReport | null {
  const report = supervised as Partial<SupervisorReport> | null | undefined;
  return report?.controller && report.agent ? (report as SupervisorReport) : null;
}
