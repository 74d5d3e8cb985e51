/**
 * `baton top` as a state machine: data and keys come in, the next state and the actions come out. It uses no clock, no
 * terminal and no network.
 *
 *   browse ──d r p c──▶ confirm ──y──▶ act
 *     │ ▲                  └──n esc──▶ browse
 *   ? a enter │ any key
 *     ▼ │
 *   help, alerts, detail
 */

import type { JobSummaryBody } from "../../api/bodies/job-body.ts";
import type { NodeBody } from "../../api/operations/cluster/nodes.ts";
import type { QueueBody } from "../../api/operations/jobs/queues.ts";
import type { JournalEntryBody } from "../../api/operations/cluster/journal.ts";
import type { OverviewBody } from "../../api/overview.ts";
import { several } from "../../core/format-figures.ts";
import type { Key } from "./tty-session.ts";

export const PANES = ["nodes", "queues", "jobs", "events"] as const;
export type Pane = (typeof PANES)[number];

export interface Lists {
  readonly nodes: readonly NodeBody[];
  readonly queues: readonly QueueBody[];
  readonly jobs: readonly JobSummaryBody[];
}

export interface Model extends Lists {
  readonly overview: OverviewBody | null;
  /** Newest first. */
  readonly events: readonly JournalEntryBody[];
  readonly rates: readonly { readonly in: number; readonly out: number }[];
  readonly pane: Pane;
  /** The selected row of each pane, by its key: rows come and go. */
  readonly selected: Readonly<Record<Pane, string | null>>;
  readonly mode:
    | { readonly kind: "browse" | "help" | "alerts" | "detail" }
    | { readonly kind: "confirm"; readonly question: string; readonly action: Action };
  readonly message: { readonly text: string; readonly bad: boolean } | null;
  readonly trouble: string | null;
}

export type Action =
  | { readonly do: "drain" | "resume"; readonly node: string }
  | { readonly do: "pause" | "unpause"; readonly queue: string }
  | { readonly do: "cancel"; readonly job: string };

export type TopEvent =
  | { readonly kind: "overview"; readonly overview: OverviewBody }
  | { readonly kind: "lists"; readonly lists: Partial<Lists> }
  | { readonly kind: "journal"; readonly entries: readonly JournalEntryBody[] }
  | { readonly kind: "trouble"; readonly reason: string }
  | { readonly kind: "done"; readonly text: string; readonly bad: boolean }
  | { readonly kind: "quiet" }
  | { readonly kind: "key"; readonly key: Key; readonly page: number };

export interface Step {
  readonly model: Model;
  readonly todo: "quit" | "suspend" | "redraw" | Action | null;
}

const EVENTS_MAX = 200;
const RATES_MAX = 60;

export const FIRST: Model = {
  overview: null,
  nodes: [],
  queues: [],
  jobs: [],
  events: [],
  rates: [],
  pane: "nodes",
  selected: { nodes: null, queues: null, jobs: null, events: null },
  mode: { kind: "browse" },
  message: null,
  trouble: null,
};

export function step(model: Model, event: TopEvent): Step {
  switch (event.kind) {
    case "overview": {
      const { submitted_per_second, finished_per_second } = event.overview.rates;
      const rate = { in: submitted_per_second, out: finished_per_second };
      const rates = [...model.rates, rate].slice(-RATES_MAX);
      return still({ ...model, overview: event.overview, rates, trouble: null });
    }
    case "lists":
      return still({ ...model, ...event.lists });
    case "journal": {
      const known = new Set(event.entries.map(entryKey));
      const old = model.events.filter((entry) => !known.has(entryKey(entry)));
      const events = [...event.entries, ...old].sort((a, b) => (a.at < b.at ? 1 : -1));
      return still({ ...model, events: events.slice(0, EVENTS_MAX) });
    }
    case "trouble":
      return still({ ...model, trouble: event.reason });
    case "done":
      return still({ ...model, message: { text: event.text, bad: event.bad } });
    case "quiet":
      return still({ ...model, message: null });
    case "key":
      return pressed(model, event.key, event.page);
  }
}

function still(model: Model): Step {
  return { model, todo: null };
}

function pressed(model: Model, key: Key, page: number): Step {
  if (key === "interrupt") return { model, todo: "quit" };
  if (key === "suspend" || key === "redraw") return { model, todo: key };
  const browse: Model = { ...model, mode: { kind: "browse" } };
  switch (model.mode.kind) {
    case "help":
    case "alerts":
    case "detail":
      return isChar(key, "q") ? { model, todo: "quit" } : still(browse);
    case "confirm":
      if (isChar(key, "y")) return { model: browse, todo: model.mode.action };
      return key === "escape" || key === "enter" || isChar(key, "n") || isChar(key, "q")
        ? still({ ...browse, message: { text: "nothing was changed", bad: false } })
        : still(model);
    case "browse":
      return typeof key === "string" ? moved(model, key, page) : typed(model, key.char);
  }
}

