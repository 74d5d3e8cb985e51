/** The leaders, their terms and why they ended, and refused stale writes. */

import type { AnswerOf } from "../../../src/api/operation-table.ts";
import { words } from "../../../src/core/journal-text.ts";
import { LEADER_ROLES } from "../../../src/core/leadership/term.ts";
import { amongPeers } from "../api/live.ts";
import { useResource } from "../api/resource.ts";
import { second } from "../clock.ts";
import { count, duration, plural } from "../parts/format.ts";
import { JobLink, NodeLink, Tabs } from "../parts/links.tsx";
import { Empty, PartialNote, ProblemNote, ResourceNote } from "../parts/notes.tsx";
import { Status } from "../parts/status.tsx";
import { type Column, Section, Table } from "../parts/table.tsx";
import { Ago, At, Took } from "../parts/time.tsx";
import { place, to } from "../route.ts";
import { Page } from "../shell/page.tsx";

export function LeadershipScreen() {
  const roles = amongPeers.value ? (["scheduler"] as const) : LEADER_ROLES;
  const role = roles.find((each) => each === place.value.query["role"]) ?? "scheduler";
  const leaders = useResource("GET /cluster/leaders", {}, { freshMs: 1_000, everyMs: 5_000 });
  const history = useResource(
    "GET /cluster/leaders/history",
    { query: { role, limit: 50 } },
    { freshMs: 1_000 },
  );
  return (
    <Page
      title="Leadership"
      about={`One node leads${amongPeers.value ? "" : " in each role"}, under an epoch that only grows. What is written under an older one is refused.`}
    >
      <ResourceNote of={leaders} what="the leaders" />
      <Table
        label="Leaders"
        rows={leaders.data?.leaders.filter((leader) => roles.some((each) => each === leader.role))}
        keyOf={(leader) => leader.role}
        columns={LEADER_COLUMNS}
      />
      {amongPeers.value ? (
        <p class="muted">
          In a cluster of peers each node takes samples and removes old jobs in its own store, without a
          leader.
        </p>
      ) : (
        <Tabs label="Role" current={role}>
          {roles.map((each) => [each, to(["leadership"], { role: each }), words(each)])}
        </Tabs>
      )}
      {history.problem && <ProblemNote problem={history.problem} retry={history.reload} />}
      {history.data && (
        <>
          <PartialNote of={history.data} />
          <Terms terms={history.data.terms} />
          <Refused refused={history.data.refused} />
        </>
      )}
    </Page>
  );
}

type Leader = AnswerOf<"GET /cluster/leaders">["leaders"][number];

const LEADER_COLUMNS: readonly Column<Leader>[] = [
  ["Role", ({ role }) => words(role)],
  ["Leader", (leader) => <NodeLink name={leader.node_id} />],
  ["Epoch", ({ epoch }) => epoch, "right num"],
  ["Since", (leader) => <Ago at={leader.acquired_at} />],
  [
    "Lease",
    ({ valid, lease_until: until }) => (
      <>
        <Status word={valid ? "valid" : "run out"} tone={valid ? "good" : "bad"} />{" "}
        <span class="muted">
          until <At at={until} />
        </span>
      </>
    ),
  ],
];

type History = AnswerOf<"GET /cluster/leaders/history">;

const TERM_COLUMNS: readonly Column<History["terms"][number]>[] = [
  ["Epoch", ({ epoch }) => epoch, "right num narrow"],
  ["Node", (term) => <NodeLink name={term.node_id} />],
  ["Began", (term) => <Ago at={term.started_at} />],
  ["Led for", (term) => <Took from={term.started_at} until={term.ended_at} />, "right"],
  [
    "Ended because",
    ({ ended_at: end, reason }) =>
      end === null ? <Status word="leads now" tone="good" /> : (reason ?? "not known"),
    "wide-cell",
  ],
];

function Terms({ terms }: { terms: History["terms"] }) {
  if (terms.length === 0) return <Empty title="No term has been recorded yet" />;
  return (
    <Section id="terms" title="Terms">
      <Strip terms={terms} />
      <Table
        label="Terms"
        rows={terms}
        keyOf={(term) => `${term.epoch} ${term.node_id} ${term.started_at}`}
        columns={TERM_COLUMNS}
      />
    </Section>
  );
}

const HUES = [212, 147, 37, 271, 5, 186];

const hueOf = (index: number): string => `hsl(${HUES[index % HUES.length]} 45% 56%)`;

/** The same as a picture: time from left to right, a colour for each node. */
function Strip({ terms }: { terms: History["terms"] }) {
  const oldestFirst = [...terms].reverse();
  const from = Date.parse(oldestFirst[0]!.started_at);
  const now = second.value;
  const span = Math.max(1, now - from);
  const names = [...new Set(oldestFirst.map(({ node_id }) => node_id))].sort();
  return (
    <>
      <div class="strip" aria-hidden="true">
        {oldestFirst.map((term) => {
          const start = Date.parse(term.started_at);
          const end = term.ended_at ? Date.parse(term.ended_at) : now;
          const left = `${((start - from) / span) * 100}%`;
          const width = `${Math.max(0.4, ((end - start) / span) * 100)}%`;
          return (
            <span
              key={`${term.epoch} ${term.node_id}`}
              class="strip-term"
              style={{ left, width, "--key": hueOf(names.indexOf(term.node_id)) }}
              title={`${term.node_id}, epoch ${term.epoch}`}
            />
          );
        })}
      </div>
      <p class="row muted">
        {names.map((name, index) => (
          <span key={name} class="strip-key" style={{ "--key": hueOf(index) }}>
            {name}
          </span>
        ))}
        <span class="grow" />
        <span>
          {plural(terms.length, "term")} in {duration(span)}
        </span>
      </p>
    </>
  );
}

function Refused({ refused }: { refused: History["refused"] }) {
  return (
    <Section id="refused" title="Refused stale writes">
      {refused.count === 0 ? (
        <p class="muted">
          None. When a node that was paused or cut off wakes up and writes under an old epoch, it is rejected
          and listed here.
        </p>
      ) : (
        <>
          <p>
            <strong class="num">{count(refused.count)}</strong> refused; nothing of them was stored. The
            latest:
          </p>
          <Table
            label="Refused stale writes"
            rows={refused.examples}
            keyOf={(each) => `${each.at} ${each.node} ${each.job_id} ${each.what}`}
            columns={[
              ["When", ({ at }) => <Ago at={at} />],
              ["Node", ({ node }) => <NodeLink name={node} />],
              ["What", ({ what }) => what],
              ["Its epoch", (each) => each.carried_epoch, "right num"],
              ["Current epoch", (each) => each.current_epoch, "right num"],
              ["Job", ({ job_id: id }) => (id ? <JobLink id={id} /> : "–")],
            ]}
          />
        </>
      )}
    </Section>
  );
}
