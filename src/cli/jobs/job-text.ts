/** Formats one job for people: its fields, its state, and the reason of it. */

import type { JobBody } from "../../api/bodies/job-body.ts";
import { formatDuration } from "../../config/values/duration.ts";
import { FACT_FIELDS, type Fields } from "../../core/jobs/job-fields.ts";
import { span } from "../terminal/number-format.ts";
import type { AnswerOf } from "../../api/operation-table.ts";
import { ago, facts, statusText, table } from "../terminal/output.ts";
import { plain } from "../terminal/plain-text.ts";
import { progressText } from "../terminal/progress-line.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { styled } from "../terminal/terminal.ts";

/** The job, then its runs, what happened to it, and which nodes had its events. */
export type Timeline = AnswerOf<"GET /jobs/{id}/timeline">;

export function jobText(terminal: Terminal, job: JobBody, timeline: Timeline | null): string {
  const title = (text: string): string => styled(terminal.out, "bold", text);
  const section = (name: string, text: string | null): string[] =>
    text === null ? [] : [`${title(name)}\n${text}`];
  if (timeline === null) return jobFacts(terminal, job);
  return [
    jobFacts(terminal, job),
    ...section("Runs", runsTable(terminal, timeline)),
    ...section("Timeline", eventsTable(terminal, timeline)),
    ...section("Handed over", handoffsTable(terminal, timeline)),
  ].join("\n\n");
}

function runsTable(terminal: Terminal, { runs }: Timeline): string | null {
  if (runs.length === 0) return null;
  const now = terminal.clock.now();
  return table(
    terminal,
    ["epoch", "worker", "under", "started", "took", "outcome", "error"],
    runs.map((run) => [
      String(run.job_epoch),
      run.worker ?? "-",
      String(run.leader_epoch ?? "-"),
      run.started_at ?? "-",
      run.started_at === null
        ? "-"
        : span((run.ended_at === null ? now : Date.parse(run.ended_at)) - Date.parse(run.started_at)),
      run.outcome,
      plain(run.error?.message ?? ""),
    ]),
    { cut: "error", spare: ["under", "started"] },
  );
}

function eventsTable(terminal: Terminal, { events }: Timeline): string | null {
  if (events.length === 0) return null;
  return table(
    terminal,
    ["at", "what", "node", "message"],
    events.map((event) => [event.at, event.what, event.node ?? "", plain(event.message ?? "")]),
    { spare: ["node"], cut: "message" },
  );
}

function handoffsTable(terminal: Terminal, { handoffs }: Timeline): string | null {
  if (handoffs.length === 0) return null;
  return table(
    terminal,
    ["at", "from", "to", "owner epoch", "reason"],
    handoffs.map((each) => [
      each.at,
      each.from ?? "-",
      each.to ?? "-",
      String(each.owner_epoch ?? "-"),
      plain(each.reason ?? ""),
    ]),
    { cut: "reason" },
  );
}

/** Null where there is nothing to show. */
function factText(value: unknown, as: "duration" | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (as === "duration") return formatDuration(value as number);
  if (!Array.isArray(value)) return plain(String(value));
  return value.length === 0 ? null : value.map(plain).join(", ");
}

function jobFacts(terminal: Terminal, job: JobBody): string {
  const time = (at: string | null): string | null => (at === null ? null : `${at} (${ago(terminal, at)})`);
  const progress = plain(progressText(job.progress, job.progress_message));
  return facts(terminal, [
    ["job", job.job_id],
    ["task", job.task],
    ["status", statusText(terminal, job.status) + (job.cancel_requested ? " (told to stop)" : "")],
    ["waits", job.waiting_for?.message ?? null],
    ["progress", progress === "" ? null : progress],
    ["error", job.error ? `${plain(job.error.message)} (${job.error.code})` : null],
    ["queue", job.queue],
    ["priority", String(job.priority)],
    ["attempts", `${job.attempts} (${job.failures} of ${job.max_attempts} failed)`],
    ["interrupted", job.interruptions > 0 ? String(job.interruptions) : null],
    ["crashes", job.crashes > 0 ? `${job.crashes} (${job.killed.join(", ")})` : null],
    ...FACT_FIELDS.map(({ wire, fact }): [string, string | null] => [
      fact.cli,
      factText((job as Fields)[wire], fact.as),
    ]),
    ["schedule", job.schedule],
    ["created", time(job.created_at)],
    ["run at", job.run_at === job.created_at ? null : time(job.run_at)],
    ["started", time(job.started_at)],
    ["finished", time(job.finished_at)],
    ["owner", `${job.owner} (epoch ${job.owner_epoch})`],
    ["worker", job.worker === null ? null : `${job.worker} (epoch ${job.job_epoch})`],
    ["payload", JSON.stringify(job.payload)],
  ]);
}
