/** The lists of the screen: nodes, queues, running jobs, events. */

import type { JournalEntryBody } from "../../api/bodies/journal-body.ts";
import type { JobSummaryBody } from "../../api/bodies/job-body.ts";
import type { NodeBody } from "../../api/bodies/node-body.ts";
import type { QueueBody } from "../../api/operations/jobs/queues.ts";
import { percent, perSecond, short, span } from "../terminal/number-format.ts";
import { journalStyle, journalText } from "../cluster/journal-text.ts";
import { STATUS_STYLES } from "../terminal/output.ts";
import type { HeaderStyle } from "./header-view.ts";
import type { Column, Line } from "./screen-line.ts";
import { columnsFor, headLine, piece, rowLine } from "./screen-line.ts";
import type { Model, Pane } from "./top-model.ts";
import { selectedIndex } from "./top-model.ts";

export interface PaneView {
  readonly pane: Pane;
  readonly head: Line;
  readonly rows: readonly Line[];
  /** Which of the rows is selected. */
  readonly selected: number;
  /** Said in place of rows that are not there. */
  readonly empty: string;
}

export function paneView(model: Model, pane: Pane, look: HeaderStyle): PaneView {
  const selected = selectedIndex(model, pane);
  switch (pane) {
    case "nodes":
      return {
        pane,
        selected,
        empty: "no nodes yet",
        ...listed(nodeColumns(model, look), model.nodes, model, pane, look),
      };
    case "queues":
      return {
        pane,
        selected,
        empty: "no queue has had a job yet",
        ...listed(queueColumns(look), model.queues, model, pane, look),
      };
    case "jobs":
      return {
        pane,
        selected,
        empty: "nothing runs",
        ...listed(jobColumns(look), model.jobs, model, pane, look),
      };
    case "events":
      return {
        pane,
        selected,
        empty: "nothing has happened yet",
        ...listed(eventColumns(look), model.events, model, pane, look),
      };
  }
}

function listed<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  model: Model,
  pane: Pane,
  { width }: HeaderStyle,
): Pick<PaneView, "head" | "rows"> {
  const shown = columnsFor(columns, width);
  const head = headLine(shown, model.pane === pane ? ["bold", "inverse"] : "bold");
  return { head, rows: rows.map((row) => rowLine(shown, row)) };
}

function nodeColumns({ overview, nodes }: Model, { now }: HeaderStyle): readonly Column<NodeBody>[] {
  const leader = overview?.leader?.node_id;
  return [
    { title: "NODES", width: 12, grows: true, cell: ({ name }) => name },
    { title: "STATUS", width: 8, cell: ({ status }) => piece(status, STATUS_STYLES[status] ?? null) },
    {
      title: "ROLE",
      width: 7,
      cell: ({ name, alive, roles }) => {
        if (name === leader) return piece("leader", ["bold", "magenta"]);
        return alive && roles.includes("scheduler") ? "standby" : "-";
      },
    },
    { title: "JOBS", width: 5, align: "right", cell: ({ load }) => short(load.jobs) },
    {
      title: "OWNED",
      width: 5,
      align: "right",
      spare: nodes.some(({ load }) => load.owned !== null) ? 3 : 9,
      cell: ({ load }) => (load.owned === null ? "-" : short(load.owned)),
    },
    { title: "CPU", width: 4, align: "right", cell: ({ load }) => percent(load.cpu) },
    { title: "MEM", width: 4, align: "right", cell: ({ load }) => percent(load.memory) },
    { title: "LAG", width: 6, align: "right", cell: ({ load }) => lag(load.loop_lag_ms) },
    { title: "REACHES", width: 7, align: "right", spare: 4, cell: reachText },
    { title: "SEEN", width: 6, align: "right", spare: 2, cell: ({ last_seen }) => since(last_seen, now) },
    { title: "VERSION", width: 8, spare: 6, cell: ({ version }) => version },
    { title: "URL", width: 24, spare: 7, cell: ({ url }) => url ?? "-" },
  ];
}

const LAG_MS_BAD = 200;

function lag(ms: number): ReturnType<typeof piece> {
  return piece(span(Math.round(ms)), ms >= LAG_MS_BAD ? "red" : null);
}

