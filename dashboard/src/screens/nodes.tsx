/** The nodes: how each fares, who reaches whom, and taking one out of work. */

import type { NodeBody } from "../../../src/api/bodies/node-body.ts";
import { NODE_ROLES } from "../../../src/core/node.ts";
import { call } from "../api/call.ts";
import { amongPeers, overview } from "../api/live.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { count, duration, percent, plural } from "../parts/format.ts";
import { pageAt } from "../parts/links.tsx";
import { Meter } from "../parts/meter.tsx";
import { Loading, ProblemNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { place } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { ReachMatrix } from "./reach-matrix.tsx";

/** A loop that lags behind so far answers late; health checks of others wait a second or so. */
const LAG_MS_LATE = 200;

export function NodesScreen() {
  const { data, problem, reload } = useResource("GET /cluster/nodes", {}, { freshMs: 1_000, everyMs: 2_000 });
  const nodes = data?.nodes ?? [];
  const kept = useResource(amongPeers.value ? "GET /cluster/metrics-summary" : null, {}, { everyMs: 5_000 });
  const ownedBy = (node: NodeBody): number | null =>
    node.load.owned ??
    kept.data?.nodes.find(({ name, up }) => up && name === node.name)?.jobs_owned_total ??
    null;
  const owners = nodes.some((node) => ownedBy(node) !== null);
  const marked = place.value.query["node"];
  return (
    <Page title="Nodes" about="Every node is equal and any of them takes any request; one leads.">
      {problem && <ProblemNote problem={problem} retry={reload} />}
      {!data && !problem && <Loading what="nodes" />}
      {nodes.length > 0 && (
        <Table
          label="Nodes"
          class="nodes"
          head={
            <>
              <th>Node</th>
              <th>Status</th>
              <th>Seen</th>
              <th class="right">Running</th>
              {owners && (
                <th
                  class="right"
                  title={
                    amongPeers.value
                      ? "all jobs that it keeps, also those that are over"
                      : "jobs that are not over"
                  }
                >
                  Owned jobs
                </th>
              )}
              <th>CPU</th>
              <th>Memory</th>
              <th class="right">Loop lag</th>
              <th>Up</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </>
          }
        >
          {nodes.map((node) => (
            <Row
              key={node.name}
              node={node}
              owned={owners ? ownedBy(node) : undefined}
              marked={node.name === marked}
              onChange={reload}
            />
          ))}
        </Table>
      )}
      <Drains nodes={nodes} />
      <ReachMatrix nodes={nodes} />
    </Page>
  );
}

interface RowProps {
  readonly node: NodeBody;
  /** Undefined where no node owns jobs. */
  readonly owned: number | null | undefined;
  readonly marked: boolean;
  readonly onChange: () => void;
}

function Row({ node, owned, marked, onChange }: RowProps) {
  const { load } = node;
  const leader = overview.value?.leader;
  const leads = leader?.node_id === node.name;
  const gone = node.status === "dead";
  const page = gone ? null : pageAt(node.url);
  return (
    <tr class={marked ? "chosen" : undefined}>
      <td>
        {page !== null ? (
          <a href={page} rel="noreferrer" title={`the page of ${node.name}`}>
            {node.name}
          </a>
        ) : (
          node.name
        )}{" "}
        {leads && <Status word={`leads, epoch ${leader.epoch}`} tone="busy" />}
        <div class="muted node-about">
          {rolesOf(node)} · {node.version}
        </div>
      </td>
      <td>
        <Status word={node.status} />
        {!node.alive && !gone && <Status word="silent" tone="bad" />}
      </td>
      <td>
        <Ago at={node.last_seen} none="never" />
      </td>
      <td class="right num">{gone ? "–" : count(load.jobs)}</td>
      {owned !== undefined && <td class="right num">{owned === null || gone ? "–" : count(owned)}</td>}
      <td>
        {gone ? "–" : <Meter share={load.cpu} text={percent(load.cpu)} label="of all cores of its machine" />}
      </td>
      <td>
        {gone ? (
          "–"
        ) : (
          <Meter share={load.memory} text={percent(load.memory)} label="of the machine's memory" />
        )}
      </td>
      <td class={load.loop_lag_ms >= LAG_MS_LATE && !gone ? "right num bad-text" : "right num"}>
        {gone ? "–" : duration(load.loop_lag_ms)}
      </td>
      <td>{gone ? "–" : <Took from={node.started_at} until={null} />}</td>
      <td class="right">
        <NodeAction node={node} onChange={onChange} />
      </td>
    </tr>
  );
}

function rolesOf({ roles }: NodeBody): string {
  return NODE_ROLES.every((role) => roles.includes(role)) ? "all roles" : roles.join(", ");
}

/** What a drain means for that node, now. */
function drainText({ load }: NodeBody): string {
  const runs = load.jobs === 0 ? "" : `, finishes what it runs (${plural(load.jobs, "job")})`;
  const owns = load.owned ? `, hands over what it owns (${plural(load.owned, "job")})` : "";
  return `It takes no more work${runs}${owns}, and stays up until it is stopped or resumed.`;
}

function NodeAction({ node, onChange }: { node: NodeBody; onChange: () => void }) {
  const { name } = node;
  const params = { name };
  if (node.status === "draining") {
    return (
      <Action
        route="POST /cluster/nodes/{name}/resume"
        doing={`Resuming ${name}`}
        class="small"
        label={`Resume ${name}`}
        run={async () => {
          await call("POST /cluster/nodes/{name}/resume", { params });
          onChange();
          return `${name} was asked to work again.`;
        }}
      >
        Resume
      </Action>
    );
  }
  if (node.status === "dead") {
    return (
      <Action
        route="DELETE /cluster/nodes/{name}"
        doing={`Removing ${name}`}
        class="small"
        label={`Remove ${name}`}
        ask={{
          title: `Remove ${name}?`,
          body: "Only in a cluster of peers: it no longer counts for a majority, and must join again. Where nodes share a database it is forgotten by itself.",
          action: `Remove ${name}`,
          danger: true,
        }}
        run={async () => {
          await call("DELETE /cluster/nodes/{name}", { params });
          onChange();
          return `${name} is removed.`;
        }}
      >
        Remove…
      </Action>
    );
  }
  return (
    <Action
      route="POST /cluster/nodes/{name}/drain"
      doing={`Draining ${name}`}
      class="small"
      label={`Drain ${name}`}
      off={node.status === "active" ? null : `It is ${node.status}.`}
      ask={{
        title: `Drain ${name}?`,
        body: drainText(node),
        action: `Drain ${name}`,
      }}
      run={async () => {
        await call("POST /cluster/nodes/{name}/drain", { params });
        onChange();
        return `${name} was asked to drain.`;
      }}
    >
      Drain…
    </Action>
  );
}

function Drains({ nodes }: { nodes: readonly NodeBody[] }) {
  const draining = nodes.filter(({ status }) => status === "draining");
  if (draining.length === 0) return null;
  return (
    <section aria-labelledby="drains">
      <h2 id="drains">Drains</h2>
      {draining.map((node) => (
        <DrainProgress key={node.name} node={node} />
      ))}
    </section>
  );
}

function DrainProgress({ node }: { node: NodeBody }) {
  const { drain, load, name } = node;
  const over = drain ? drain.owned - drain.waiting : 0;
  return (
    <div class="note wait" role="status">
      <p>
        <strong>{name}</strong>{" "}
        {load.jobs === 0 && (drain?.waiting ?? 0) === 0
          ? "is drained: nothing runs on it. Stop it, or resume it."
          : `finishes ${plural(load.jobs, "running job")}.`}
      </p>
      {drain && drain.owned > 0 && (
        <p>
          <progress max={drain.owned} value={over} aria-label={`Hand-over of ${name}`} />{" "}
          <span class="num">
            {count(drain.handed_over)} of {count(drain.owned)} handed over, {count(drain.finished)} finished,{" "}
            {count(drain.waiting)} waiting
            {drain.orphaned > 0 && `, ${count(drain.orphaned)} left to the leader`}
            {drain.released > 0 && `, ${count(drain.released)} given up`}
          </span>
        </p>
      )}
    </div>
  );
}
