/**
 * Jobs as rows, for both stores. The columns have the names of a job's fields, so that one function reads them. Errors,
 * killed nodes and lists of texts are stored as JSON text, or as an array on PostgreSQL.
 */

import { type Job, type JobError, JOB_STATUSES, type JobStatus } from "../core/jobs/job.ts";
import { COLUMN_FIELDS } from "../core/jobs/job-fields.ts";
import type { LostRun } from "../core/jobs/run-end.ts";
import type { BriefJob } from "./jobs.ts";

/** A row of our own tables: each column has the type that its reader expects. */
// oxlint-disable-next-line typescript/no-explicit-any -- the schema is the type
export type JobRow = Record<string, any>;

export const STATUS = Object.fromEntries(JOB_STATUSES.map((status, code) => [status, code])) as Counts;

/** A queue and a task. Rows contain its number. */
export interface Kind {
  readonly id: number;
  readonly queue: string;
  readonly task: string;
}

/** Names have no space. */
export function kindKey({ queue, task }: Omit<Kind, "id">): string {
  return `${queue} ${task}`;
}

export type Counts = Record<JobStatus, number>;

export function noJobs(): Counts {
  return Object.fromEntries(JOB_STATUSES.map((status) => [status, 0])) as Counts;
}

export function statusName(code: number): JobStatus {
  return JOB_STATUSES[code]!;
}

/** Fields with a column in `live` and in `done`. */
const STATE: Readonly<Record<string, string>> = {
  runAt: "run_at",
  jobEpoch: "job_epoch",
  attempts: "attempts",
  failures: "failures",
  interruptions: "interruptions",
  crashes: "crashes",
  startedAt: "started_at",
  progress: "progress",
  progressMessage: "progress_message",
  cancelRequested: "cancel_requested",
  error: "error",
  killed: "killed",
};

/** The common columns of `job j`, `live l` and `done d`. `fresh`: values for a job without the latter two. */
export function jobColumns(fresh: Readonly<Record<string, string>> = {}): string {
  const state = Object.entries(STATE).map(([name, column]) => {
    const otherwise = fresh[name] === undefined ? "" : `, ${fresh[name]}`;
    return `coalesce(d.${column}, l.${column}${otherwise}) AS "${name}"`;
  });
  const given = COLUMN_FIELDS.map(({ name, wire }) => `j.${wire} AS "${name}"`);
  return [
    'j.created_at AS "createdAt", j.trace, j.schedule, d.finished_at AS "finishedAt"',
    ...given,
    ...state,
  ].join(", ");
}

type Named = Pick<Job, "id" | "task" | "queue" | "status">;
type Writers = Pick<Job, "owner" | "worker" | "ownerEpoch" | "leaderEpoch">;

/** Fields whose values are those of their columns. */
const AS_THEY_ARE = ["createdAt", "updatedAt", "finishedAt", "trace", "schedule", ...Object.keys(STATE)];

export function toJob(row: JobRow, named: Named, writers: Writers): Job {
  const job: JobRow = { ...named, ...writers };
  for (const name of AS_THEY_ARE) job[name] = row[name];
  for (const { name, kind } of COLUMN_FIELDS) {
    job[name] = kind === "texts" ? (parsed(row[name]) ?? []) : row[name];
  }
  job["cancelRequested"] = Boolean(row["cancelRequested"]);
  job["error"] = parsed(row["error"]);
  job["killed"] = parsed(row["killed"]) ?? [];
  return job as Job;
}

export function toBrief(
  { createdAt, finishedAt, error }: JobRow,
  { id, task, queue, status }: Named,
): BriefJob {
  return { id, task, queue, status, createdAt, finishedAt, error: parsed(error) as JobError | null };
}

/** Of the row `l` of a run that is lost, and of its job `j`. */
export const LOST_COLUMNS = `l.killed, l.failures, l.interruptions, l.crashes, l.cancel_requested AS "cancelRequested",
  l.cancel_reason AS "cancelReason", j.max_attempts AS "maxAttempts", j.timeout_ms AS "timeoutMs"`;

export function lostRun(row: JobRow, worker: string | null): LostRun {
  const { failures, interruptions, crashes, maxAttempts, timeoutMs, cancelRequested, cancelReason } = row;
  const killed = JSON.parse(row["killed"] ?? "[]") as string[];
  const cancel = cancelRequested ? { reason: cancelReason } : null;
  return {
    worker: worker ?? "unknown",
    killed,
    cancel,
    failures,
    interruptions,
    crashes,
    maxAttempts,
    timeoutMs,
  };
}

export function parsed(value: unknown): unknown {
  return typeof value === "string" ? JSON.parse(value) : value;
}
