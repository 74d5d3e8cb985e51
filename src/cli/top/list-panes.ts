/** The lists of the screen: nodes, queues, running jobs, events. */

import type { JournalEntryBody } from "../../api/bodies/journal-body.ts";
import { journalText, journalTone } from "../../core/journal-text.ts";
import { nodeColumns } from "../cluster/node-text.ts";
import { runningColumns } from "../jobs/job-text.ts";
import { queueColumns } from "../jobs/queues.ts";
import type { Column, Line } from "../terminal/columns.ts";
import { columnLines, piece } from "../terminal/columns.ts";
import { toneStyle } from "../terminal/output.ts";
import { span } from "../../core/figures.ts";
import type { ScreenSize } from "./header-view.ts";
import type { Model, Pane } from "./top-model.ts";
import { selectedIndex } from "./top-model.ts";

export interface PaneView {
  readonly pane: Pane;
  readonly head: Line;
  readonly rows: readonly Line[];
  /** The index of the selected row. */
  readonly selected: number;
  /** Shown where there are no rows. */
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
