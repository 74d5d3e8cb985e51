/** Who did what, and the rest of the journal of the cluster. */

import { useResource } from "../api/resource.ts";
import type { JournalEntryBody } from "../../../src/api/operations/cluster/journal.ts";
import { words } from "../../../src/core/journal-text.ts";
import { Empty, PartialNote, ResourceNote } from "../parts/notes.tsx";
import { count, plural } from "../parts/format.ts";
import { Pager, Tabs } from "../parts/links.tsx";
import { Status } from "../parts/status.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { place, to } from "../route.ts";
import { Page } from "../shell/page.tsx";
import { JournalList } from "./journal-list.tsx";

const KINDS = [
  ["audit", "who did what"],
  ["term", "leadership"],
  ["node", "nodes"],
  ["handoff", "hand-overs"],
  ["write", "refused writes"],
  ["all", "everything"],
] as const;

export function AuditScreen() {
  const { query } = place.value;
  const kind = query["kind"] ?? "audit";
  const { cursor, subject } = query;
  const asked = { limit: 100, subject, cursor, ...(kind !== "all" && { kind }) };
  const journal = useResource("GET /cluster/journal", { query: asked }, { everyMs: 10_000 });
  const { data } = journal;
  return (
    <Page title="Audit" about="Every change made through any node, and what happened to the cluster.">
      <Tabs label="Kind" current={kind}>
        {KINDS.map(([each, text]) => [each, to(["audit"], { kind: each }), text])}
      </Tabs>
      <ResourceNote of={journal} what="the journal" />
      <PartialNote of={data} />
      {data?.entries.length === 0 && (
        <Empty title="Nothing was recorded yet">
          {kind === "audit"
            ? "Pause a queue or retry a job, and it is written down here with your name."
            : null}
        </Empty>
      )}
      {kind === "audit" ? (
        <Table
          label="Who did what"
          rows={data?.entries}
          keyOf={({ node, id }) => `${node} ${id}`}
          columns={COLUMNS}
        />
      ) : (
        data && <JournalList entries={data.entries} />
      )}
      <Pager next={data?.next_cursor} />
    </Page>
  );
}

const COLUMNS: readonly Column<JournalEntryBody>[] = [
  ["When", ({ at }) => <Ago at={at} />],
  [
    "Who",
    ({ actor }) => (
      <>
        {actor ?? <span class="muted">unknown</span>}
        {actor === "loopback" && <div class="muted">on the node's machine</div>}
      </>
    ),
  ],
  ["What", ({ detail }) => words(String(detail["operation"] ?? "–"))],
  [
    "Of",
    ({ subject, detail: { operation, params } }) => {
      const rest = restOf(params);
      return (
        <>
          {subject === null || subject === operation ? "–" : subject}
          {rest !== null && <div class="muted mono">{rest}</div>}
        </>
      );
    },
    "wide-cell",
  ],
  ["Outcome", ({ detail }) => <Outcome detail={detail} />],
  ["Through", ({ node }) => node],
];

/** Frequent operations are counted, and recorded once a minute. */
function Outcome({ detail }: { detail: JournalEntryBody["detail"] }) {
  const { status, count: times, refused, seconds, code } = detail;
  if (typeof times === "number") {
    const bad = code !== undefined ? times : Number(refused ?? 0);
    return (
      <>
        <Status word={bad > 0 ? `${count(bad)} refused` : "done"} tone={bad > 0 ? "bad" : "good"} />{" "}
        <span class="muted">
          {plural(times, "time")} in {String(seconds)} s{typeof code === "string" && `, ${code}`}
        </span>
      </>
    );
  }
  const failed = typeof status === "number" && status >= 400;
  return <Status word={failed ? `refused (${status})` : "done"} tone={failed ? "bad" : "good"} />;
}

const NAMES: ReadonlySet<string> = new Set(["id", "name", "user", "task", "agent_name"]);

/** The parameters that the row does not show elsewhere. */
function restOf(params: unknown): string | null {
  if (typeof params !== "object" || params === null) return null;
  const rest = Object.entries(params).filter(([name]) => !NAMES.has(name));
  if (rest.length === 0) return null;
  return rest.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ");
}
