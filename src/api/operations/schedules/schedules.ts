/** Operations on schedules. Schedules are cluster state, so changes go to the leader. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import { NameParams } from "../../bodies/fields.ts";
import { answer, operation } from "../../operation.ts";
import { NamedScheduleRequest, ScheduleBody, ScheduleRequestBody } from "../../bodies/schedule-body.ts";
import { scheduleBody, scheduleRequest } from "../../bodies/schedule-body.ts";
import type { NodeServices } from "../../node-services.ts";

const StoredBody = ScheduleBody.extend({ outcome: z.enum(["created", "replaced", "unchanged"]) });
export type StoredScheduleBody = z.output<typeof StoredBody>;

export function noSuchSchedule(name: string): BatonError {
  return new BatonError("NOT_FOUND", `there is no schedule "${name}"`);
}

export const listSchedules = operation("GET /schedules", {
  name: "list_schedules",
  summary: "All schedules",
  tag: "schedules",
  permission: "read",
  target: { at: "any" },
  replies: { 200: z.object({ schedules: z.array(ScheduleBody) }) },
  async handler({ schedules }) {
    return answer(200, { schedules: (await schedules.list()).map(scheduleBody) });
  },
});

export const getSchedule = operation("GET /schedules/{name}", {
  name: "get_schedule",
  summary: "A schedule",
  tag: "schedules",
  permission: "read",
  target: { at: "any" },
  params: NameParams,
  replies: { 200: ScheduleBody },
  async handler({ schedules }, { params }) {
    const schedule = await schedules.get(params.name);
    if (!schedule) throw noSuchSchedule(params.name);
    return answer(200, scheduleBody(schedule));
  },
});

export const putSchedule = operation("PUT /schedules/{name}", {
  name: "put_schedule",
  summary: "Create or replace a schedule; the same definition again changes nothing",
  tag: "schedules",
  permission: "operate",
  target: { at: "leader" },
  params: NameParams,
  body: ScheduleRequestBody,
  replies: { 200: StoredBody, 201: StoredBody },
  handler: (services, { params, body }) => store(services, params.name, body),
});

export const postSchedule = operation("POST /schedules", {
  name: "post_schedule",
  summary: "Create or replace a schedule, with its name in the body",
  tag: "schedules",
  permission: "operate",
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
  name: "delete_schedule",
  summary: "Remove a schedule; jobs that it made stay",
  tag: "schedules",
  permission: "operate",
  target: { at: "leader" },
  params: NameParams,
  replies: { 200: z.object({ status: z.literal("ok"), name: z.string() }) },
  async handler({ schedules }, { params }) {
    if (!(await schedules.remove(params.name))) throw noSuchSchedule(params.name);
    return answer(200, { status: "ok", name: params.name });
  },
});

async function setPaused({ schedules }: NodeServices, name: string, paused: boolean) {
  const schedule = await schedules.setPaused(name, paused);
  if (!schedule) throw noSuchSchedule(name);
  return answer(200, scheduleBody(schedule));
}

export const pauseSchedule = operation("POST /schedules/{name}/pause", {
  name: "pause_schedule",
  summary: "Pass over the occurrences of a schedule until it is resumed",
  tag: "schedules",
  permission: "operate",
  target: { at: "leader" },
  params: NameParams,
  replies: { 200: ScheduleBody },
  handler: (services, { params }) => setPaused(services, params.name, true),
});

export const resumeSchedule = operation("POST /schedules/{name}/resume", {
  name: "resume_schedule",
  summary: "Let a paused schedule fire again",
  tag: "schedules",
  permission: "operate",
  target: { at: "leader" },
  params: NameParams,
  replies: { 200: ScheduleBody },
  handler: (services, { params }) => setPaused(services, params.name, false),
});

export const triggerSchedule = operation("POST /schedules/{name}/trigger", {
  name: "trigger_schedule",
  summary: "Submit the job of a schedule now, beside its plan",
  tag: "schedules",
  permission: "operate",
  target: { at: "leader" },
  params: NameParams,
  replies: { 200: z.object({ name: z.string(), job_id: z.string() }) },
  async handler({ schedules }, { params }) {
    const job = await schedules.trigger(params.name);
    if (job === null) throw noSuchSchedule(params.name);
    return answer(200, { name: params.name, job_id: job });
  },
});
