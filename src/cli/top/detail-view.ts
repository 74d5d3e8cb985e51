/** The details of the selected row, shown instead of the lists. */

import type { JobSummaryBody } from "../../api/bodies/job-body.ts";
import type { NodeBody } from "../../api/bodies/node-body.ts";
import { span } from "../terminal/number-format.ts";
import { journalText } from "../cluster/journal-text.ts";
import { plain, wrapped } from "../terminal/plain-text.ts";
import type { HeaderStyle } from "./header-view.ts";
import type { Line } from "./screen-line.ts";
import { piece } from "./screen-line.ts";
import type { Model } from "./top-model.ts";
import { selectedIndex } from "./top-model.ts";

export function detailLines(model: Model, { width, now }: HeaderStyle): Line[] {
  const facts = detailOf(model, now).filter(([, value]) => value !== "");
  const name = Math.max(...facts.map(([each]) => each.length)) + 2;
  return [
    [],
    ...facts.flatMap(([label, value]) =>
      wrapped(plain(value), width - name - 4).map((text, at): Line => [
        piece(`  ${(at === 0 ? label : "").padEnd(name)}`, "bold"),
        piece(text),
      ]),
    ),
  ];
}

export function alertsInFull({ overview }: Model, { width, now }: HeaderStyle): Line[] {
  const alerts = overview?.alerts ?? [];
  if (alerts.length === 0) return [[], [piece("  no alerts", "green")]];
  return alerts.flatMap(({ severity, message, remedy, since }): Line[] => [
    [],
    ...wrapped(plain(message), width - 4).map((text): Line => [
      piece(`  ${text}`, severity === "critical" ? ["bold", "red"] : "yellow"),
    ]),
    ...wrapped(`→ ${plain(remedy)}`, width - 6).map((text): Line => [piece(`    ${text}`)]),
    [piece(`    for ${span(Math.max(0, now - Date.parse(since)))}`, "dim")],
  ]);
}

type Facts = readonly (readonly [string, string])[];

function detailOf(model: Model, now: number): Facts {
  const at = selectedIndex(model);
  const ago = (time: string | null): string =>
    time === null ? "" : `${time} (${span(Math.max(0, now - Date.parse(time)))} ago)`;
  switch (model.pane) {
    case "nodes":
      return nodeFacts(model.nodes[at]!, ago);
    case "queues": {
      const { name, paused, counts } = model.queues[at]!;
      const each = Object.entries(counts).map(([status, amount]): [string, string] => [
        status,
        String(amount),
      ]);
      return [["queue", name], ["state", paused ? "paused" : "open"], ...each];
    }
    case "jobs":
      return jobFacts(model.jobs[at]!, ago);
    case "events": {
      const entry = model.events[at]!;
      return [
        ["what", journalText(entry)],
        ["kind", entry.kind],
        ["at", ago(entry.at)],
        ["told by", entry.node],
        ["who", entry.actor ?? ""],
        ["about", entry.subject ?? ""],
        ["detail", JSON.stringify(entry.detail)],
      ];
    }
  }
}

function nodeFacts(node: NodeBody, ago: (time: string | null) => string): Facts {
  const { reach } = node as {
    reach?: readonly { node: string; ok: boolean; latency_ms: number | null; reason: string | null }[];
  };
  return [
    ["node", node.name],
    ["status", node.status],
    ["url", node.url ?? "-"],
    ["host", node.hostname],
    ["version", node.version],
    ["roles", node.roles.join(", ")],
    ["tasks", node.capabilities.join(", ")],
    ["started", ago(node.started_at)],
    ["seen", ago(node.last_seen)],
    ["connections", String(node.load.connections)],
    ...(reach ?? []).map((each): [string, string] => [
      `reaches ${each.node}`,
      each.ok ? `in ${span(each.latency_ms)}` : `no: ${each.reason ?? "no answer"}`,
    ]),
  ];
}

function jobFacts(job: JobSummaryBody, ago: (time: string | null) => string): Facts {
  return [
    ["job", job.job_id],
    ["task", job.task],
    ["queue", `${job.queue}, priority ${job.priority}`],
    ["worker", `${job.worker ?? "-"} (epoch ${job.job_epoch})`],
    ["owner", `${job.owner} (epoch ${job.owner_epoch})`],
    ["attempts", `${job.attempts}, ${job.failures} of ${job.max_attempts} failed`],
    ["created", ago(job.created_at)],
    ["started", ago(job.started_at)],
    [
      "progress",
      [job.progress === null ? "" : `${job.progress}%`, job.progress_message ?? ""].join(" ").trim(),
    ],
    ["schedule", job.schedule ?? ""],
    ["error", job.error === null ? "" : `${job.error.message} (${job.error.code})`],
    ["logs", `baton jobs logs -f ${job.job_id}`],
  ];
}