/** `2/2`: of the others, how many it reaches. */
function reachText({ reach }: NodeBody & { readonly reach?: readonly { readonly ok: boolean }[] }) {
  if (reach === undefined || reach.length === 0) return "-";
  const ok = reach.filter((each) => each.ok).length;
  return piece(`${ok}/${reach.length}`, ok < reach.length ? "red" : null);
}

function queueColumns({ now }: HeaderStyle): readonly Column<QueueBody>[] {
  return [
    { title: "QUEUES", width: 12, grows: true, cell: ({ name }) => name },
    { title: "STATE", width: 6, cell: ({ paused }) => (paused ? piece("paused", "yellow") : "open") },
    {
      title: "WAITING",
      width: 7,
      align: "right",
      cell: ({ counts }) => piece(short(counts.queued), counts.queued > 0 ? "cyan" : null),
    },
    {
      title: "OLDEST",
      width: 6,
      align: "right",
      cell: ({ oldest_waiting_at: at }) => since(at, now),
    },
    { title: "RUNNING", width: 7, align: "right", cell: ({ counts }) => short(counts.processing) },
    {
      title: "SLOTS",
      width: 5,
      align: "right",
      spare: 4,
      cell: ({ slots }) => short(slots),
    },
    {
      title: "IN",
      width: 7,
      align: "right",
      spare: 2,
      cell: (queue) => perSecond(queue.submitted_per_second),
    },
    {
      title: "OUT",
      width: 7,
      align: "right",
      spare: 2,
      cell: (queue) => perSecond(queue.finished_per_second),
    },
    {
      title: "FAILED",
      width: 6,
      align: "right",
      cell: ({ counts }) => piece(short(counts.failed), counts.failed > 0 ? "red" : null),
    },
    { title: "DONE", width: 6, align: "right", spare: 3, cell: ({ counts }) => short(counts.completed) },
  ];
}

const JOB_ID_WIDTH = 20;

function jobColumns({ now, width }: HeaderStyle): readonly Column<JobSummaryBody>[] {
  const whole = width >= 116;
  return [
    {
      title: "RUNNING",
      width: whole ? 45 : JOB_ID_WIDTH,
      cell: ({ job_id: id }) =>
        whole || id.length <= JOB_ID_WIDTH ? id : `${id.slice(0, 8)}…${id.slice(-11)}`,
    },
    { title: "TASK", width: 14, grows: true, cell: ({ task }) => task },
    { title: "QUEUE", width: 10, spare: 2, cell: ({ queue }) => queue },
    { title: "WORKER", width: 12, spare: 1, cell: ({ worker }) => worker ?? "-" },
    { title: "TRY", width: 3, align: "right", spare: 3, cell: ({ attempts }) => String(attempts) },
    { title: "FOR", width: 5, align: "right", cell: ({ started_at: at }) => since(at, now) },
    { title: "PROGRESS", width: 16, cell: progress },
  ];
}

const CELLS = 10;

function progress({ progress: at, progress_message: message, cancel_requested: told }: JobSummaryBody) {
  if (told) return piece("told to stop", "yellow");
  if (at === null) return message ?? "";
  const full = Math.min(CELLS, Math.max(0, Math.round((at / 100) * CELLS)));
  return `${"█".repeat(full)}${"░".repeat(CELLS - full)} ${Math.floor(at)}%`;
}

function eventColumns({ now }: HeaderStyle): readonly Column<JournalEntryBody>[] {
  return [
    { title: "EVENTS", width: 8, cell: ({ at }) => piece(clockText(at, now), "dim") },
    {
      title: "",
      width: 20,
      grows: true,
      cell: (entry) => piece(journalText(entry), journalStyle(entry.kind)),
    },
  ];
}

/** The time of day; of another day, how long ago. */
function clockText(at: string, now: number): string {
  const ageMs = now - Date.parse(at);
  return ageMs > 43_200_000 ? `${span(ageMs)} ago` : new Date(Date.parse(at)).toTimeString().slice(0, 8);
}

function since(at: string | null, now: number): string {
  return at === null ? "-" : span(Math.max(0, now - Date.parse(at)));
}
