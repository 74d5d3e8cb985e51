/** The request body of a change to many jobs, and its validation. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import { JOB_STATUSES, type JobStatus } from "../../../core/jobs/job.ts";
import { FILTER_SCHEMAS, Instant, JobIdText, Reason } from "../../bodies/fields.ts";
import { Status } from "../../bodies/job-body.ts";

export const PAGE_MAX = 1_000;

export const BulkBody = z.strictObject({
  action: z.enum(["retry", "cancel", "delete"]),
  filter: z
    .strictObject({
      status: Status.optional(),
      ...FILTER_SCHEMAS,
      since: Instant.optional(),
      until: Instant.optional(),
      error_code: z.string().min(1).max(128).optional(),
      error_message: z
        .string()
        .max(1_000)
        .optional()
        .meta({ description: "a message as GET /cluster/failures tells it, with what differs left out" }),
    })
    .optional(),
  ids: z
    .array(JobIdText)
    .min(1)
    .max(PAGE_MAX)
    .optional()
    .meta({ description: `a list of 1 to ${PAGE_MAX} job ids, in place of a filter` }),
  dry_run: z.boolean().optional().meta({ description: "true to count without changing anything" }),
  limit: z
    .int()
    .min(1)
    .max(PAGE_MAX)
    .optional()
    .meta({ description: `a whole number from 1 to ${PAGE_MAX}: jobs looked at by one call` }),
  cursor: z
    .string()
    .min(1)
    .max(8_192)
    .optional()
    .meta({ description: "the next_cursor of an earlier answer, with the same filter" }),
  reason: Reason.optional(),
});
export type BulkBody = z.output<typeof BulkBody>;

export const BulkAnswer = z.object({
  matched: z.int(),
  changed: z.int(),
  skipped: z.array(z.object({ job_id: z.string(), why: z.string() })),
  skipped_count: z.int(),
  next_cursor: z.string().nullable().meta({ description: "call again with it, until it is null" }),
  partial: z.boolean().meta({ description: "a node could not be reached, so its jobs were left alone" }),
});
export type BulkAnswer = z.output<typeof BulkAnswer>;

const RETRYABLE: readonly JobStatus[] = ["failed", "cancelled"];
const UNFINISHED: readonly JobStatus[] = ["scheduled", "queued", "processing"];
const REMOVABLE = JOB_STATUSES.filter((status) => status !== "processing");

/** The statuses that a filter goes through, one after the other. Throws BAD_REQUEST for what makes no sense. */
export function statusesOf({ action, filter, ids }: BulkBody): readonly JobStatus[] {
  if ((filter === undefined) === (ids === undefined))
    throw bad("filter", 'give exactly one of "filter" and "ids"');
  const status = filter?.status;
  switch (action) {
    case "retry":
      return checked(status ?? "failed", RETRYABLE, "retried");
    case "cancel":
      return status === undefined ? UNFINISHED : checked(status, UNFINISHED, "cancelled");
    case "delete":
      if (filter && status === undefined)
        throw bad("filter.status", '"filter.status" is needed to delete: say which jobs are meant');
      return status === undefined ? REMOVABLE : checked(status, REMOVABLE, "deleted");
  }
}

function checked(status: JobStatus, allowed: readonly JobStatus[], what: string): readonly JobStatus[] {
  if (allowed.includes(status)) return [status];
  throw bad(
    "filter.status",
    `"filter.status": jobs that are ${status} cannot be ${what}; use ${allowed.join(" or ")}`,
  );
}

export function bad(field: string, message: string): BatonError {
  return new BatonError("BAD_REQUEST", message, { field });
}
