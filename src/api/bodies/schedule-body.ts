/** The request and response bodies of a schedule. */

import { z } from "zod";
import { MISSED_POLICIES, OVERLAP_POLICIES } from "../../core/schedules/schedule.ts";
import type { Schedule } from "../../core/schedules/schedule.ts";
import { BatonError } from "../../core/errors.ts";
import { timingInWords } from "../../jobs/schedules/cron-description.ts";
import type { NotedOccurrence } from "../../store/store.ts";
import { Attempts, Name, Payload, Priority, Timeout, isoOf, isoOrNull } from "./fields.ts";
import type { ScheduleRequest } from "../../jobs/schedules/schedule-service.ts";

/** Below a second the bookkeeping of an occurrence would cost more than the job. */
const EVERY_MS_MIN = 1_000;
const EVERY_MS_MAX = 366 * 86_400_000;

const timing = {
  cron: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .meta({ description: "a cron expression of 5 or 6 fields, at most 256 characters" }),
  every_ms: z
    .int()
    .min(EVERY_MS_MIN)
    .max(EVERY_MS_MAX)
    .optional()
    .meta({ description: `a number of milliseconds from ${EVERY_MS_MIN} to ${EVERY_MS_MAX}` }),
  zone: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .meta({ description: "the IANA name of a time zone, as Europe/Berlin" }),
};

export const PreviewRequest = z.strictObject({
  ...timing,
  count: z.int().min(1).max(1_000).optional().meta({ description: "a whole number from 1 to 1000" }),
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
  missed_max: z.int().min(1).max(10_000).optional().meta({ description: "a whole number from 1 to 10000" }),
  overlap: z.enum(OVERLAP_POLICIES).optional(),
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
  in_words: z.string().meta({ description: "when it fires, in English" }),
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
});
export type ScheduleBody = z.output<typeof ScheduleBody>;

export const OccurrenceBody = z.object({
  at: z.string(),
  outcome: z.enum(["fired", "skipped"]),
  reason: z.string().nullable(),
  job_id: z.string().nullable(),
  leader_epoch: z.int(),
  noted_at: z.string(),
  awaits: z.string().optional().meta({
    description: "the node that was given the job and has not confirmed it yet, in a cluster of peers",
  }),
});
export type OccurrenceBody = z.output<typeof OccurrenceBody>;

export function requireOneTiming(body: { cron?: string; every_ms?: number; zone?: string }): void {
  if ((body.cron === undefined) === (body.every_ms === undefined)) {
    throw new BatonError("BAD_SCHEDULE", 'give exactly one of "cron" and "every_ms"', { field: "cron" });
  }
  if (body.zone !== undefined && body.cron === undefined) {
    throw new BatonError("BAD_SCHEDULE", '"zone" belongs to "cron"; an interval has no time zone', {
      field: "zone",
    });
  }
}

export function scheduleRequest(name: string, body: ScheduleRequestBody): ScheduleRequest {
  requireOneTiming(body);
  if (body.name !== undefined && body.name !== name) {
    throw new BatonError("BAD_REQUEST", `"name" contradicts the path, which says "${name}"`, {
      field: "name",
    });
  }
  return {
    name,
    task: body.task,
    payload: body.payload,
    cron: body.cron,
    everyMs: body.every_ms,
    zone: body.zone,
    queue: body.queue,
    priority: body.priority,
    maxAttempts: body.max_attempts,
    timeoutMs: body.timeout_ms,
    missed: body.missed,
    missedMax: body.missed_max,
    overlap: body.overlap,
  };
}

export function scheduleBody(schedule: Schedule): ScheduleBody {
  const { timing } = schedule;
  return {
    name: schedule.name,
    task: schedule.task,
    payload: JSON.parse(schedule.payload) as unknown,
    cron: timing.kind === "cron" ? timing.expression : null,
    every_ms: timing.kind === "every" ? timing.everyMs : null,
    zone: timing.kind === "cron" ? timing.zone : null,
    in_words: timingInWords(timing),
    queue: schedule.queue,
    priority: schedule.priority,
    max_attempts: schedule.maxAttempts,
    timeout_ms: schedule.timeoutMs,
    missed: schedule.missed,
    missed_max: schedule.missedMax,
    overlap: schedule.overlap,
    paused: schedule.paused,
    created_at: isoOf(schedule.createdAt),
    updated_at: isoOf(schedule.updatedAt),
    next_at: isoOrNull(schedule.nextAt),
    last_fired_at: isoOrNull(schedule.lastFiredAt),
    last_job_id: schedule.lastJob,
    leader_epoch: schedule.leaderEpoch,
  };
}

export function occurrenceBody(noted: NotedOccurrence): OccurrenceBody {
  return {
    at: isoOf(noted.at),
    outcome: noted.do === "fire" ? "fired" : "skipped",
    reason: noted.reason,
    job_id: noted.job,
    leader_epoch: noted.leaderEpoch,
    noted_at: isoOf(noted.notedAt),
    ...(noted.awaits !== undefined && { awaits: noted.awaits }),
  };
}
