/** Validates the options of a task, which may come from plain JavaScript: one bad value would be in every job. */

import { BatonError } from "../../core/errors.ts";
import { THING_NAME } from "../../core/ids.ts";
import {
  ATTEMPTS_MAX,
  DELAY_MS_MAX,
  PRIORITY_MAX,
  PRIORITY_MIN,
  TIMEOUT_MS_MAX,
} from "../../core/jobs/job-fields.ts";
import { DEFAULT_RETRY } from "../../core/jobs/retry.ts";

type Options = Readonly<Record<string, unknown>>;

export function checkTaskOptions(task: string, options: Options): void {
  const { isolation, module, queue, schema, retry } = options;
  const must = (field: string, rule: string, value: unknown): never => {
    const shown = typeof value === "function" ? "a function" : JSON.stringify(value);
    throw new BatonError("BAD_TASK", `task ${task}: ${field} must be ${rule}, not ${shown}`, { field });
  };
  const whole = (field: string, min: number, max: number): void => {
    const value = options[field];
    if (value === undefined) return;
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max)
      must(field, `a whole number from ${min} to ${max}`, value);
  };
  if (isolation !== undefined && isolation !== "none" && isolation !== "thread")
    must("isolation", '"none" or "thread"', isolation);
  if (module !== undefined && typeof module !== "string")
    must("module", "the module's URL, import.meta.url", module);
  whole("maxAttempts", 1, ATTEMPTS_MAX);
  whole("timeoutMs", 1, TIMEOUT_MS_MAX);
  whole("priority", PRIORITY_MIN, PRIORITY_MAX);
  if (queue !== undefined && (typeof queue !== "string" || !THING_NAME.test(queue)))
    must("queue", "letters, digits and . _ : / - (up to 128)", queue);
  if (schema !== undefined && !isStandardSchema(schema))
    must("schema", "a Standard Schema (zod, valibot, arktype, …)", schema);
  if (retry !== undefined) checkRetry(retry, must);
}

function isStandardSchema(schema: unknown): boolean {
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return false;
  const standard = (schema as { "~standard"?: { validate?: unknown } })["~standard"];
  return typeof standard?.validate === "function";
}

function checkRetry(retry: unknown, must: (field: string, rule: string, value: unknown) => never): void {
  if (typeof retry !== "object" || retry === null) return must("retry", "an object", retry);
  for (const [key, value] of Object.entries(retry)) {
    const field = `retry.${key}`;
    if (!Object.hasOwn(DEFAULT_RETRY, key))
      must(field, `left out; there are ${Object.keys(DEFAULT_RETRY).join(", ")}`, value);
    const most = key === "jitter" ? 1 : DELAY_MS_MAX;
    const least = key === "factor" ? 1 : 0;
    if (typeof value !== "number" || !(value >= least && value <= most))
      must(field, `a number from ${least} to ${most}`, value);
  }
}
