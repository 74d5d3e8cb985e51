/** Schedules as callers see them: validated, completed with defaults, stored, at any node. The leader fires them (schedule-duty.ts). */

import type { Jobs } from "../job-service.ts";
import type { Channels } from "../../channels/channels.ts";
import { topics } from "../../channels/channel-names.ts";
import { BatonError, type ErrorCode } from "../../core/errors.ts";
import { type JobId, THING_NAME } from "../../core/ids.ts";
import { ATTEMPTS_MAX, PRIORITY_MAX, PRIORITY_MIN, TIMEOUT_MS_MAX } from "../../core/jobs/job-fields.ts";
import type { Schedule, ScheduleDefinition, Timing } from "../../core/schedules/schedule.ts";
import { MISSED_POLICIES, OVERLAP_POLICIES } from "../../core/schedules/schedule.ts";
import type { Platform } from "../../platform/platform.ts";
import type { NotedOccurrence, ScheduleStore } from "../../store/store.ts";
import { compileTiming } from "./cron.ts";
import { checkPayload, type AnyTask } from "../tasks/task.ts";

type Defaulted = "queue" | "priority" | "maxAttempts" | "missed" | "missedMax" | "overlap";

export interface ScheduleRequest
  extends Pick<ScheduleDefinition, "name" | "task">, Partial<Pick<ScheduleDefinition, Defaulted>> {
  readonly payload?: unknown;
  /** Exactly one of `cron` and `everyMs`. */
  readonly cron?: string;
  readonly everyMs?: number;
  readonly zone?: string;
  readonly timeoutMs?: number;
}

export type Schedules = Pick<
  ScheduleService,
  "put" | "get" | "list" | "remove" | "setPaused" | "trigger" | "preview" | "history"
>;

export interface ScheduleServiceOptions {
  readonly store: { readonly schedules: ScheduleStore };
  readonly submit: Jobs["submit"];
  /** What is known of tasks: their own defaults and schemas hold for scheduled jobs too. */
  readonly tasks?: { get(name: string): AnyTask | undefined };
  readonly channels: Pick<Channels, "publish">;
  /** For schedules that do not say how often a run may be tried. */
  readonly maxAttempts: number;
  /** For those that do not say how long a run may take; null is for ever. */
  readonly timeoutMs?: number | null;
}

/** `run_all` makes up in one transaction with as many jobs: more would hold up all other callers. */
export const MISSED_MAX_LIMIT = 10_000;
export const PREVIEW_MAX = 1_000;
const MISSED_MAX_DEFAULT = 100;

/** Intervals count from 1970, so "every hour" is on the hour of UTC on every node. Counting from the request lost: a second put moved it. */
const ANCHOR = 0;

export class ScheduleService {
  readonly #o: Pick<Platform, "clock" | "log"> & ScheduleServiceOptions;

  constructor({ clock, log }: Pick<Platform, "clock" | "log">, options: ScheduleServiceOptions) {
    this.#o = { clock, log, ...options };
  }

  async put(
    request: ScheduleRequest,
  ): Promise<{ schedule: Schedule; outcome: "created" | "replaced" | "unchanged" }> {
    const { clock, store } = this.#o;
    const task = this.#o.tasks?.get(request.task);
    const definition = complete(request, task, this.#o);
    if (task) await checkSchema(task, request.payload);
    const { following } = compileTiming(definition.timing);
    const present = await store.schedules.get(definition.name);
    // An occurrence that is due and not yet fired stays due: a deploy that changes the payload must not lose it. If it fires at
    // this moment, the store answers "already" to the second fire.
    const keeps = present && !present.paused && sameTiming(present.timing, definition.timing);
    const nextAt = (keeps ? present.nextAt : null) ?? following(clock.now());
    const answer = await store.schedules.put(definition, nextAt);
    if (answer.outcome !== "unchanged") await this.#notify(definition.name);
    return answer;
  }

  get(name: string): Promise<Schedule | null> {
    return this.#o.store.schedules.get(name);
  }

  list(): Promise<readonly Schedule[]> {
    return this.#o.store.schedules.list();
  }

  async remove(name: string): Promise<boolean> {
    const removed = await this.#o.store.schedules.remove(name);
    if (removed) await this.#notify(name);
    return removed;
  }

  /** What passes while it is paused is not made up: resumed, it counts on from now. */
  async setPaused(name: string, paused: boolean): Promise<Schedule | null> {
    const { clock, store } = this.#o;
    const present = await store.schedules.get(name);
    // Resuming one that is not paused must not pass over what is due.
    if (!present || present.paused === paused) return present;
    const nextAt = paused ? null : compileTiming(present.timing).following(clock.now());
    const schedule = await store.schedules.setPaused(name, paused, nextAt);
    await this.#notify(name);
    return schedule;
  }

  /** Submits its job now, outside the schedule; null if there is no such schedule. */
  async trigger(name: string): Promise<JobId | null> {
    const schedule = await this.#o.store.schedules.get(name);
    if (!schedule) return null;
    const { task, payload, queue, priority, maxAttempts, timeoutMs } = schedule;
    const [submitted] = await this.#o.submit([
      {
        task,
        payload: JSON.parse(payload) as unknown,
        queue,
        priority,
        maxAttempts,
        ...(timeoutMs !== null && { timeoutMs }),
      },
    ]);
    return submitted!.id;
  }

  /** The next instants at which it would fire, whether it is stored or not. Rejects with BAD_SCHEDULE. */
  preview(timing: Parameters<typeof timingOf>[0], count: number): readonly number[] {
    wholeNumber("count", count, 1, PREVIEW_MAX);
    const { following } = compileTiming(timingOf(timing));
    const instants: number[] = [];
    let instant: number | null = this.#o.clock.now();
    while (instants.length < count && (instant = following(instant)) !== null) instants.push(instant);
    return instants;
  }

  history(name: string, limit: number): Promise<readonly NotedOccurrence[]> {
    return this.#o.store.schedules.history(name, limit);
  }

  /** A hint; the leader also reads the store by itself, so a failure costs seconds and is no reason to refuse. */
  async #notify(name: string): Promise<void> {
    try {
      await this.#o.channels.publish(topics.schedulesChanged, [{ key: name, body: { name } }]);
    } catch (error) {
      const fields = { schedule: name, err: error };
      this.#o.log.warn(fields, "the leader could not be notified of a changed schedule");
    }
  }
}

