/** The details of the selected row, or all alerts, shown instead of the lists. */

import { journalText } from "../../core/journal-text.ts";
import { nodeFacts, reachFacts } from "../cluster/node-text.ts";
import { jobFacts } from "../jobs/job-text.ts";
import type { Line } from "../terminal/columns.ts";
import { piece } from "../terminal/columns.ts";
import { since, timeAndAge } from "../../core/figures.ts";
import type { Facts } from "../terminal/output.ts";
import { factLines } from "../terminal/output.ts";
import { plain, wrapped } from "../terminal/plain-text.ts";
import type { ScreenSize } from "./header-view.ts";
import type { Model } from "./top-model.ts";
import { selectedIndex } from "./top-model.ts";

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
