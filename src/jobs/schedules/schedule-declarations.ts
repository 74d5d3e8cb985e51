/** The schedules that the code of a node declares, checked and completed. Their digest is the version of this node's code, as far as schedules go. */

import { durationMs } from "../../core/duration.ts";
import { BatonError, nearest, reasonOf } from "../../core/errors.ts";
import type { DeclaredSchedule } from "../../core/schedules/declared-schedules.ts";
import type { ScheduleDefinition } from "../../core/schedules/schedule.ts";
import { accepted } from "../submit/check-request.ts";
import { checkPayload, type AnyTask, type TaskSchedule } from "../tasks/task.ts";
import type { TaskRegistry } from "../tasks/task-registry.ts";
import { compileTiming } from "./cron.ts";
import { completeSchedule, type ScheduleDefaults } from "./schedule-service.ts";
import { digestOf, shortHash } from "./schedule-origin.ts";

/** For a schedule that does not stand in its task: `createNode({ schedules })`. */
export interface CodeSchedule extends TaskSchedule {
  readonly task: string | AnyTask;
}

export interface Declarations {
  /** Null where nothing is declared. */
  readonly version: string | null;
  readonly schedules: readonly DeclaredSchedule[];
}

const FIELDS: Readonly<Record<keyof CodeSchedule, true>> = {
  name: true,
  task: true,
  cron: true,
  every: true,
  zone: true,
  payload: true,
  queue: true,
  priority: true,
  attempts: true,
  timeout: true,
  missed: true,
  missedMax: true,
  overlap: true,
};

/** Throws BAD_SCHEDULE, BAD_REQUEST or BAD_PAYLOAD, and names the schedule and the field. */
export async function declarations(
  tasks: TaskRegistry,
  extra: readonly CodeSchedule[],
  defaults: ScheduleDefaults,
): Promise<Declarations> {
  const given = [...tasks.schedules(), ...extra];
  const schedules = new Map<string, DeclaredSchedule>();
  for (const schedule of given) {
    const definition = await definitionOf(schedule, tasks, defaults);
    const { name, task } = definition;
    const known = schedules.get(name)?.definition;
    if (known)
      throw badDeclaration(name, "name", `is declared twice, for ${known.task} and for ${task}; rename one`);
    schedules.set(name, { definition, digest: digestOf(definition) });
  }
  const all = [...schedules.values()];
  const lines = all.map(({ definition, digest }) => `${definition.name} ${digest}`).sort();
  return { version: all.length === 0 ? null : shortHash(lines.join("\n")), schedules: all };
}

async function definitionOf(
  schedule: CodeSchedule,
  tasks: TaskRegistry,
  defaults: ScheduleDefaults,
): Promise<ScheduleDefinition> {
  if (typeof schedule !== "object" || schedule === null)
    throw new BatonError("BAD_SCHEDULE", `a schedule must be an object, not ${String(schedule)}`, {
      field: "schedules",
    });
  const { name, task: of, every, timeout, attempts, ...rest } = schedule;
  for (const field of Object.keys(schedule)) {
    if (Object.hasOwn(FIELDS, field)) continue;
    const near = nearest(field, Object.keys(FIELDS));
    throw badDeclaration(name, field, `is unknown${near ? `; did you mean ${near}?` : ""}`);
  }
  const taskName = typeof of === "string" ? of : of?.name;
  const task = tasks.get(taskName);
  if (!task) {
    const near = typeof taskName === "string" ? nearest(taskName, tasks.names()) : null;
    const hint = near ? `; did you mean ${near}?` : "";
    throw badDeclaration(name, "task", `${JSON.stringify(taskName)} is not a task of this node${hint}`);
  }
  const everyMs = milliseconds(name, "every", every);
  const timeoutMs = milliseconds(name, "timeout", timeout);
  try {
    const definition = completeSchedule(
      { ...rest, name, task: taskName, maxAttempts: attempts, everyMs, timeoutMs },
      task,
      defaults,
    );
    compileTiming(definition.timing);
    accepted(await checkPayload(task, schedule.payload ?? null));
    return definition;
  } catch (error) {
    if (!(error instanceof BatonError)) throw error;
    const message = `schedule ${name} of task ${taskName}: ${error.message}`;
    throw new BatonError(error.code, message, { ...error.details, schedule: name }, { cause: error });
  }
}

function milliseconds(name: string, field: string, value: unknown): number | undefined {
  try {
    return value === undefined ? undefined : durationMs(value);
  } catch (error) {
    throw badDeclaration(name, field, reasonOf(error));
  }
}

function badDeclaration(name: unknown, field: string, rest: string): BatonError {
  return new BatonError("BAD_SCHEDULE", `schedule ${String(name)}: ${field} ${rest}`, { field });
}