async function checkSchema(task: AnyTask, payload: unknown): Promise<void> {
  const checked = await checkPayload(task, payload ?? null);
  if (!checked.ok)
    throw new BatonError("BAD_PAYLOAD", `${checked.field}: ${checked.message}`, { field: checked.field });
}

function complete(
  request: ScheduleRequest,
  task: AnyTask | undefined,
  defaults: Pick<ScheduleServiceOptions, "maxAttempts" | "timeoutMs">,
): ScheduleDefinition {
  const { queue = task?.queue ?? "default", priority = task?.priority ?? 0 } = request;
  const maxAttempts = request.maxAttempts ?? task?.maxAttempts ?? defaults.maxAttempts;
  const timeoutMs = request.timeoutMs ?? task?.timeoutMs ?? defaults.timeoutMs ?? null;
  const { missed = "run_once", missedMax = MISSED_MAX_DEFAULT, overlap = "allow" } = request;
  thingName("name", request.name);
  thingName("task", request.task);
  thingName("queue", queue);
  wholeNumber("priority", priority, PRIORITY_MIN, PRIORITY_MAX);
  wholeNumber("max_attempts", maxAttempts, 1, ATTEMPTS_MAX);
  if (timeoutMs !== null) wholeNumber("timeout_ms", timeoutMs, 1, TIMEOUT_MS_MAX);
  oneOf("missed", missed, MISSED_POLICIES);
  wholeNumber("missed_max", missedMax, 1, MISSED_MAX_LIMIT);
  oneOf("overlap", overlap, OVERLAP_POLICIES);
  return {
    name: request.name,
    timing: timingOf(request),
    task: request.task,
    payload: jsonText(request.payload),
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
export function timingOf({
  cron,
  everyMs,
  zone,
}: Pick<ScheduleRequest, "cron" | "everyMs" | "zone">): Timing {
  if ((cron === undefined) === (everyMs === undefined)) {
    const found = cron === undefined ? "neither is given" : "both are given";
    throw refuse("BAD_SCHEDULE", "cron", `give exactly one of cron and every_ms; ${found}`);
  }
  if (cron !== undefined) return { kind: "cron", expression: cron, zone: zone ?? "UTC" };
  if (zone !== undefined) {
    throw refuse(
      "BAD_SCHEDULE",
      "zone",
      "zone goes with cron; an interval is the same in every zone, leave it out",
    );
  }
  return { kind: "every", everyMs: everyMs!, anchor: ANCHOR };
}

function sameTiming(a: Timing, b: Timing): boolean {
  if (a.kind === "cron") return b.kind === "cron" && a.expression === b.expression && a.zone === b.zone;
  return b.kind === "every" && a.everyMs === b.everyMs && a.anchor === b.anchor;
}

function jsonText(payload: unknown): string {
  try {
    // Functions and symbols have no JSON text and come out as undefined.
    const text: string | undefined = JSON.stringify(payload ?? null);
    if (text !== undefined) return text;
  } catch {
    // A cycle or a bigint: the same answer.
  }
  throw refuse("BAD_REQUEST", "payload", "payload cannot be written as JSON");
}

function thingName(field: string, value: unknown): void {
  if (typeof value === "string" && THING_NAME.test(value)) return;
  throw refuse(
    "BAD_REQUEST",
    field,
    `${field} must be 1 to 128 letters, digits or . _ : / - and begin and end with a letter or digit`,
  );
}

function wholeNumber(field: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw refuse("BAD_REQUEST", field, `${field} is ${value}; it must be a whole number from ${min} to ${max}`);
}

function oneOf(field: string, value: string, allowed: readonly string[]): void {
  if (allowed.includes(value)) return;
  throw refuse("BAD_REQUEST", field, `${field} is "${value}"; it must be one of ${allowed.join(", ")}`);
}

function refuse(code: ErrorCode, field: string, message: string): BatonError {
  return new BatonError(code, message, { field });
}
