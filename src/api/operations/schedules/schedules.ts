/** Operations on schedules, with their future and past occurrences. Schedules are cluster state, so changes go to the leader. */

import { z } from "zod";
import { BatonError, nearest } from "../../../core/errors.ts";
import { NameParams, limit, type ByName } from "../../bodies/fields.ts";
import { answer, operation } from "../../operation.ts";
import {
  NamedScheduleRequest,
  ScheduleBody,
  ScheduleRequestBody,
  scheduleBody,
  scheduleRequest,
  OccurrenceBody,
  PreviewRequest,
  occurrenceBody,
} from "../../bodies/schedule-body.ts";
import type { NodeServices } from "../../node-services.ts";
import type { Schedule } from "../../../core/schedules/schedule.ts";
import { timingInWords } from "../../../jobs/schedules/cron-description.ts";
import { isoOf } from "../../schema/to-wire.ts";
import { timingOf, type Schedules } from "../../../jobs/schedules/schedule-service.ts";

const StoredBody = ScheduleBody.extend({ outcome: z.enum(["created", "replaced", "unchanged"]) });
export type StoredScheduleBody = z.output<typeof StoredBody>;

async function noSuchSchedule(schedules: Schedules, name: string): Promise<BatonError> {
  const near = nearest(
    name,
    (await schedules.list()).map((schedule) => schedule.name),
  );
  const guess = near === null ? "" : `; did you mean ${near}?`;
  return new BatonError("NOT_FOUND", `there is no schedule "${name}"${guess}`);
}

async function findSchedule(schedules: Schedules, name: string): Promise<Schedule> {
  const schedule = await schedules.get(name);
  if (!schedule) throw await noSuchSchedule(schedules, name);
  return schedule;
}

export const listSchedules = operation("GET /schedules", {
  summary: "All schedules",
  target: { at: "any" },
  replies: { 200: z.object({ schedules: z.array(ScheduleBody) }) },
  handler: async ({ schedules }) => answer(200, { schedules: (await schedules.list()).map(scheduleBody) }),
});

export const getSchedule = operation("GET /schedules/{name}", {
  summary: "A schedule",
  target: { at: "any" },
  params: NameParams,
  replies: { 200: ScheduleBody },
  handler: async ({ schedules }, { params }) =>
    answer(200, scheduleBody(await findSchedule(schedules, params.name))),
});

export const putSchedule = operation("PUT /schedules/{name}", {
  summary: "Create or replace a schedule; the same definition again changes nothing",
  target: { at: "leader" },
  params: NameParams,
  body: ScheduleRequestBody,
  replies: { 200: StoredBody, 201: StoredBody },
  handler: (services, { params, body }) => store(services, params.name, body),
});

export const postSchedule = operation("POST /schedules", {
  summary: "Create or replace a schedule, with its name in the body",
  target: { at: "leader" },
  body: NamedScheduleRequest,
  audits: ({ body }) => ({ name: body.name }),
  replies: { 200: StoredBody, 201: StoredBody },
  handler: (services, { body }) => store(services, body.name, body),
});

async function store(services: NodeServices, name: string, request: ScheduleRequestBody) {
  const { schedule, outcome } = await services.schedules.put(scheduleRequest(name, request));
  const body = { ...scheduleBody(schedule), outcome };
  return outcome === "created" ? answer(201, body) : answer(200, body);
}

export const deleteSchedule = operation("DELETE /schedules/{name}", {
  summary: "Remove a schedule; jobs that it made stay",
  target: { at: "leader" },
  params: NameParams,
  replies: { 200: z.object({ status: z.literal("ok"), name: z.string() }) },
  async handler({ schedules }, { params }) {
    if (!(await schedules.remove(params.name))) throw await noSuchSchedule(schedules, params.name);
    return answer(200, { status: "ok", name: params.name });
  },
});

const pausing = (paused: boolean) => ({
  target: { at: "leader" } as const,
  params: NameParams,
  replies: { 200: ScheduleBody },
  async handler({ schedules }: NodeServices, { params: { name } }: ByName) {
    const schedule = await schedules.setPaused(name, paused);
    if (!schedule) throw await noSuchSchedule(schedules, name);
    return answer(200, scheduleBody(schedule));
  },
});

export const pauseSchedule = operation("POST /schedules/{name}/pause", {
  summary: "Pass over the occurrences of a schedule until it is resumed",
  ...pausing(true),
});

export const resumeSchedule = operation("POST /schedules/{name}/resume", {
  summary: "Let a paused schedule fire again",
  ...pausing(false),
});

export const triggerSchedule = operation("POST /schedules/{name}/trigger", {
  summary: "Submit the job of a schedule now, beside its plan",
  target: { at: "leader" },
  params: NameParams,
  replies: { 200: z.object({ name: z.string(), job_id: z.string() }) },
  async handler({ schedules }, { params }) {
    const job = await schedules.trigger(params.name);
    if (job === null) throw await noSuchSchedule(schedules, params.name);
    return answer(200, { name: params.name, job_id: job });
  },
});

const COUNT = 10;

export const PreviewBody = z.object({ fires: z.array(z.string()) });
const TimingBody = PreviewBody.extend({
  in_words: z.string().describe("when it fires, in English"),
});

export const previewTiming = operation("POST /schedules/preview", {
  summary: "The next fires of a cron expression or an interval that is not stored",
  permission: "read",
  mutates: false,
  body: PreviewRequest,
  replies: { 200: TimingBody },
  handler({ schedules }, { body }) {
    const timing = { cron: body.cron, everyMs: body.every_ms, zone: body.zone };
    const fires = schedules.preview(timing, body.count ?? COUNT).map(isoOf);
    return answer(200, { fires, in_words: timingInWords(timingOf(timing)) });
  },
});

export const previewSchedule = operation("GET /schedules/{name}/preview", {
  summary: "The next fires of a schedule, as if it were not paused",
  target: { at: "any" },
  params: NameParams,
  query: z.strictObject({ count: limit(COUNT, 1_000) }),
  replies: { 200: PreviewBody.extend({ name: z.string() }) },
  async handler({ schedules }, { params, query }) {
    const schedule = await findSchedule(schedules, params.name);
    return answer(200, { name: schedule.name, fires: upcoming(schedules, schedule, query.count).map(isoOf) });
  },
});

/** A stored interval counts from its own next occurrence; one that is only asked about counts from now. */
function upcoming(schedules: Schedules, schedule: Schedule, count: number): readonly number[] {
  const { timing, nextAt } = schedule;
  if (timing.kind === "cron") {
    return schedules.preview({ cron: timing.expression, zone: timing.zone }, count);
  }
  if (nextAt === null) return schedules.preview({ everyMs: timing.everyMs }, count);
  return Array.from({ length: count }, (_, index) => nextAt + index * timing.everyMs);
}

export const scheduleHistory = operation("GET /schedules/{name}/history", {
  summary:
    "The occurrences of a schedule that were dealt with, newest first, with the reason of each that was skipped",
  target: { at: "any" },
  params: NameParams,
  query: z.strictObject({ limit: limit(100, 1_000) }),
  replies: { 200: z.object({ name: z.string(), occurrences: z.array(OccurrenceBody) }) },
  async handler({ schedules }, { params, query }) {
    await findSchedule(schedules, params.name);
    const noted = await schedules.history(params.name, query.limit);
    return answer(200, { name: params.name, occurrences: noted.map(occurrenceBody) });
  },
});
