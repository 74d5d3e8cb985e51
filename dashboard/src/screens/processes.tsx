/** Processes that are kept running: those under a node-controller, and agents that lease over HTTP. */

import type { NodeBody } from "../../../src/api/bodies/node-body.ts";
import type { ChildReport, SupervisorReport } from "../../../src/supervisor/supervisor-report.ts";
import { call } from "../api/call.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { count } from "../parts/format.ts";
import { NodeLink } from "../parts/links.tsx";
import { Empty, Loading, ProblemNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { Page } from "../shell/page.tsx";

export function ProcessesScreen() {
  const nodes = useResource("GET /cluster/nodes", {}, { everyMs: 5_000 });
  return (
    <Page
      title="Processes"
      about="What a node-controller keeps running on its machine, and workers that lease their jobs over HTTP."
    >
      <section aria-labelledby="supervised">
        <h2 id="supervised">Under a node-controller</h2>
        {nodes.problem && <ProblemNote problem={nodes.problem} retry={nodes.reload} />}
        {nodes.data ? (
          <SupervisedTable nodes={nodes.data.nodes} />
        ) : (
          !nodes.problem && <Loading what="processes" />
        )}
      </section>
      <Agents />
    </Page>
  );
}

function SupervisedTable({ nodes }: { nodes: readonly NodeBody[] }) {
  // Loose in the table: a node of another version may tell more.
  const reports = nodes.flatMap(({ supervised }) => (supervised as SupervisorReport | null) ?? []);
  if (reports.length === 0) {
    return (
      <Empty title="No node runs under a node-controller" command="baton controller --tasks tasks">
        It keeps a controller and an agent running as two processes, and starts again what dies.
      </Empty>
    );
  }
  return (
    <Table
      label="Supervised processes"
      head={
        <>
          <th>Node</th>
          <th>Process</th>
          <th>State</th>
          <th class="right">Pid</th>
          <th>Started</th>
          <th class="right">Restarts</th>
          <th>Last exit</th>
        </>
      }
    >
      {reports.flatMap((report) => [
        <ChildRow
          key={`${report.node} controller`}
          report={report}
          name="controller"
          child={report.controller}
        />,
        "none" in report.agent ? (
          <tr key={`${report.node} agent`}>
            <td>
              <NodeLink name={report.node} />
            </td>
            <td>agent</td>
            <td colSpan={5} class="muted">
              none: {report.agent.none}
            </td>
          </tr>
        ) : (
          <ChildRow
            key={`${report.node} agent`}
            report={report}
            name={`agent ${report.agent.name}`}
            child={report.agent}
          />
        ),
      ])}
    </Table>
  );
}

function ChildRow({ report, name, child }: { report: SupervisorReport; name: string; child: ChildReport }) {
  return (
    <tr>
      <td>
        <NodeLink name={report.node} /> {report.status !== "running" && <Status word={report.status} />}
      </td>
      <td>{name}</td>
      <td>
        <Status word={child.state} />
        {child.crashes_in_a_row > 0 && (
          <span class="bad-text"> crashed {child.crashes_in_a_row} times in a row</span>
        )}
      </td>
      <td class="right num">{child.pid ?? "–"}</td>
      <td>
        <Ago at={child.started_at} />
      </td>
      <td class="right num">{count(child.restarts)}</td>
      <td class="wide-cell">
        {child.last_exit ? (
          <>
            <Ago at={child.last_exit.at} />: {child.last_exit.reason} ({howOf(child.last_exit)})
          </>
        ) : (
          <span class="muted">–</span>
        )}
      </td>
    </tr>
  );
}

function howOf({ code, signal }: NonNullable<ChildReport["last_exit"]>): string {
  return signal ?? (code === null ? "no exit code" : `code ${code}`);
}

function Agents() {
  const { data, problem, reload } = useResource("GET /v1/agents", {}, { everyMs: 5_000 });
  return (
    <section aria-labelledby="agents">
      <h2 id="agents">Agents</h2>
      {problem && <ProblemNote problem={problem} retry={reload} />}
      {data?.agents.length === 0 && (
        <Empty title="There are no agents" command={`baton agent --url ${location.origin} --tasks tasks`}>
          An agent is a worker that leases its jobs over HTTP from whoever leads; it can be written in any
          language.
        </Empty>
      )}
      {data && data.agents.length > 0 && (
        <Table
          label="Agents"
          head={
            <>
              <th>Agent</th>
              <th>State</th>
              <th class="right">Running</th>
              <th>Tasks</th>
              <th>Version</th>
              <th>Seen</th>
              <th>First seen</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </>
          }
        >
          {data.agents.map((agent) => (
            <tr key={agent.name}>
              <td>
                {agent.name}
                <div class="muted">
                  {Object.entries(agent.labels)
                    .map(([key, value]) => `${key}=${value}`)
                    .join(" ")}
                </div>
              </td>
              <td>
                <Status word={agent.state} />
              </td>
              <td class="right num">{count(agent.running)}</td>
              <td class="wide-cell">{agent.capabilities.join(", ")}</td>
              <td>{agent.version ?? "–"}</td>
              <td>
                <Ago at={agent.last_seen_at} />
              </td>
              <td>
                <Ago at={agent.first_seen_at} />
              </td>
              <td class="right">
                <Action
                  route="DELETE /v1/agents/{agent_name}"
                  doing={`Removing ${agent.name}`}
                  class="small"
                  label={`Remove ${agent.name}`}
                  off={agent.state === "stale" ? null : `It is ${agent.state}.`}
                  run={async () => {
                    await call("DELETE /v1/agents/{agent_name}", { params: { agent_name: agent.name } });
                    reload();
                    return `${agent.name} is removed from the list.`;
                  }}
                >
                  Remove
                </Action>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
