/** The first lines of the screen: the leader, the rates of jobs, the alerts. And one line of all that where there is no terminal. */

import { count, perSecond, several, short, since, span } from "../../core/format-figures.ts";
import { plain, shorten } from "../terminal/plain-text.ts";
import type { Style } from "../terminal/terminal.ts";
import type { OverviewBody } from "../../api/overview.ts";
import { edges, type Line, piece, type Piece } from "../terminal/output.ts";
import type { Model } from "./top-model.ts";

export interface ScreenSize {
  readonly width: number;
  readonly height: number;
  readonly now: number;
}

/** Above this many the rest is counted: an alert must not push away what it is about. */
const ALERTS_MAX = 3;

export function headerLines(model: Model, size: ScreenSize): Line[] {
  const { overview } = model;
  if (overview === null) {
    const trouble = model.trouble === null ? [] : [[piece(model.trouble, "red")]];
    return [titleLine(model, size), ...trouble];
  }
  return [
    titleLine(model, size),
    flowLine(overview, model, size.width),
    countsLine(overview, size.width),
    ...alertLines(overview, size),
  ];
}

function titleLine({ overview, trouble }: Model, { width, now }: ScreenSize): Line {
  const time = [piece(new Date(now).toTimeString().slice(0, 8), "dim")];
  if (overview === null) {
    const text = trouble === null ? "connecting …" : "not connected, trying again";
    return edges([piece(" baton top ", "inverse"), piece(`  ${text}`)], time, width);
  }
  const { cluster, leader, node } = overview;
  const nodes = `${cluster.active_nodes}/${cluster.total_nodes} nodes`;
  const ruled = leader?.acquired_at ? `, for ${since(now, leader.acquired_at)}` : "";
  const lead =
    leader === null
      ? [piece("no leader", ["bold", "red"])]
      : [piece(leader.node_id, "bold"), piece(` leads, epoch ${leader.epoch}${ruled}`)];
  const state: Piece[] = [
    ...(cluster.formed ? [] : [piece("  forming", "yellow")]),
    ...(trouble === null ? [] : [piece(`  ${node} does not answer`, ["bold", "red"])]),
    ...(overview.partial ? [piece(`  without ${overview.unreachable.join(", ")}`, "yellow")] : []),
  ];
  return edges(
    [piece(` ${cluster.name} `, "inverse"), piece("  "), ...lead, piece(`  ${nodes}`), ...state],
    time,
    width,
  );
}

function flowLine({ rates, times }: OverviewBody, { rates: history }: Model, width: number): Line {
  const curve = (of: "in" | "out"): Piece[] =>
    width < 110 ? [] : [piece(`${sparkline(history.map((each) => each[of]).slice(-12))} `, "cyan")];
  const percentiles = (name: string, of: OverviewBody["times"]["wait_ms"]): Piece[] => {
    if (of === null) return [];
    const median = width < 100 ? "" : `p50 ${span(of.p50)} `;
    return [piece(`   ${name} `, "dim"), piece(`${median}p95 ${span(of.p95)}`)];
  };
  return [
    piece("in ", "dim"),
    ...curve("in"),
    piece(perSecond(rates.submitted_per_second).padEnd(8)),
    piece("out ", "dim"),
    ...curve("out"),
    piece(perSecond(rates.finished_per_second).padEnd(8)),
    piece("failing ", "dim"),
    piece(perSecond(rates.failed_per_second), rates.failed_per_second > 0 ? "red" : null),
    ...percentiles("wait", times.wait_ms),
    ...percentiles("run", times.run_ms),
  ];
}

function countsLine({ jobs, backlog, workers }: OverviewBody, width: number): Line {
  const figure = width < 100 ? short : count;
  const part = (name: string, value: number, style: Style | null): Piece[] => [
    piece(`${name} `, "dim"),
    piece(figure(value), value > 0 ? style : null),
    piece("  "),
  ];
  const oldest = backlog.oldest_age_ms === null ? "" : ` (oldest ${span(backlog.oldest_age_ms)})`;
  return [
    piece("running ", "dim"),
    piece(`${figure(workers.running)}/${figure(workers.slots)}  `, workers.running > 0 ? "yellow" : null),
    piece("waiting ", "dim"),
    piece(`${figure(backlog.ready)}${oldest}  `, backlog.ready > 0 ? "cyan" : null),
    ...part("scheduled", jobs.scheduled, "blue"),
    ...part("done", jobs.completed, "green"),
    ...part("failed", jobs.failed, "red"),
    ...(width < 100 ? [] : part("cancelled", jobs.cancelled, null)),
  ];
}

function alertLines({ alerts }: OverviewBody, { width, height }: ScreenSize): Line[] {
  const room = height < 20 ? 1 : ALERTS_MAX;
  const shown = alerts.slice(0, alerts.length > room ? room - 1 || 1 : room);
  const lines = shown.map(({ severity, message, remedy }): Line => {
    const style: Style = severity === "critical" ? ["bold", "red"] : "yellow";
    return [piece(shorten(`! ${message}`, width), style), piece(`  → ${remedy}`, "dim")];
  });
  const rest = alerts.length - shown.length;
  if (rest > 0) lines.push([piece(`! and ${rest} more: press a`, "yellow")]);
  return lines;
}

export function overviewLine(overview: OverviewBody): string {
  const { at, leader, cluster, rates, backlog, workers, jobs, alerts } = overview;
  const lead = leader === null ? "no leader" : `${leader.node_id} leads (epoch ${leader.epoch})`;
  const { submitted_per_second: come, finished_per_second: end, failed_per_second: fail } = rates;
  const oldest = backlog.oldest_age_ms === null ? "" : `, oldest ${span(backlog.oldest_age_ms)}`;
  const codes = alerts.map(({ code }) => code).join(", ");
  return plain(
    [
      `${at} ${lead}`,
      `${cluster.active_nodes}/${cluster.total_nodes} nodes`,
      `in ${perSecond(come)}, out ${perSecond(end)}, failing ${perSecond(fail)}`,
      `running ${count(workers.running)}/${count(workers.slots)}, waiting ${count(backlog.ready)}${oldest}, failed ${count(jobs.failed)}`,
      ...(alerts.length === 0 ? [] : [`${several(alerts.length, "alert")}: ${codes}`]),
    ].join("; "),
  );
}

const BARS = "▁▂▃▄▅▆▇█";

export function sparkline(values: readonly number[]): string {
  const most = Math.max(...values, Number.EPSILON);
  return values.map((value) => BARS[Math.min(7, Math.floor((value / most) * 7.999))]!).join("");
}
