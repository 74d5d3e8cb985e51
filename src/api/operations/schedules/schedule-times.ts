/** The future and past occurrences of schedules. */

import { z } from "zod";
import type { Schedule } from "../../../core/schedules/schedule.ts";
import { timingInWords } from "../../../jobs/schedules/cron-description.ts";
import { NameParams, isoOf, limit } from "../../bodies/fields.ts";
import { answer, operation } from "../../operation.ts";
import {
  OccurrenceBody,
  PreviewRequest,
  occurrenceBody,
  requireOneTiming,
} from "../../bodies/schedule-body.ts";
import type { Schedules } from "../../../jobs/schedules/schedule-service.ts";
import { noSuchSchedule } from "./schedules.ts";

const COUNT = 10;

export const PreviewBody = z.object({ fires: z.array(z.string()) });
const TimingBody = PreviewBody.extend({
  in_words: z.string().meta({ description: "when it fires, in English" }),
});

export const previewTiming = operation("POST /schedules/preview", {
  name: "preview_timing",
  summary: "The next fires of a cron expression or an interval that is not stored",
  tag: "schedules",
  permission: "read",
  mutates: false,
  body: PreviewRequest,
  replies: { 200: TimingBody },
  handler({ schedules }, { body }) {
    requireOneTiming(body);
    const timing = { cron: body.cron, everyMs: body.every_ms, zone: body.zone };
    const fires = schedules.preview(timing, body.count ?? COUNT).map(isoOf);
    return answer(200, { fires, in_words: inWords(body) });
  },
});

function inWords({ cron, every_ms, zone = "UTC" }: PreviewRequest): string {
  return timingInWords(
    cron === undefined
      ? { kind: "every", everyMs: every_ms!, anchor: 0 }
      : { kind: "cron", expression: cron, zone },
  );
}

export const previewSchedule = operation("GET /schedules/{name}/preview", {
  name: "preview_schedule",
  summary: "The next fires of a schedule, as if it were not paused",
  tag: "schedules",
  permission: "read",
  target: { at: "any" },
  params: NameParams,
  query: z.strictObject({ count: limit(COUNT, 1_000) }),
  replies: { 200: PreviewBody.extend({ name: z.string() }) },
  async handler({ schedules }, { params, query }) {
    const schedule = await schedules.get(params.name);
    if (!schedule) throw noSuchSchedule(params.name);
    const fires = upcoming(schedules, schedule, query.count);
    return answer(200, { name: schedule.name, fires: fires.map(isoOf) });
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
  name: "schedule_history",
  summary:
    "The occurrences of a schedule that were dealt with, newest first, with the reason of each that was skipped",
  tag: "schedules",
  permission: "read",
  target: { at: "any" },
  params: NameParams,
  query: z.strictObject({ limit: limit(100, 1_000) }),
  replies: { 200: z.object({ name: z.string(), occurrences: z.array(OccurrenceBody) }) },
  async handler({ schedules }, { params, query }) {
    if (!(await schedules.get(params.name))) throw noSuchSchedule(params.name);
    const noted = await schedules.history(params.name, query.limit);
    return answer(200, { name: params.name, occurrences: noted.map(occurrenceBody) });
  },
});