function isChar(key: Key, char: string): boolean {
  return typeof key !== "string" && key.char.toLowerCase() === char;
}

const PANE_STEPS = { tab: 1, right: 1, "back-tab": -1, left: -1 } as const;

function moved(model: Model, key: Exclude<Key, object>, page: number): Step {
  const rows = { up: -1, down: 1, "page-up": -page, "page-down": page, home: -Infinity, end: Infinity };
  if (key === "escape") return still({ ...model, message: null });
  if (key === "enter") {
    return still(ROW_KEYS[model.pane](model).length === 0 ? model : { ...model, mode: { kind: "detail" } });
  }
  if (key in rows) return still(selecting(model, rows[key as keyof typeof rows]));
  const by = PANE_STEPS[key as keyof typeof PANE_STEPS];
  const at = (PANES.indexOf(model.pane) + by + PANES.length) % PANES.length;
  return still({ ...model, pane: PANES[at]! });
}

function typed(model: Model, char: string): Step {
  const pane = PANES[Number(char) - 1];
  if (pane !== undefined) return still({ ...model, pane });
  switch (char) {
    case "q":
      return { model, todo: "quit" };
    case "?":
    case "h":
      return still({ ...model, mode: { kind: "help" } });
    case "a":
      return still({ ...model, mode: { kind: "alerts" } });
    case "k":
      return still(selecting(model, -1));
    case "j":
      return still(selecting(model, 1));
    default:
      return asking(model, char);
  }
}

function asking(model: Model, char: string): Step {
  const at = selectedIndex(model);
  const { pane } = model;
  const node = pane === "nodes" ? model.nodes[at] : undefined;
  const queue = pane === "queues" ? model.queues[at] : undefined;
  const job = pane === "jobs" ? model.jobs[at] : undefined;
  const ask = (question: string, action: Action): Step =>
    still({ ...model, mode: { kind: "confirm", question, action } });
  const hint = (text: string): Step => still({ ...model, message: { text, bad: false } });
  switch (char) {
    case "d":
      if (!node) return hint("d drains a node: select one first (1)");
      return ask(
        `Drain ${node.name}? It finishes ${several(node.load.jobs, "running job")} and takes no more.`,
        { do: "drain", node: node.name },
      );
    case "r":
      if (!node) return hint("r lets a drained node work again: select one first (1)");
      return ask(`Let ${node.name} take work again?`, { do: "resume", node: node.name });
    case "p":
      if (!queue) return hint("p pauses a queue, or resumes it: select one first (2)");
      return queue.paused
        ? ask(`Resume queue ${queue.name}? ${several(queue.counts.queued, "job")} wait there.`, {
            do: "unpause",
            queue: queue.name,
          })
        : ask(`Pause queue ${queue.name}? Jobs that run go on.`, { do: "pause", queue: queue.name });
    case "c":
      if (!job) return hint("c cancels a running job: select one first (3)");
      return ask(`Cancel ${job.job_id} (${job.task})?`, { do: "cancel", job: job.job_id });
    default:
      return still(model);
  }
}

function selecting(model: Model, by: number): Model {
  const keys = ROW_KEYS[model.pane](model);
  if (keys.length === 0) return model;
  const at = Math.min(keys.length - 1, Math.max(0, selectedIndex(model) + by));
  return { ...model, selected: { ...model.selected, [model.pane]: keys[at]! }, message: null };
}

const ROW_KEYS: Readonly<Record<Pane, (model: Model) => readonly string[]>> = {
  nodes: ({ nodes }) => nodes.map(({ name }) => name),
  queues: ({ queues }) => queues.map(({ name }) => name),
  jobs: ({ jobs }) => jobs.map(({ job_id: id }) => id),
  events: ({ events }) => events.map(entryKey),
};

/** Ids are those of the node that wrote the entry. */
function entryKey({ node, id }: JournalEntryBody): string {
  return `${node} ${id}`;
}

/** The first row, when the one that was selected is gone. */
export function selectedIndex(model: Model, pane: Pane = model.pane): number {
  const key = model.selected[pane];
  return key === null ? 0 : Math.max(0, ROW_KEYS[pane](model).indexOf(key));
}
