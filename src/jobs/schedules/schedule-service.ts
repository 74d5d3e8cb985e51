/** Schedules as callers see them: validated, completed with defaults, stored, at any node. The leader fires them (schedule-duty.ts). */

import { isDeepStrictEqual } from "node:util";
import type { Jobs } from "../job-service.ts";
import type { Channels } from "../../channels/channels.ts";
import { topics } from "../../channels/channel-names.ts";
import { BatonError, invalid, type Issue, nearest } from "../../core/errors.ts";
import { type JobId, THING_NAME } from "../../core/ids.ts";
import { withoutDeclaration } from "../../core/schedules/declared-schedules.ts";
import type { Schedule, ScheduleDefinition, Timing } from "../../core/schedules/schedule.ts";
import { MISSED_POLICIES, OVERLAP_POLICIES } from "../../core/schedules/schedule.ts";
import type { Platform } from "../../platform/platform.ts";
import type { ScheduleStore } from "../../store/store.ts";
import { originOf } from "./schedule-origin.ts";
import { accepted, fieldIssues, issue, payloadText } from "../submit/check-request.ts";
import type { KnownTasks } from "../tasks/known-tasks.ts";
import { checkPayload, taskDefaults, type AnyTask } from "../tasks/task.ts";
import { compileTiming } from "./cron.ts";

type Defaulted = "queue" | "priority" | "maxAttempts" | "missed" | "missedMax" | "overlap";

export interface ScheduleRequest
  extends Pick<ScheduleDefinition, "name" | "task">, Partial<Pick<ScheduleDefinition, Defaulted>> {
  readonly payload?: unknown;
  /** Exactly one of `cron` and `everyMs`. */
  readonly cron?: string;
  readonly everyMs?: number;
  readonly zone?: string;
  readonly timeoutMs?: number;
  /** Takes a task that no node of the cluster has had so far. */
  readonly allowUnknown?: boolean;
}

export interface Schedules extends Pick<ScheduleStore, "get" | "list" | "remove"> {
  put(request: ScheduleRequest): ReturnType<ScheduleStore["put"]>;
  /** What passes while it is paused is not made up: resumed, it counts on from now. */
  setPaused(name: string, paused: boolean): Promise<Schedule | null>;
  /** Submits its job now, outside the schedule; null if there is no such schedule. */
  trigger(name: string): Promise<JobId | null>;
  /** The next instants at which it would fire, whether it is stored or not. Throws BAD_SCHEDULE. */
  preview(timing: TimingRequest, count: number): readonly number[];
  history(name: string, limit: number): ReturnType<ScheduleStore["history"]>;
}

type TimingRequest = Pick<ScheduleRequest, "cron" | "everyMs" | "zone">;

export type ScheduleDefaults = Pick<ScheduleServiceOptions, "maxAttempts" | "timeoutMs">;

interface ScheduleServiceOptions {
  readonly store: { readonly schedules: ScheduleStore };
  readonly submit: Jobs["submit"];
  /** What is known of tasks: their own defaults and schemas hold for scheduled jobs too. */
  readonly tasks?: { get(name: string): AnyTask | undefined };
  /** Of the cluster; any name will do if it is left out. */
  readonly knownTasks?: Pick<KnownTasks, "require">;
  readonly channels: Pick<Channels, "publish">;
  /** For schedules that do not say how often a run may be tried. */
  readonly maxAttempts: number;
  /** For those that do not say how long a run may take; null is for ever. */
  readonly timeoutMs?: number | null;
}

/** `run_all` makes up in one transaction with as many jobs: more would hold up all other callers. */
const MISSED_MAX_LIMIT = 10_000;
const PREVIEW_MAX = 1_000;
const MISSED_MAX_DEFAULT = 100;

/** Intervals count from 1970, so "every hour" is on the hour of UTC on every node. Counting from the request lost: a second put moved it. */
const ANCHOR = 0;

/** A hint; the leader also reads the store by itself, so a failure costs seconds and is no reason to refuse. */
export function scheduleNotifier(log: Platform["log"], channels: Pick<Channels, "publish">) {
  return async (name: string): Promise<void> => {
    try {
      await channels.publish(topics.schedulesChanged, [{ key: name, body: { name } }]);
    } catch (error) {
      log.warn({ schedule: name, err: error }, "the leader could not be notified of a changed schedule");
    }
  };
}

