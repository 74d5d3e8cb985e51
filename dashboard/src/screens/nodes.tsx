/** The nodes: their load, which of them reach each other, and drains. */

import type { ComponentChildren } from "preact";
import type { NodeBody } from "../../../src/api/operations/cluster/nodes.ts";
import { NODE_ROLES } from "../../../src/core/node.ts";
import { amongPeers, overview } from "../api/live.ts";
import { useResource } from "../api/resource.ts";
import type { Route } from "../../../src/api/operation-table.ts";
import { Action, type ActionProps } from "../parts/action.tsx";
import { count, duration, percent, plural } from "../parts/format.ts";
import { pageAt } from "../parts/links.tsx";
import { Meter } from "../parts/meter.tsx";
import { ResourceNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { type Column, Scroll, Section, Table } from "../parts/table.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { place } from "../route.ts";
import { Page } from "../shell/page.tsx";

/** A loop that lags behind so far answers late; health checks of others wait a second or so. */
const LAG_MS_LATE = 200;

export function NodesScreen() {
  const listed = useResource("GET /cluster/nodes", {}, { freshMs: 1_000, everyMs: 2_000 });
  const nodes = listed.data?.nodes ?? [];
  const kept = useResource(amongPeers.value ? "GET /cluster/metrics-summary" : null, {}, { everyMs: 5_000 });
  const ownedBy = (node: NodeBody): number | null =>
    node.load.owned ??
    kept.data?.nodes.find(({ name, up }) => up && name === node.name)?.jobs_owned_total ??
    null;
  const owners = nodes.some((node) => ownedBy(node) !== null);
  const marked = place.value.query["node"];
  return (
    <Page title="Nodes" about="Any node takes any request; one leads.">
      <ResourceNote of={listed} what="nodes" />
      <Table
        label="Nodes"
        rows={nodes}
        keyOf={({ name }) => name}
        rowClass={({ name }) => (name === marked ? "chosen" : undefined)}
        columns={columns(owners ? ownedBy : null, listed.reload)}
      />
      <Drains nodes={nodes} />
      <ReachMatrix nodes={nodes} />
    </Page>
  );
}

function columns(
  /** Null where no node owns jobs. */
  ownedBy: ((node: NodeBody) => number | null) | null,
  reload: () => void,
): readonly (Column<NodeBody> | false)[] {
  const unlessDead =
    (cell: (node: NodeBody) => ComponentChildren) =>
    (node: NodeBody): ComponentChildren =>
      node.status === "dead" ? "–" : cell(node);
  const ownedHint = amongPeers.value ? "all jobs that it keeps, also finished ones" : "unfinished jobs";
  return [
    ["Node", (node) => <NameCell node={node} />],
    [
      "Status",
      ({ status, alive }) => (
        <>
          <Status word={status} />
          {!alive && status !== "dead" && <Status word="silent" tone="bad" />}
        </>
      ),
    ],
    ["Seen", (node) => <Ago at={node.last_seen} none="never" />],
    ["Running", unlessDead(({ load }) => count(load.jobs)), "right num"],
    ownedBy !== null && [
      "Owned jobs",
      unlessDead((node) => {
        const owned = ownedBy(node);
        return owned === null ? "–" : count(owned);
      }),
      "right num",
      ownedHint,
    ],
    ["CPU", unlessDead(({ load }) => <Share of={load.cpu} label="of all cores of its machine" />)],
    ["Memory", unlessDead(({ load }) => <Share of={load.memory} label="of the machine's memory" />)],
    [
      "Loop lag",
      unlessDead(({ load: { loop_lag_ms: ms } }) => (
        <span class={ms >= LAG_MS_LATE ? "bad-text" : undefined}>{duration(ms)}</span>
      )),
      "right num",
    ],
    ["Up", unlessDead((node) => <Took from={node.started_at} until={null} />)],
    ["", (node) => <NodeAction node={node} onDone={reload} />, "right"],
  ];
}

function Share({ of, label }: { of: number; label: string }) {
  return <Meter share={of} text={percent(of)} label={label} />;
}

function NameCell({ node }: { node: NodeBody }) {
  const { name, status, roles, version } = node;
  const leader = overview.value?.leader;
  const page = status === "dead" ? null : pageAt(node.url);
  const all = NODE_ROLES.every((role) => roles.includes(role));
  return (
    <>
      {page === null ? (
        name
      ) : (
        <a href={page} rel="noreferrer" title={`the page of ${name}`}>
          {name}
        </a>
      )}{" "}
      {leader?.node_id === name && <Status word={`leads, epoch ${leader.epoch}`} tone="busy" />}
      <div class="muted node-about">
        {all ? "all roles" : roles.join(", ")} · {version}
      </div>
    </>
  );
}

/** What a drain means for that node, now. */
function drainText({ load }: NodeBody): string {
  const runs = load.jobs === 0 ? "" : `, finishes what it runs (${plural(load.jobs, "job")})`;
  const owns = load.owned ? `, hands over what it owns (${plural(load.owned, "job")})` : "";
  return `It takes no more work${runs}${owns}, and stays up until it is stopped or resumed.`;
}

function NodeAction({ node, onDone }: { node: NodeBody; onDone: () => void }) {
  const { name, status } = node;
  const [verb, route, done, ask]: readonly [string, Route, string, ActionProps["ask"]?] =
    status === "draining"
      ? ["Resume", "POST /cluster/nodes/{name}/resume", "was asked to work again"]
      : status === "dead"
        ? ["Remove", "DELETE /cluster/nodes/{name}", "is removed", REMOVAL]
        : ["Drain", "POST /cluster/nodes/{name}/drain", "was asked to drain", { body: drainText(node) }];
  return (
    <Action
      route={route}
      send={{ params: { name } }}
      label={`${verb} ${name}`}
      done={`${name} ${done}.`}
      onDone={onDone}
      off={verb === "Drain" && status !== "active" ? `It is ${status}.` : null}
      ask={ask}
      class="small"
    >
      {ask ? `${verb}…` : verb}
    </Action>
  );
}

const REMOVAL = {
  body: "Only in a cluster of peers: it no longer counts for a majority, and must join again. Where nodes share a database it is forgotten by itself.",
  danger: true,
};

function Drains({ nodes }: { nodes: readonly NodeBody[] }) {
  const draining = nodes.filter(({ status }) => status === "draining");
  if (draining.length === 0) return null;
  return (
    <Section id="drains" title="Drains">
      {draining.map((node) => (
        <DrainProgress key={node.name} node={node} />
      ))}
    </Section>
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

/** Which nodes reach each other: a row calls, a column is called. */
function ReachMatrix({ nodes }: { nodes: readonly NodeBody[] }) {
  if (nodes.length < 2 || nodes.every(({ reach }) => reach.length === 0)) return null;
  return (
    <Section id="reach" title="Who reaches whom">
      <Scroll label="Who reaches whom" class="matrix">
        <thead>
          <tr>
            <th>from ↓ to →</th>
            {nodes.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {nodes.map((from) => (
            <tr key={from.name}>
              <th scope="row">{from.name}</th>
              {nodes.map((target) => (
                <Cell key={target.name} from={from} target={target.name} />
              ))}
            </tr>
          ))}
        </tbody>
      </Scroll>
    </Section>
  );
}

function Cell({ from, target }: { from: NodeBody; target: string }) {
  if (from.name === target) return <td class="muted">·</td>;
  const reach = from.status === "dead" ? undefined : from.reach.find(({ node }) => node === target);
  if (!reach) return <td class="muted">unknown</td>;
  if (reach.ok) {
    return (
      <td class="good-text num">
        {reach.latency_ms === null ? "yes" : `${Math.round(reach.latency_ms)} ms`}
      </td>
    );
  }
  return (
    <td class="bad-text" title={reach.reason ?? undefined}>
      no{reach.reason && <div class="cell-reason">{reach.reason}</div>}
    </td>
  );
}
