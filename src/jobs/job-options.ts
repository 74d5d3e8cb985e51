/** How code writes a job: durations as "30s", times as Date. One table gives each option its field (core/jobs/job-fields.ts). */

import { type Duration, durationMs } from "../core/duration.ts";
import { BatonError, nearest, reasonOf } from "../core/errors.ts";
import { type JobInput, mistakeIn } from "../core/jobs/job-fields.ts";

export interface JobOptions {
  readonly queue?: string;
  /** From -100 to 100; higher runs first. */
  readonly priority?: number;
  readonly delay?: Duration;
  /** In place of `delay`. */
  readonly runAt?: Date;
  /** How many attempts it has. */
  readonly attempts?: number;
  /** Longest run. */
  readonly timeout?: Duration;
  /** The same key is the same job. */
  readonly idempotencyKey?: string;
  readonly tags?: readonly string[];
}

interface OptionRow {
  readonly field: keyof JobInput;
  readonly read?: (value: unknown) => unknown;
}

const OPTIONS: Readonly<Record<keyof JobOptions, OptionRow>> = {
  queue: { field: "queue" },
  priority: { field: "priority" },
  delay: { field: "delayMs", read: durationMs },
  runAt: { field: "runAt", read: timeOf },
  attempts: { field: "maxAttempts" },
  timeout: { field: "timeoutMs", read: durationMs },
  idempotencyKey: { field: "idempotencyKey" },
  tags: { field: "tags" },
};

const OPTION_BY_FIELD = new Map(
  Object.entries(OPTIONS).map(([option, { field }]) => [field as string, option]),
);

/** Throws BAD_REQUEST with the option at fault. `at`: the place in a list, as `[3].`. */
export function jobFields(options: JobOptions, at = ""): Omit<JobInput, "task" | "payload"> {
  const fields: Record<string, unknown> = {};
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(OPTIONS, option)) throw unknownOption(option, at);
    const { field, read } = OPTIONS[option as keyof JobOptions];
    try {
      fields[field] = read ? read(value) : value;
    } catch (error) {
      throw badOption(option, reasonOf(error), at);
    }
  }
  const mistake = mistakeIn(fields);
  if (mistake) throw badOption(OPTION_BY_FIELD.get(mistake.name)!, mistake.rest, at);
  if (options.delay !== undefined && options.runAt !== undefined)
    throw badOption("runAt", "and delay exclude each other; give one", at);
  return fields;
}

function timeOf(value: unknown): number {
  const ms = value instanceof Date ? value.getTime() : NaN;
  if (Number.isNaN(ms)) throw new RangeError("must be a valid Date");
  return ms;
}

function badOption(option: string, rest: string, at: string): BatonError {
  return new BatonError("BAD_REQUEST", `${at}${option} ${rest}`, { field: `${at}${option}` });
}

function unknownOption(option: string, at: string): BatonError {
  const near = nearest(option, Object.keys(OPTIONS));
  const advice = near ? `did you mean ${near}?` : `there are ${Object.keys(OPTIONS).join(", ")}`;
  return badOption(option, `is no option of a job; ${advice}`, at);
}
