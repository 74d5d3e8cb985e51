/** Processes that are kept running: those under a node-controller, and agents that lease over HTTP. */

import type { ComponentChildren } from "preact";
import type { NodeBody } from "../../../src/api/operations/cluster/nodes.ts";
import type { AnswerOf } from "../../../src/api/operation-table.ts";
import type { ChildReport } from "../../../src/supervisor/supervised-child.ts";
import type { SupervisorReport } from "../../../src/supervisor/supervisor-report.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { count } from "../parts/format.ts";
import { NodeLink } from "../parts/links.tsx";
import { Empty, ResourceNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { type Column, Section, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { Page } from "../shell/page.tsx";

export function ProcessesScreen() {
  const nodes = useResource("GET /cluster/nodes", {}, { everyMs: 5_000 });
  return (
    <Page
      title="Processes"
      about="What a node-controller keeps running on its machine, and workers that lease their jobs over HTTP."
    >
      <Section id="supervised" title="Under a node-controller">
        <ResourceNote of={nodes} what="processes" />
        <Table
          label="Supervised processes"
          rows={nodes.data && childrenOf(nodes.data.nodes)}
          keyOf={({ report, name }) => `${report.node} ${name}`}
          columns={CHILD_COLUMNS}
          empty={
            <Empty title="No node runs under a node-controller" command="baton controller --tasks tasks">
              It keeps a controller and an agent running as two processes, and restarts them.
            </Empty>
          }
        />
      </Section>
      <Agents />
    </Page>
  );
}

interface Child {
  readonly report: SupervisorReport;
  readonly name: string;
  /** A text says why there is none. */
  readonly child: ChildReport | string;
}

function childrenOf(nodes: readonly NodeBody[]): Child[] {
  // The field may hold anything: a node of another version may report more.
  const reports = nodes.flatMap(({ supervised }) => (supervised as SupervisorReport | null) ?? []);
  return reports.flatMap((report) => [
    { report, name: "controller", child: report.controller },
    "none" in report.agent
      ? { report, name: "agent", child: report.agent.none }
      : { report, name: `agent ${report.agent.name}`, child: report.agent },
  ]);
}

const ofChild =
  (cell: (child: ChildReport) => ComponentChildren) =>
  ({ child }: Child): ComponentChildren =>
    typeof child === "string" ? "" : cell(child);

const CHILD_COLUMNS: readonly Column<Child>[] = [
  [
    "Node",
    ({ report: { node, status } }) => (
      <>
        <NodeLink name={node} /> {status !== "running" && <Status word={status} />}
      </>
    ),
  ],
  ["Process", ({ name }) => name],
  [
    "State",
    ({ child }) =>
      typeof child === "string" ? (
        <span class="muted">none: {child}</span>
      ) : (
        <>
          <Status word={child.state} />
          {child.crashes_in_a_row > 0 && (
            <span class="bad-text"> crashed {child.crashes_in_a_row} times in a row</span>
          )}
        </>
      ),
  ],
  ["Pid", ofChild(({ pid }) => pid ?? "–"), "right num"],
  ["Started", ofChild((child) => <Ago at={child.started_at} />)],
  ["Restarts", ofChild(({ restarts }) => count(restarts)), "right num"],
  [
    "Last exit",
    ofChild(({ last_exit: last }) =>
      last ? (
        <>
          <Ago at={last.at} />: {last.reason} ({howOf(last)})
        </>
      ) : (
        <span class="muted">–</span>
      ),
    ),
    "wide-cell",
  ],
];

function howOf({ code, signal }: NonNullable<ChildReport["last_exit"]>): string {
  return signal ?? (code === null ? "no exit code" : `code ${code}`);
}

type Agent = AnswerOf<"GET /v1/agents">["agents"][number];

function Agents() {
  const agents = useResource("GET /v1/agents", {}, { everyMs: 5_000 });
  return (
    <Section id="agents" title="Agents">
      <ResourceNote of={agents} what="agents" />
      <Table
        label="Agents"
        rows={agents.data?.agents}
        keyOf={({ name }) => name}
        columns={agentColumns(agents.reload)}
        empty={
          <Empty title="There are no agents" command={`baton agent --url ${location.origin} --tasks tasks`}>
            An agent is a worker that leases its jobs over HTTP from the leader; it can be written in any
            language.
          </Empty>
        }
      />
    </Section>
  );
}

function agentColumns(reload: () => void): readonly Column<Agent>[] {
  return [
    [
      "Agent",
      ({ name, labels }) => (
        <>
          {name}
          <div class="muted">
            {Object.entries(labels)
              .map(([key, value]) => `${key}=${value}`)
              .join(" ")}
          </div>
        </>
      ),
    ],
    ["State", ({ state }) => <Status word={state} />],
    ["Running", ({ running }) => count(running), "right num"],
    ["Tasks", ({ capabilities }) => capabilities.join(", "), "wide-cell"],
    ["Version", ({ version }) => version ?? "–"],
    ["Seen", (agent) => <Ago at={agent.last_seen_at} />],
    ["First seen", (agent) => <Ago at={agent.first_seen_at} />],
    [
      "",
      ({ name, state }) => (
        <Action
          route="DELETE /v1/agents/{agent_name}"
          send={{ params: { agent_name: name } }}
          label={`Remove ${name}`}
          done={`${name} is removed from the list.`}
          onDone={reload}
          class="small"
          off={state === "stale" ? null : `It is ${state}.`}
        >
          Remove
        </Action>
      ),
      "right",
    ],
  ];
}