export function scheduleService(
  { clock, log }: Pick<Platform, "clock" | "log">,
  options: ScheduleServiceOptions,
): Schedules {
  const { submit, tasks, knownTasks, channels } = options;
  const { schedules } = options.store;
  const notify = scheduleNotifier(log, channels);
  return {
    put: async (request) => {
      const task = tasks?.get(request.task);
      const complete = completeSchedule(request, task, options);
      if (task) accepted(await checkPayload(task, request.payload ?? null));
      const { following } = compileTiming(complete.timing);
      const present = await schedules.get(complete.name);
      if (!request.allowUnknown && present?.task !== complete.task) await knownTasks?.require(complete.task);
      // What the code says of it stays noted, so that nodes see that a person has changed it.
      const definition = present?.declared ? { ...complete, declared: present.declared } : complete;
      // An occurrence that is due and not yet fired stays due: a deploy that changes the payload must not lose it. If it fires at
      // this moment, the store answers "already" to the second fire.
      const keeps = present && !present.paused && isDeepStrictEqual(present.timing, definition.timing);
      const nextAt = (keeps ? present.nextAt : null) ?? following(clock.now());
      const answer = await schedules.put(definition, nextAt);
      if (answer.outcome !== "unchanged") await notify(definition.name);
      return answer;
    },
    get: (name) => schedules.get(name),
    list: () => schedules.list(),
    remove: async (name) => {
      const present = await schedules.get(name);
      if (present && originOf(present).origin === "code") {
        const message = `schedule ${name} is declared in the code of nodes that run, which would put it back; pause it, or take it out of the code`;
        throw new BatonError("SCHEDULE_DECLARED", message, { schedule: name });
      }
      const removed = await schedules.remove(name);
      if (removed) await notify(name);
      return removed;
    },
    setPaused: async (name, paused) => {
      const present = await schedules.get(name);
      // Resuming one that is not paused must not pass over what is due.
      if (!present || present.paused === paused) return present;
      const nextAt = paused ? null : compileTiming(present.timing).following(clock.now());
      if (present.declared?.dropped) {
        // A person wants it though no code declares it: from now on it is an ordinary one.
        const kept = await schedules.revise(present, withoutDeclaration(present), { nextAt, paused });
        await notify(name);
        return kept ?? schedules.get(name);
      }
      const schedule = await schedules.setPaused(name, paused, nextAt);
      await notify(name);
      return schedule;
    },
    trigger: async (name) => {
      const schedule = await schedules.get(name);
      if (!schedule) return null;
      const { task, queue, priority, maxAttempts, timeoutMs } = schedule;
      const payload: unknown = JSON.parse(schedule.payload);
      const fields = { queue, priority, maxAttempts, timeoutMs: timeoutMs ?? undefined };
      const [submitted] = await submit([{ task, payload, ...fields, allowUnknown: true }]);
      return submitted!.id;
    },
    preview: (timing, count) => {
      const mistake = wholeNumber("count", count, 1, PREVIEW_MAX);
      if (mistake) throw invalid("BAD_REQUEST", [mistake]);
      const { following } = compileTiming(timingOf(timing));
      const instants: number[] = [];
      let instant: number | null = clock.now();
      while (instants.length < count && (instant = following(instant)) !== null) instants.push(instant);
      return instants;
    },
    history: (name, limit) => schedules.history(name, limit),
  };
}

export function completeSchedule(
  request: ScheduleRequest,
  task: AnyTask | undefined,
  defaults: ScheduleDefaults,
): ScheduleDefinition {
  const { queue = task?.queue ?? "default", priority = task?.priority ?? 0 } = request;
  const own = task && taskDefaults(task);
  const maxAttempts = request.maxAttempts ?? own?.maxAttempts ?? defaults.maxAttempts;
  const timeoutMs = request.timeoutMs ?? own?.timeoutMs ?? defaults.timeoutMs ?? null;
  const { missed = "run_once", missedMax = MISSED_MAX_DEFAULT, overlap = "allow" } = request;
  const issues = [
    thingName("name", request.name),
    thingName("task", request.task),
    ...(fieldIssues({ queue, priority, maxAttempts, timeoutMs: timeoutMs ?? undefined }) ?? []),
    oneOf("missed", missed, MISSED_POLICIES),
    wholeNumber("missed_max", missedMax, 1, MISSED_MAX_LIMIT),
    oneOf("overlap", overlap, OVERLAP_POLICIES),
  ].filter((each) => each !== null);
  if (issues.length > 0) throw invalid("BAD_REQUEST", issues);
  return {
    name: request.name,
    timing: timingOf(request),
    task: request.task,
    payload: payloadText(request.payload),
    queue,
    priority,
    maxAttempts,
    timeoutMs,
    missed,
    missedMax,
    overlap,
  };
}

/** Throws BAD_SCHEDULE unless it is either a cron expression, with or without a zone, or an interval. */
export function timingOf({ cron, everyMs, zone }: TimingRequest): Timing {
  if ((cron === undefined) === (everyMs === undefined)) {
    const found = cron === undefined ? "neither is given" : "both are given";
    throw badTiming("cron", `give exactly one of cron and every_ms; ${found}`);
  }
  if (cron !== undefined) return { kind: "cron", expression: cron, zone: zone ?? "UTC" };
  if (zone !== undefined)
    throw badTiming("zone", "zone goes with cron; an interval is the same in every zone, leave it out");
  return { kind: "every", everyMs: everyMs!, anchor: ANCHOR };
}

function badTiming(field: string, message: string): BatonError {
  return new BatonError("BAD_SCHEDULE", message, { field });
}

function thingName(field: string, value: unknown): Issue | null {
  if (typeof value === "string" && THING_NAME.test(value)) return null;
  return issue(
    field,
    "must be 1 to 128 letters, digits or . _ : / - and begin and end with a letter or digit",
  );
}

function wholeNumber(field: string, value: number, min: number, max: number): Issue | null {
  if (Number.isInteger(value) && value >= min && value <= max) return null;
  return issue(field, `is ${value}; it must be a whole number from ${min} to ${max}`);
}

function oneOf(field: string, value: string, allowed: readonly string[]): Issue | null {
  if (allowed.includes(value)) return null;
  const near = nearest(value, allowed);
  const advice = near === null ? "" : `; did you mean "${near}"?`;
  return issue(field, `is "${value}"; it must be one of ${allowed.join(", ")}${advice}`);
}
