/** What programs write, as bodies and queries of the API. All that is wrong with it is found before anything is sent. */

import type { NamedScheduleRequest, PreviewRequest } from "../api/bodies/schedule-body.ts";
import type { JobRequestBody } from "../api/operations/jobs/submit-jobs.ts";
import { type Duration, durationMs } from "../core/duration.ts";
import { invalid, type Issue, reasonOf, unknownName } from "../core/errors.ts";
import type { JobStatus } from "../core/jobs/job.ts";
import { FILTER_FIELDS, JOB_FIELDS, type JobFieldRow } from "../core/jobs/job-fields.ts";
import { type JobOptions, optionName, type OptionFields, readJobOptions } from "../core/jobs/job-options.ts";
import { jsonIssues } from "../core/plain-json.ts";
import type { PayloadAnd, PayloadOf, TaskName } from "./task-types.ts";

export interface JobFilter {
  readonly status?: JobStatus;
  readonly task?: string;
  readonly queue?: string;
  readonly tag?: string;
  /** Created at or after, and before. */
  readonly since?: Date;
  readonly until?: Date;
  readonly errorCode?: string;
  readonly limit?: number;
  /** The `cursor` of the page before. */
  readonly cursor?: string;
}

/** Either `cron`, with or without a `zone`, or `every`. */
export interface ScheduleTiming {
  readonly cron?: string;
  readonly zone?: string;
  readonly every?: Duration;
}

export interface ScheduleOptions
  extends ScheduleTiming, Pick<JobOptions, "queue" | "priority" | "attempts" | "timeout" | "allowUnknown"> {
  readonly missed?: "skip" | "run_once" | "run_all";
  readonly missedMax?: number;
  readonly overlap?: "allow" | "skip";
}

interface ScheduleFields extends ScheduleOptions {
  readonly name: string;
  readonly task: string;
  readonly payload?: unknown;
}

export type ScheduleRequest<Tasks> = {
  [Name in TaskName<Tasks>]: { readonly name: string; readonly task: Name } & ScheduleOptions &
    (PayloadAnd<PayloadOf<Tasks, Name>, never> extends [payload: unknown, options?: unknown]
      ? { readonly payload: PayloadOf<Tasks, Name> }
      : { readonly payload?: PayloadOf<Tasks, Name> });
}[TaskName<Tasks>];

export function jobBody(
  task: string,
  payload: unknown,
  options: JobOptions = {},
  at = "",
): { readonly body: JobRequestBody; readonly issues: readonly Issue[] } {
  const { fields, issues } = readJobOptions(options, { at });
  const ofPayload = payload === undefined ? [] : jsonIssues(payload, `${at}payload`);
  const body = { task, payload: payload ?? null, ...wireFields(fields) };
  return { body, issues: [...issues, ...ofPayload] };
}

const ROWS: readonly JobFieldRow[] = JOB_FIELDS;

function wireFields(fields: OptionFields): Omit<JobRequestBody, "task" | "payload"> {
  const body: Record<string, unknown> = {};
  for (const { name, wire, kind } of ROWS) {
    const value = (fields as Readonly<Record<string, unknown>>)[name];
    if (value === undefined) continue;
    body[wire] = kind === "instant" ? new Date(value as number).toISOString() : value;
  }
  return body;
}

const TIMING = ["cron", "zone", "every"];
const OF_JOBS = ROWS.filter(({ scheduled }) => scheduled).map(optionName);
const SCHEDULE_OPTIONS = ["name", "task", "payload", "missed", "missedMax", "overlap", ...TIMING, ...OF_JOBS];

export function scheduleBody(schedule: object): NamedScheduleRequest {
  const { name, task, payload, missed, missedMax, overlap, cron, zone, every, ...options } =
    schedule as ScheduleFields;
  const timing = timingBody({ cron, zone, every });
  const { fields, issues } = readJobOptions(options, { names: OF_JOBS });
  const mistakes = [
    ...unknownOptions(schedule, SCHEDULE_OPTIONS),
    ...timing.issues,
    ...issues.filter(({ field }) => SCHEDULE_OPTIONS.includes(field)),
    ...(payload === undefined ? [] : jsonIssues(payload, "payload")),
  ];
  if (mistakes.length > 0) throw invalid("BAD_REQUEST", mistakes);
  const own = { name, task, payload, missed, missed_max: missedMax, overlap };
  return { ...own, ...timing.body, ...wireFields(fields) };
}

export function timingBody({ cron, zone, every }: ScheduleTiming): { body: PreviewRequest; issues: Issue[] } {
  const issues: Issue[] = [];
  return { body: { cron, zone, every_ms: readDuration("every", every, issues) }, issues };
}

const FILTERS = ["status", ...FILTER_FIELDS.map(({ filter }) => filter.name), "since", "until"];
const PAGING = ["errorCode", "limit", "cursor"];

export function filterOf(filter: JobFilter) {
  const issues = unknownOptions(filter, [...FILTERS, ...PAGING]);
  const { since, until, errorCode, ...rest } = filter;
  for (const [field, at] of Object.entries({ since, until })) {
    if (at !== undefined && !(at instanceof Date && !Number.isNaN(at.getTime())))
      issues.push({ field, message: `${field} must be a valid Date` });
  }
  if (issues.length > 0) throw invalid("BAD_REQUEST", issues);
  return { ...rest, since: since?.toISOString(), until: until?.toISOString(), error_code: errorCode };
}

export function unknownOptions(options: object, known: readonly string[]): Issue[] {
  const unknown = Object.keys(options).filter((name) => !known.includes(name));
  return unknown.map((field) => ({ field, message: unknownName("option", field, known) }));
}

export function readDuration(
  field: string,
  value: Duration | undefined,
  issues: Issue[],
): number | undefined {
  if (value === undefined) return undefined;
  try {
    return durationMs(value);
  } catch (error) {
    issues.push({ field, message: `${field} ${reasonOf(error)}` });
    return undefined;
  }
}

export function oneDuration(field: string, value: Duration | undefined): number | undefined {
  const issues: Issue[] = [];
  const ms = readDuration(field, value, issues);
  if (issues.length > 0) throw invalid("BAD_REQUEST", issues);
  return ms;
}
