/** The state of the cluster on one page. */

import type { ComponentChildren } from "preact";
import { JOB_STATUSES } from "../../../src/core/jobs/job.ts";
import { amongPeers, link, overview } from "../api/live.ts";
import { useResource } from "../api/resource.ts";
import type { OverviewBody } from "../../../src/api/overview.ts";
import { count, duration, perSecond } from "../parts/format.ts";
import { NodeLink } from "../parts/links.tsx";
import { Empty, Loading, sentence } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";
import { to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { isOwnAffair, JournalList } from "./journal-list.tsx";
import { Section } from "../parts/table.tsx";
import { OverviewCharts } from "./overview-charts.tsx";

export function OverviewScreen() {
  const now = overview.value;
  if (!now) {
    return (
      <Page title="Overview">
        {link.value.state === "lost" ? (
          <Empty title="The node does not answer">
            This page tries again by itself. Is the node running? Its log says why it stopped.
          </Empty>
        ) : (
          <Loading what="the state of the cluster" />
        )}
      </Page>
    );
  }
  return (
    <Page
      title="Overview"
      about={
        <>
          {now.cluster.total_nodes === 1 ? "One node" : `${now.cluster.total_nodes} nodes`}, jobs in{" "}
          {now.cluster.store}, coordination{" "}
          {amongPeers.value ? "among peers" : `by ${now.cluster.coordination}`}
        </>
      }
      actions={
        <a class="button primary" href={to(["jobs", "new"])}>
          New job
        </a>
      }
    >
      <Alerts alerts={now.alerts} />
      <Counts now={now} />
      <Facts now={now} />
      <OverviewCharts />
      <News />
    </Page>
  );
}

/** Changes that people made are in the audit; here is what happened to the cluster. */
function News() {
  const { data } = useResource("GET /cluster/journal", { query: { limit: NEWS_ASKED } }, { freshMs: 1_000 });
  const entries = (data?.entries ?? [])
    .filter((entry) => entry.kind !== "audit" && !isOwnAffair(entry))
    .slice(0, NEWS_SHOWN);
  return (
    <Section id="news" title="What happened">
      {entries.length > 0 && <JournalList entries={entries} />}
      <p>
        <a href={to(["audit"], { kind: "all" })}>
          {entries.length > 0 ? "All events" : "Nothing lately; all events"}
        </a>
      </p>
    </Section>
  );
}

const NEWS_ASKED = 30;
const NEWS_SHOWN = 8;

function Alerts({ alerts }: { alerts: OverviewBody["alerts"] }) {
  if (alerts.length === 0) {
    return (
      <p class="calm" role="status">
        <Status word="all well" tone="good" /> <span class="muted">No alerts.</span>
      </p>
    );
  }
  return (
    <ul class="alerts" aria-label="Alerts">
      {alerts.map(({ code, severity, subject, message, remedy, since }) => (
        <li key={`${code} ${subject}`} class={`note ${severity === "critical" ? "bad" : "wait"}`}>
          <p>
            <Status word={severity} /> <strong>{sentence(message)}.</strong>{" "}
            <span class="muted">
              Noticed <Ago at={since} />.
            </span>
          </p>
          <p>
            {sentence(remedy)}. <WayTo code={code} subject={subject} />
          </p>
        </li>
      ))}
    </ul>
  );
}

/** A link to the details. */
function WayTo({ code, subject }: { code: string; subject: string | null }) {
  switch (code) {
    case "backlog_old":
    case "queue_paused":
    case "no_worker":
      return <a href={to(["jobs"], { status: "queued", queue: subject })}>Show what waits</a>;
    case "node_dead":
    case "node_lagging":
    case "node_unreachable":
    case "version_mix":
      return <a href={to(["nodes"], { node: subject })}>Show the nodes</a>;
    case "failures_rising":
      return <a href={to(["failures"])}>Show the failures</a>;
    case "schedule_late":
      return subject === null ? null : <a href={to(["schedules", subject])}>Show the schedule</a>;
    case "no_leader":
    case "stale_writes":
      return <a href={to(["leadership"])}>Show who leads</a>;
    default:
      return null;
  }
}

function Counts({ now }: { now: OverviewBody }) {
  return (
    <ul class="counts" aria-label="Jobs by state">
      {JOB_STATUSES.map((status) => (
        <li key={status}>
          <a href={to(["jobs"], { status })}>
            <span class="counts-number num">{count(now.jobs[status])}</span>
            <Status word={status} />
          </a>
        </li>
      ))}
    </ul>
  );
}

function Facts({ now }: { now: OverviewBody }) {
  const { cluster, leader, rates, times, backlog, workers } = now;
  const away = cluster.total_nodes - cluster.active_nodes;
  const tiles: readonly (readonly [name: string, value: ComponentChildren, more: ComponentChildren])[] = [
    [
      "Leader",
      leader ? <NodeLink name={leader.node_id} /> : <Status word="none" tone="bad" />,
      leader && (
        <>
          epoch <strong data-testid="epoch">{leader.epoch}</strong>, since <Ago at={leader.acquired_at} />
        </>
      ),
    ],
    [
      "Nodes",
      <a href={to(["nodes"])}>
        {cluster.active_nodes} of {cluster.total_nodes}
      </a>,
      away === 0 ? "all active" : awayText(cluster),
    ],
    ["In per second", perSecond(rates.submitted_per_second), "submitted"],
    ["Out per second", perSecond(rates.finished_per_second), `${perSecond(rates.failed_per_second)} failed`],
    ["Workers", `${count(workers.running)} of ${count(workers.slots)}`, "slots in use"],
    [
      "Oldest waiting",
      backlog.oldest_age_ms === null ? "none" : duration(backlog.oldest_age_ms),
      `${count(backlog.ready)} ready to run`,
    ],
    ["Wait", ...percentiles(times.wait_ms, times.of)],
    ["Run", ...percentiles(times.run_ms, times.of)],
  ];
  return (
    <dl class="tiles">
      {tiles.map(([name, value, more]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="tile-value num">{value}</dd>
          <dd class="muted">{more}</dd>
        </div>
      ))}
    </dl>
  );
}

function awayText({ draining_nodes, dead_nodes, joining_nodes }: OverviewBody["cluster"]): string {
  return [
    [dead_nodes, "dead"],
    [draining_nodes, "draining"],
    [joining_nodes, "joining"],
  ]
    .filter(([number]) => Number(number) > 0)
    .map(([number, word]) => `${number} ${word}`)
    .join(", ");
}

/** The median, and the slower ones. */
function percentiles(times: OverviewBody["times"]["wait_ms"], of: number): readonly [string, string] {
  if (times === null) return ["–", "no finished jobs yet"];
  const { p50, p95, p99 } = times;
  return [duration(p50), `p95 ${duration(p95)}, p99 ${duration(p99)}, of ${count(of)}`];
}
