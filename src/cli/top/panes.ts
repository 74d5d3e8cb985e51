/** The lists of the screen: nodes, queues, running jobs, events. */

import type { JournalEntryBody } from "../../api/operations/cluster/journal.ts";
import { journalText, journalTone } from "../../core/journal-text.ts";
import { nodeColumns, nodeFacts, reachFacts } from "../cluster/node-text.ts";
import { jobFacts, runningColumns } from "../jobs/job-text.ts";
import { queueColumns } from "../jobs/queues.ts";
import {
  type Column,
  columnLines,
  type Line,
  piece,
  factLines,
  type Facts,
  toneStyle,
} from "../terminal/output.ts";
import { since, span, timeAndAge } from "../../core/format-figures.ts";
import type { ScreenSize } from "./header-view.ts";
import { type Model, type Pane, selectedIndex } from "./top-model.ts";
import { plain, wrapped } from "../terminal/plain-text.ts";

export interface PaneView {
  readonly pane: Pane;
  readonly head: Line;
  readonly rows: readonly Line[];
  readonly selected: number;
  readonly empty: string;
}

const EMPTY: Readonly<Record<Pane, string>> = {
  nodes: "no nodes yet",
  queues: "no queues yet",
  jobs: "no running jobs",
  events: "no events yet",
};

export function paneView(model: Model, pane: Pane, size: ScreenSize): PaneView {
  const [head, ...rows] = paneLines(model, pane, size);
  return { pane, head, rows, selected: selectedIndex(model, pane), empty: EMPTY[pane] };
}

function paneLines(model: Model, pane: Pane, { now, width }: ScreenSize): readonly [Line, ...Line[]] {
  const { nodes, queues, jobs, events, overview } = model;
  const lines = <Row>(columns: readonly Column<Row>[], rows: readonly Row[]) =>
    columnLines(columns, rows, {
      width,
      live: true,
      head: model.pane === pane ? ["bold", "inverse"] : "bold",
    });
  switch (pane) {
    case "nodes":
      return lines(nodeColumns({ now, nodes, live: { leader: overview?.leader?.node_id ?? null } }), nodes);
    case "queues":
      return lines(queueColumns(now, true), queues);
    case "jobs":
      return lines(runningColumns(now, width), jobs);
    case "events":
      return lines(eventColumns(now), events);
  }
}

function eventColumns(now: number): readonly Column<JournalEntryBody>[] {
  return [
    ["events", ({ at }) => piece(clockText(at, now), "dim"), { width: 8 }],
    [
      "",
      (entry) => piece(journalText(entry), toneStyle(journalTone(entry.kind))),
      { width: 20, flexible: true },
    ],
  ];
}

/** The time of day; of another day, how long ago. */
function clockText(at: string, now: number): string {
  const ageMs = now - Date.parse(at);
  return ageMs > 43_200_000 ? `${span(ageMs)} ago` : new Date(Date.parse(at)).toTimeString().slice(0, 8);
}

export function detailLines(model: Model, { width, now }: ScreenSize): Line[] {
  return [[], ...factLines(detailOf(model, now), width - 4).map((line) => [piece("  "), ...line])];
}

export function alertsInFull({ overview }: Model, { width, now }: ScreenSize): Line[] {
  const alerts = overview?.alerts ?? [];
  if (alerts.length === 0) return [[], [piece("  no alerts", "green")]];
  return alerts.flatMap(({ severity, message, remedy, since: from }): Line[] => [
    [],
    ...wrapped(plain(message), width - 4).map((text): Line => [
      piece(`  ${text}`, severity === "critical" ? ["bold", "red"] : "yellow"),
    ]),
    ...wrapped(`→ ${plain(remedy)}`, width - 6).map((text): Line => [piece(`    ${text}`)]),
    [piece(`    for ${since(now, from)}`, "dim")],
  ]);
}

function detailOf(model: Model, now: number): Facts {
  const at = selectedIndex(model);
  switch (model.pane) {
    case "nodes":
      return [...nodeFacts(model.nodes[at]!, now), ...reachFacts(model.nodes[at]!)];
    case "queues": {
      const { name, paused, counts } = model.queues[at]!;
      return [["queue", name], ["state", paused ? "paused" : "open"], ...Object.entries(counts)];
    }
    case "jobs": {
      const job = model.jobs[at]!;
      return [...jobFacts(job, now), ["logs", `baton jobs logs -f ${job.job_id}`]];
    }
    case "events": {
      const entry = model.events[at]!;
      return [
        ["what", journalText(entry)],
        ["kind", entry.kind],
        ["at", timeAndAge(now, entry.at)],
        ["reported by", entry.node],
        ["actor", entry.actor],
        ["about", entry.subject],
        ["detail", JSON.stringify(entry.detail)],
      ];
    }
  }
}
