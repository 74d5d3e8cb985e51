/** A table of the child processes of a supervisor. */

import type { ChildReport, SupervisorReport } from "../../supervisor/supervisor-report.ts";
import { ago } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";

export const CHILD_COLUMNS = [
  "child",
  "state",
  "pid",
  "started",
  "restarts",
  "crashes",
  "last exit",
] as const;

export function childRows(
  terminal: Terminal,
  { controller, agent }: Pick<SupervisorReport, "controller" | "agent">,
): readonly (readonly string[])[] {
  return [
    row(terminal, "controller", controller),
    ...("none" in agent ? [] : [row(terminal, "agent", agent)]),
  ];
}

function row(terminal: Terminal, name: string, child: ChildReport): string[] {
  const { last_exit: last } = child;
  const how = last && (last.signal ?? (last.code === null ? "" : `code ${last.code}`));
  return [
    name,
    child.state,
    child.pid === null ? "-" : String(child.pid),
    ago(terminal, child.started_at),
    String(child.restarts),
    String(child.crashes_in_a_row),
    last === null ? "-" : [how, last.reason, ago(terminal, last.at)].filter((part) => part !== "").join(", "),
  ];
}
