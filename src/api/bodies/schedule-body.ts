/** The request and response bodies of a schedule. */

import { z } from "zod";
import { MISSED_POLICIES, OVERLAP_POLICIES, type Schedule } from "../../core/schedules/schedule.ts";
import { BatonError } from "../../core/errors.ts";
import { timingInWords } from "../../jobs/schedules/cron-description.ts";
import type { NotedOccurrence } from "../../store/store.ts";
import { originOf, SCHEDULE_ORIGINS } from "../../jobs/schedules/schedule-origin.ts";
import { fromWire, toWire } from "../schema/to-wire.ts";
import {
  AllowUnknown,
  Attempts,
  milliseconds,
  Name,
  Payload,
  Priority,
  Timeout,
  whole,
  bounded,
} from "./fields.ts";
import { timingOf, type ScheduleRequest } from "../../jobs/schedules/schedule-service.ts";

/** Below a second the bookkeeping of an occurrence would cost more than the job. */
const EVERY_MS_MIN = 1_000;
const EVERY_MS_MAX = 366 * 86_400_000;

const timing = {
  cron: bounded(256, "a cron expression of 5 or 6 fields, at most 256 characters").optional(),
  every_ms: milliseconds(EVERY_MS_MIN, EVERY_MS_MAX).optional(),
  zone: bounded(64, "the IANA name of a time zone, as Europe/Berlin").optional(),
};

export const PreviewRequest = z.strictObject({
  ...timing,
  count: whole(1, 1_000).optional(),
});
export type PreviewRequest = z.input<typeof PreviewRequest>;

export const NamedScheduleRequest = z.strictObject({
  name: Name,
  task: Name,
  payload: Payload.optional(),
  ...timing,
  queue: Name.optional(),
  priority: Priority.optional(),
  max_attempts: Attempts.optional(),
  timeout_ms: Timeout.optional(),
  missed: z.enum(MISSED_POLICIES).optional(),
  missed_max: whole(1, 10_000).optional(),
  overlap: z.enum(OVERLAP_POLICIES).optional(),
  allow_unknown: AllowUnknown.optional(),
});
export type NamedScheduleRequest = z.input<typeof NamedScheduleRequest>;

/** For `PUT /schedules/{name}`: the name stands in the path, and may be repeated. */
export const ScheduleRequestBody = NamedScheduleRequest.partial({ name: true });
export type ScheduleRequestBody = z.input<typeof ScheduleRequestBody>;

export const ScheduleBody = z.object({
  name: z.string(),
  task: z.string(),
  payload: z.unknown(),
  cron: z.string().nullable(),
  every_ms: z.int().nullable(),
  zone: z.string().nullable(),
  in_words: z.string().describe("when it fires, in English"),
  queue: z.string(),
  priority: z.int(),
  max_attempts: z.int(),
  timeout_ms: z.int().nullable(),
  missed: z.enum(MISSED_POLICIES),
  missed_max: z.int(),
  overlap: z.enum(OVERLAP_POLICIES),
  paused: z.boolean(),
  created_at: z.string(),
  updated_at: z.string(),
  next_at: z.string().nullable(),
  last_fired_at: z.string().nullable(),
  last_job_id: z.string().nullable(),
  leader_epoch: z.int(),
  origin: z
    .enum(SCHEDULE_ORIGINS)
    .describe(
      "code: declared by nodes; changed: declared, then changed by hand; dropped: declared no longer",
    ),
  note: z.string().nullable().describe("why it is not as the code declares it"),
});
export type ScheduleBody = z.output<typeof ScheduleBody>;

export const OccurrenceBody = z.object({
  at: z.string(),
  outcome: z.enum(["fired", "skipped"]),
  reason: z.string().nullable(),
  job_id: z.string().nullable(),
  leader_epoch: z.int(),
  noted_at: z.string(),
  awaits: z
    .string()
    .optional()
    .describe("the node that was given the job and has not confirmed it yet, in a cluster of peers"),
});
export type OccurrenceBody = z.output<typeof OccurrenceBody>;

export function scheduleRequest(name: string, body: ScheduleRequestBody): ScheduleRequest {
  if (body.name !== undefined && body.name !== name) {
    throw new BatonError("BAD_REQUEST", `"name" contradicts the path, which says "${name}"`, {
      field: "name",
    });
  }
  const request = { ...fromBody(body), name };
  timingOf(request);
  return request;
}

const fromBody = fromWire(ScheduleRequestBody);

export const scheduleBody = toWire(ScheduleBody, {
  payload: ({ payload }: Schedule): unknown => JSON.parse(payload),
  cron: ({ timing }: Schedule) => (timing.kind === "cron" ? timing.expression : null),
  every_ms: ({ timing }: Schedule) => (timing.kind === "every" ? timing.everyMs : null),
  zone: ({ timing }: Schedule) => (timing.kind === "cron" ? timing.zone : null),
  in_words: ({ timing }: Schedule) => timingInWords(timing),
  last_job_id: "lastJob",
  origin: (schedule: Schedule) => originOf(schedule).origin,
  note: (schedule: Schedule) => originOf(schedule).note,
});

export const occurrenceBody = toWire(OccurrenceBody, {
  outcome: (noted: NotedOccurrence) => (noted.do === "fire" ? "fired" : "skipped"),
  job_id: "job",
});
