/**
 * Jobs as rows, for both stores. The columns have the names of a job's fields, so that one function reads them. Errors,
 * killed nodes and lists of texts are stored as JSON text, or as an array on PostgreSQL.
 */

import { type Job, type JobError, JOB_STATUSES, type JobStatus } from "../core/jobs/job.ts";
import { COLUMN_FIELDS, type RareFields } from "../core/jobs/job-fields.ts";
import type { BriefJob } from "./jobs.ts";

/** A row of our own tables: each column has the type that its reader expects. */
// oxlint-disable-next-line typescript/no-explicit-any -- the schema is the type
export type JobRow = Record<string, any>;

/** The numbers of statuses in the tables of both stores. */
export const STATUS = {
  scheduled: 0,
  queued: 1,
  processing: 2,
  completed: 3,
  failed: 4,
  cancelled: 5,
} as const;

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

/** The columns of `job j`, `live l` and `done d` that both stores have. `fresh`: values for a job without `live` and `done`. */
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

export function toJob(row: JobRow, { id, task, queue, status }: Named, writers: Writers): Job {
  return {
    id,
    task,
    queue,
    status,
    ...givenFields(row),
    progress: row["progress"],
    progressMessage: row["progressMessage"],
    attempts: row["attempts"],
    failures: row["failures"],
    interruptions: row["interruptions"],
    crashes: row["crashes"],
    trace: row["trace"],
    schedule: row["schedule"],
    cancelRequested: Boolean(row["cancelRequested"]),
    createdAt: row["createdAt"],
    updatedAt: row["updatedAt"],
    runAt: row["runAt"],
    startedAt: row["startedAt"],
    finishedAt: row["finishedAt"],
    owner: writers.owner,
    worker: writers.worker,
    jobEpoch: row["jobEpoch"],
    ownerEpoch: writers.ownerEpoch,
    leaderEpoch: writers.leaderEpoch,
    error: parsed(row["error"]) as JobError | null,
    killed: (parsed(row["killed"]) as string[] | null) ?? [],
  };
}

type Given = Pick<Job, "priority" | "payload" | "maxAttempts" | "timeoutMs" | "idempotencyKey"> & RareFields;

function givenFields(row: JobRow): Given {
  const found: JobRow = {};
  for (const { name, kind } of COLUMN_FIELDS) {
    found[name] = kind === "texts" ? (parsed(row[name]) ?? []) : row[name];
  }
  return found as Given;
}

export function toBrief(
  { createdAt, finishedAt, error }: JobRow,
  { id, task, queue, status }: Named,
): BriefJob {
  return { id, task, queue, status, createdAt, finishedAt, error: parsed(error) as JobError | null };
}

export function parsed(value: unknown): unknown {
  return typeof value === "string" ? JSON.parse(value) : value;
}
