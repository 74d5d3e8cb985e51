/** The body of a job: snake_case, times in ISO 8601, the payload as a JSON value. */

import { z } from "zod";
import { JOB_STATUSES } from "../../core/jobs/job.ts";
import { RARE_FIELDS, type RareBody } from "../../core/jobs/job-fields.ts";
import { traceHeaders } from "../../core/trace.ts";
import { LOG_LEVELS } from "../../store/store.ts";
import { toWire } from "../schema/to-wire.ts";
import type { JobView } from "../../jobs/job-service.ts";

export const Status = z.enum(JOB_STATUSES);

export const JobErrorBody = z.looseObject({ code: z.string(), message: z.string() });
export type JobErrorBody = z.output<typeof JobErrorBody>;

const RARE_BODIES = Object.fromEntries(
  RARE_FIELDS.map(({ wire, kind }) => [wire, kind === "texts" ? z.array(z.string()) : z.string().nullable()]),
) as unknown as { [W in keyof RareBody]: z.ZodType<RareBody[W]> };

/** Without the payload: a page of a thousand jobs must not weigh a thousand payloads. */
export const JobSummaryBody = z.object({
  job_id: z.string(),
  task: z.string(),
  queue: z.string(),
  status: Status,
  priority: z.int(),
  progress: z.number().nullable(),
  progress_message: z.string().nullable(),
  attempts: z.int(),
  failures: z.int(),
  interruptions: z.int(),
  crashes: z.int(),
  max_attempts: z.int(),
  timeout_ms: z.int().nullable(),
  idempotency_key: z.string().nullable(),
  schedule: z.string().nullable(),
  cancel_requested: z.boolean(),
  created_at: z.string(),
  updated_at: z.string(),
  run_at: z.string(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  owner: z.string(),
  worker: z.string().nullable(),
  job_epoch: z.int(),
  owner_epoch: z.int(),
  leader_epoch: z.int(),
  error: JobErrorBody.nullable(),
  killed: z.array(z.string()).describe("nodes that died while they ran this job, oldest first"),
  ...RARE_BODIES,
});
export type JobSummaryBody = z.output<typeof JobSummaryBody>;

export const JobBody = JobSummaryBody.extend({
  payload: z.unknown(),
  traceparent: z.string().nullable().describe("the W3C trace that it was submitted in"),
  waiting_for: z
    .object({ code: z.string(), message: z.string() })
    .nullable()
    .describe("why a waiting job does not run yet"),
});
export type JobBody = z.output<typeof JobBody>;

export const jobSummary = toWire(JobSummaryBody, { job_id: "id" });

export const jobBody = toWire(JobBody, {
  job_id: "id",
  payload: ({ payload }: JobView): unknown => JSON.parse(payload),
  traceparent: ({ trace }: JobView) => (trace === null ? null : traceHeaders(trace).traceparent),
});

export const LogLineBody = z.object({
  seq: z.int().describe("from 1, without gaps, across all runs of the job"),
  at: z.string(),
  level: z.enum(LOG_LEVELS),
  message: z.string(),
  job_epoch: z.int(),
});
export type LogLineBody = z.output<typeof LogLineBody>;

export const logLineBody = toWire(LogLineBody);
