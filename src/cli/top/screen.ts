/** Renders the whole screen for a state, a size and a time: as many lines as there are rows. */

import { alertsInFull, detailLines, paneView, type PaneView } from "./panes.ts";
import { headerLines, type ScreenSize } from "./header-view.ts";
import { edges, type Line, piece, textOf } from "../terminal/output.ts";
import { fit } from "../terminal/plain-text.ts";
import { type Model, type Pane, PANES } from "./top-model.ts";

const WIDTH_MIN = 40;
const HEIGHT_MIN = 10;

export function screen(model: Model, size: ScreenSize): readonly Line[] {
  const { width, height } = size;
  if (width < WIDTH_MIN || height < HEIGHT_MIN) {
    return filled([[piece(`${WIDTH_MIN}x${HEIGHT_MIN} or more, please`)]], height);
  }
  const head = headerLines(model, size);
  const foot = footLine(model, size);
  const room = height - head.length - 1;
  return [...head, ...filled(body(model, size, room), room), foot];
}

/** How many rows of the pane in use are seen: what a page is. */
export function pageOf(model: Model, size: ScreenSize): number {
  const room = size.height - headerLines(model, size).length - 1;
  const views = PANES.map((pane) => paneView(model, pane, size));
  return Math.max(1, heights(views, model.pane, room)[PANES.indexOf(model.pane)]! - 1);
}

function body(model: Model, size: ScreenSize, room: number): Line[] {
  if (model.mode.kind === "help") return helpLines();
  if (model.mode.kind === "alerts") return alertsInFull(model, size);
  if (model.mode.kind === "detail") return detailLines(model, size);
  if (model.overview === null) return [];
  const views = PANES.map((pane) => paneView(model, pane, size));
  const given = heights(views, model.pane, room);
  return views.flatMap((view, at) => paneLines(view, given[at]!, view.pane === model.pane, size.width));
}

function paneLines(
  { head, rows, selected, empty }: PaneView,
  height: number,
  active: boolean,
  width: number,
): Line[] {
  if (height === 0) return [];
  if (rows.length === 0) {
    return [head, ...(height > 1 ? [[piece(empty, "dim")]] : [])];
  }
  const room = height - 1;
  const from = Math.max(0, Math.min(selected - Math.floor(room / 2), rows.length - room));
  const seen = rows.slice(from, from + room);
  const hidden = rows.length - seen.length;
  return [
    hidden > 0 ? [...head.slice(0, -1), moreIn(head, from, seen.length, rows.length)] : head,
    ...seen.map((line, at) =>
      active && from + at === selected ? [piece(fit(textOf(line), width), "inverse")] : line,
    ),
  ];
}

function moreIn(head: Line, from: number, shown: number, all: number): Line[number] {
  const last = head.at(-1)!;
  const note = ` ${from + 1}-${from + shown} of ${all}`;
  const room = last.text.length - note.length;
  return room < 0 ? last : { ...last, text: last.text.slice(0, room).padEnd(room) + note };
}

/** Rows for each pane, its head among them: what all need if it fits, else shares, the largest for the one in use. */
export function heights(
  views: readonly Pick<PaneView, "pane" | "rows">[],
  active: Pane,
  room: number,
): readonly number[] {
  const wanted = views.map(({ rows }) => Math.max(1, rows.length) + 1);
  const given = views.map(({ pane }, at) => Math.min(wanted[at]!, pane === active ? 4 : 3));
  // Where even that is too much, the panes that are not in use give way, the last first.
  for (let at = views.length - 1; at >= 0 && sum(given) > room; at--) {
    if (views[at]!.pane !== active) given[at] = Math.max(0, given[at]! - (sum(given) - room));
  }
  const first = views.findIndex(({ pane }) => pane === active);
  // The one in use may have half of what is left before the others come.
  const half = given[first]! + Math.ceil((room - sum(given)) / 2);
  given[first] = Math.min(wanted[first]!, Math.max(given[first]!, half));
  for (let left = room - sum(given), grew = true; left > 0 && grew;) {
    grew = false;
    for (let at = 0; at < views.length && left > 0; at++) {
      if (given[at]! >= wanted[at]! || given[at] === 0) continue;
      given[at]!++;
      left--;
      grew = true;
    }
  }
  return given;
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

const KEYS: Readonly<Record<Pane, string>> = {
  nodes: "d drain  r resume",
  queues: "p pause or resume",
  jobs: "c cancel",
  events: "",
};

function footLine({ mode, message, pane }: Model, { width }: ScreenSize): Line {
  if (mode.kind === "confirm") return [piece(mode.question, ["bold", "yellow"]), piece("  y/n", "bold")];
  if (mode.kind !== "browse") return [piece("any key goes back  q quit", "dim")];
  const keys = ["q quit", "tab next", "↑↓ select", "enter more", KEYS[pane], "? help"].filter(
    (each) => each !== "",
  );
  const left = message === null ? [] : [piece(message.text, message.bad ? "red" : "green")];
  const right = [piece(keys.join("  "), "dim")];
  return message === null ? right : edges(left, right, width);
}

function helpLines(): Line[] {
  const rows: readonly (readonly [string, string])[] = [
    ["tab, ← →, 1 2 3 4", "the next list: nodes, queues, running jobs, events"],
    ["↑ ↓, j k, PgUp PgDn, Home End", "select a row"],
    ["enter", "everything about the row"],
    ["a", "the alerts in full, with what to do"],
    ["d", "drain the node: it finishes what runs and takes no more"],
    ["r", "let the node take work again"],
    ["p", "pause the queue, or resume it"],
    ["c", "cancel the job"],
    ["Ctrl-L", "draw anew"],
    ["Ctrl-Z", "put it into the background"],
    ["q, Ctrl-C", "quit"],
  ];
  return [
    [],
    ...rows.map(([keys, what]): Line => [piece(`  ${keys.padEnd(32)}`, "bold"), piece(what)]),
    [],
    [piece("  Nothing is changed before a y.", "dim")],
  ];
}

function filled(lines: readonly Line[], height: number): readonly Line[] {
  return [...lines.slice(0, height), ...Array.from({ length: Math.max(0, height - lines.length) }, () => [])];
}
