/** Jobs for people: the columns of their lists, the facts about one job, and its timeline. */

import type { JobBody, JobSummaryBody } from "../../api/bodies/job-body.ts";
import { durationText } from "../../core/duration.ts";
import { FACT_FIELDS, type Fields } from "../../core/jobs/job-fields.ts";
import type { AnswerOf } from "../../api/operation-table.ts";
import {
  type Column,
  piece,
  type Shown,
  facts,
  type Facts,
  section,
  statusPiece,
  table,
} from "../terminal/output.ts";
import { ago, since, span, timeAndAge } from "../../core/format-figures.ts";
import type { Terminal } from "../terminal/terminal.ts";

export type Timeline = AnswerOf<"GET /jobs/{id}/timeline">;

/**
 * Of those that it may have. A run that its node interrupted, by a drain or by its death, is no attempt, and neither is
 * one before a retry by hand; `attempts` of the API counts all runs.
 */
function attemptsUsed({ status, failures }: JobSummaryBody): number {
  return status === "processing" || status === "completed" ? failures + 1 : failures;
}

const JOB_ID_WIDTH = 20;
const LIVE_WIDE = 116;

export function jobColumns(now: number, jobs: readonly JobSummaryBody[]): readonly Column<JobSummaryBody>[] {
  const columns: readonly Column<JobSummaryBody>[] = [
    ["job", ({ job_id: id }) => id],
    ["task", ({ task }) => task],
    ["queue", ({ queue }) => queue, { spare: 3 }],
    ["status", ({ status }) => statusPiece(status)],
    ["attempts", (job) => `${attemptsUsed(job)}/${job.max_attempts}`, { spare: 2 }],
    ["created", ({ created_at: at }) => ago(now, at), { spare: 1 }],
    ["error", ({ error }) => error?.message.split("\n", 1)[0] ?? "", { flexible: true }],
  ];
  return jobs.some(({ error }) => error !== null) ? columns : columns.slice(0, -1);
}

export function runningColumns(now: number, width: number): readonly Column<JobSummaryBody>[] {
  const whole = width >= LIVE_WIDE;
  const idText = ({ job_id: id }: JobSummaryBody): string =>
    whole || id.length <= JOB_ID_WIDTH ? id : `${id.slice(0, 8)}…${id.slice(-11)}`;
  return [
    ["running", idText, { width: whole ? 45 : JOB_ID_WIDTH }],
    ["task", ({ task }) => task, { width: 14, flexible: true }],
    ["queue", ({ queue }) => queue, { width: 10, spare: 2 }],
    ["worker", ({ worker }) => worker, { width: 12, spare: 1 }],
    ["try", ({ attempts }) => attempts, { width: 3, align: "right", spare: 3 }],
    ["for", ({ started_at: at }) => since(now, at), { width: 5, align: "right" }],
    ["progress", progressCells, { width: 16 }],
  ];
}

const CELLS = 10;

function progressCells({
  progress,
  progress_message: message,
  cancel_requested: stopping,
}: JobSummaryBody): Shown {
  if (stopping) return piece("stopping", "yellow");
  if (progress === null) return message ?? "";
  const full = Math.min(CELLS, Math.max(0, Math.round((progress / 100) * CELLS)));
  return `${"█".repeat(full)}${"░".repeat(CELLS - full)} ${Math.floor(progress)}%`;
}

/** `42.5% page 3 of 7`; null where neither is known. */
export function progressText(percent: number | null, message: string | null): string | null {
  const parts = [percent === null ? "" : `${Math.round(percent * 10) / 10}%`, message ?? ""];
  return parts.filter((part) => part !== "").join(" ") || null;
}

/** A summary, as lists have it, lacks the payload and why it waits. */
export function jobFacts(job: JobSummaryBody & Partial<JobBody>, now: number): Facts {
  return [
    ["job", job.job_id],
    ["task", job.task],
    ["status", statusPiece(job.status, job.cancel_requested ? " (asked to stop)" : "")],
    ["waits", job.waiting_for?.message],
    ["progress", progressText(job.progress, job.progress_message)],
    ["error", job.error && `${job.error.message} (${job.error.code})`],
    ["queue", job.queue],
    ["priority", job.priority],
    ["attempts", `${attemptsUsed(job)} of ${job.max_attempts}`],
    ["runs", job.attempts === attemptsUsed(job) ? null : job.attempts],
    ["interrupted", job.interruptions || null],
    ["crashes", job.crashes > 0 ? `${job.crashes} (${job.killed.join(", ")})` : null],
    ...FACT_FIELDS.map(({ wire, fact }): [string, Shown] => [
      fact.cli,
      factText((job as Fields)[wire], fact.as),
    ]),
    ["schedule", job.schedule],
    ["created", timeAndAge(now, job.created_at)],
    ["run at", job.run_at === job.created_at ? null : timeAndAge(now, job.run_at)],
    ["started", timeAndAge(now, job.started_at)],
    ["finished", timeAndAge(now, job.finished_at)],
    ["owner", `${job.owner} (epoch ${job.owner_epoch})`],
    ["worker", job.worker === null ? null : `${job.worker} (epoch ${job.job_epoch})`],
    ["payload", "payload" in job ? JSON.stringify(job.payload) : null],
  ];
}

function factText(value: unknown, as: "duration" | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (as === "duration") return durationText(value as number);
  return (Array.isArray(value) ? value.join(", ") : String(value)) || null;
}

export function jobText(terminal: Terminal, job: JobBody, { runs, events, handoffs }: Timeline): string {
  const now = terminal.clock.now();
  const rows = <Row>(title: string, columns: readonly Column<Row>[], all: readonly Row[]): string[] =>
    section(terminal, title, all.length === 0 ? null : table(terminal, columns, all));
  return [
    facts(terminal, jobFacts(job, now)),
    ...rows("Runs", runColumns(now), runs),
    ...rows(
      "Timeline",
      [
        ["at", ({ at }) => at],
        ["what", ({ what }) => what],
        ["node", ({ node }) => node ?? "", { spare: 1 }],
        ["message", ({ message }) => message ?? "", { flexible: true }],
      ],
      events,
    ),
    ...rows(
      "Handed over",
      [
        ["at", ({ at }) => at],
        ["from", ({ from }) => from],
        ["to", ({ to }) => to],
        ["owner epoch", (each) => each.owner_epoch],
        ["reason", ({ reason }) => reason ?? "", { flexible: true }],
      ],
      handoffs,
    ),
  ].join("\n\n");
}

function runColumns(now: number): readonly Column<Timeline["runs"][number]>[] {
  return [
    ["epoch", (run) => run.job_epoch],
    ["worker", ({ worker }) => worker],
    ["under", (run) => run.leader_epoch, { spare: 2 }],
    ["started", (run) => run.started_at, { spare: 1 }],
    [
      "took",
      ({ started_at: from, ended_at: to }) => from && span((to ? Date.parse(to) : now) - Date.parse(from)),
    ],
    ["outcome", ({ outcome }) => outcome],
    ["error", ({ error }) => error?.message ?? "", { flexible: true }],
  ];
}
