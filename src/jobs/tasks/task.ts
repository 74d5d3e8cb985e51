/** The definition of a task, as users write it: a name, a schema and a handler. */

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { BatonError } from "../../core/errors.ts";
import type { JsonOf } from "../../core/json.ts";
import { THING_NAME } from "../../core/ids.ts";
import type { Job } from "../../core/jobs/job.ts";
import { DELAY_MS_MAX, mistakeIn } from "../../core/jobs/job-fields.ts";
import { DEFAULT_RETRY, type RetryPolicy } from "../../core/jobs/retry.ts";
import type { LogLevel } from "../../store/store.ts";
import type { JobHandle } from "../job-handle.ts";
import type { JobOptions } from "../job-options.ts";

export interface TaskJob extends Pick<
  Job,
  "id" | "task" | "queue" | "priority" | "jobEpoch" | "failures" | "interruptions" | "crashes" | "maxAttempts"
> {
  readonly createdAt: Date;
}

export interface TaskLog {
  (message: string, level?: LogLevel): void;
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface TaskContext {
  /** Fires once; `signal.reason` is a `JobAborted` whose `why` is cancel, timeout, drain or lease_lost. */
  readonly signal: AbortSignal;
  readonly log: TaskLog;
  /** From 0 to 100. The last value wins; call it as often as you like. */
  readonly progress: (percent: number, message?: string) => void;
  readonly job: TaskJob;
  readonly attempt: number;
  /** W3C: the trace that this run is a part of, for calls to others; null when the job was submitted in none. */
  readonly traceparent: string | null;
  readonly submit: ChildJobs["submit"];
  readonly call: ChildJobs["call"];
}

/** While a run waits for another job in one of these ways, its slot is free for others. */
export interface ChildJobs {
  readonly submit: SubmitChild;
  readonly call: CallChild;
}

/** A job that stands for itself; wait for it with `result()`. Another run of this job submits it again unless it has a key. */
interface SubmitChild {
  <Result, Input>(
    task: Task<any, Result, Input>,
    payload: NoInfer<Input>,
    options?: JobOptions,
  ): Promise<JobHandle<JsonOf<Awaited<Result>>>>;
  <Result = unknown>(task: string, payload?: unknown, options?: JobOptions): Promise<JobHandle<Result>>;
}

/**
 * Runs another task and waits for its result; rejects with JobFailed. A later run of this job that makes the same call gets the result
 * that there is already; a call that failed is tried again.
 */
interface CallChild {
  <Result, Input>(
    task: Task<any, Result, Input>,
    payload: NoInfer<Input>,
    options?: JobOptions,
  ): Promise<JsonOf<Awaited<Result>>>;
  <Result = unknown>(task: string, payload?: unknown, options?: JobOptions): Promise<Result>;
}

export type Handler<Payload = unknown, Result = unknown> = (
  payload: Payload,
  context: TaskContext,
) => Result | Promise<Result>;

export interface TaskOptions {
  /**
   * `thread` runs the handler, the default export of `module`, on a worker thread: a CPU-bound one then holds up nothing else, and can be
   * stopped by force.
   */
  readonly isolation?: "none" | "thread";
  /** `import.meta.url` of the module whose default export this task is. Filled in for tasks out of a folder. */
  readonly module?: string;
  readonly retry?: Partial<RetryPolicy>;
  /** Defaults for jobs of this task that do not say otherwise. */
  readonly maxAttempts?: number;
  readonly timeoutMs?: number;
  readonly queue?: string;
  readonly priority?: number;
}

/** `Input` is what a caller submits, `Payload` what the schema makes of it. */
export interface Task<Payload = unknown, Result = unknown, Input = unknown> extends TaskOptions {
  readonly name: string;
  readonly schema?: StandardSchemaV1<Input, Payload>;
  readonly run: Handler<Payload, Result>;
}

/** A task of whatever payload: what a list of typed tasks holds. */
export type AnyTask = Task<any, any, any>;

export interface TaskDefinition<Schema extends StandardSchemaV1, Result> extends TaskOptions {
  readonly name: string;
  /** Any Standard Schema (zod, valibot, arktype, …): checked at submit and again before the run. */
  readonly schema: Schema;
  readonly run: Handler<StandardSchemaV1.InferOutput<Schema>, Result>;
}

/** Its payload is believed to be what the handler says, and not checked. */
export interface PlainTaskDefinition<Payload, Result> extends TaskOptions {
  readonly name: string;
  readonly schema?: undefined;
  readonly run: Handler<Payload, Result>;
}

export function defineTask<Schema extends StandardSchemaV1, Result>(
  definition: TaskDefinition<Schema, Result>,
): Task<StandardSchemaV1.InferOutput<Schema>, Result, StandardSchemaV1.InferInput<Schema>>;
export function defineTask<Payload = unknown, Result = unknown>(
  definition: PlainTaskDefinition<Payload, Result>,
): Task<Payload, Result, Payload>;
export function defineTask(definition: Task<any>): Task<any> {
  checkTask(definition);
  return definition;
}

/** Throw it to say that another attempt would end the same way: the job fails at once. */
export class PermanentError extends Error {
  readonly retryable = false;
  override readonly name = "PermanentError";
}

/** A failure of ours in a run. Unless it is `retryable`, another attempt would end the same way. */
export function fault(code: string, message: string, retryable = false): Error {
  return Object.assign(new Error(message), { code, retryable });
}

export function checkTask(task: { readonly name: unknown; readonly run: unknown }): void {
  const { name, run, ...options } = task;
  if (typeof name !== "string" || !THING_NAME.test(name)) {
    throw badTask(
      `a task's name must be letters, digits and . _ : / - (up to 128), not ${JSON.stringify(name)}`,
      "name",
    );
  }
  if (typeof run !== "function") throw badTask(`task ${name} has no run function`, "run");
  checkTaskOptions(name, options);
}

export function badTask(message: string, field: string): BatonError {
  return new BatonError("BAD_TASK", message, { field });
}

type Options = Readonly<Record<string, unknown>>;

/** Options may come from plain JavaScript: one bad value would be in every job. */
function checkTaskOptions(task: string, options: Options): void {
  const { isolation, module, queue, priority, maxAttempts, timeoutMs, schema, retry } = options;
  const must = (field: string, rule: string, value: unknown): never => {
    const shown = typeof value === "function" ? "a function" : JSON.stringify(value);
    throw badTask(`task ${task}: ${field} must be ${rule}, not ${shown}`, field);
  };
  const mistake = mistakeIn({ queue, priority, maxAttempts, timeoutMs });
  if (mistake) throw badTask(`task ${task}: ${mistake.name} ${mistake.rest}`, mistake.name);
  if (isolation !== undefined && isolation !== "none" && isolation !== "thread")
    must("isolation", '"none" or "thread"', isolation);
  if (module !== undefined && typeof module !== "string")
    must("module", "the module's URL, import.meta.url", module);
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

export type Checked =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly field: string };

export function checkPayload(task: Task, payload: unknown): Checked | Promise<Checked> {
  if (!task.schema) return { ok: true, value: payload };
  const verdict = task.schema["~standard"].validate(payload);
  return verdict instanceof Promise ? verdict.then(read) : read(verdict);
}

function read(verdict: StandardSchemaV1.Result<unknown>): Checked {
  if (!verdict.issues) return { ok: true, value: verdict.value };
  const [first] = verdict.issues;
  const path = (first?.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  const more = verdict.issues.length > 1 ? ` (and ${verdict.issues.length - 1} more)` : "";
  return {
    ok: false,
    message: `${first?.message ?? "invalid"}${more}`,
    field: ["payload", ...path].join("."),
  };
}

/** The payload of a run, out of its JSON text. A task may have a stricter schema by now than when the job was submitted. */
export function readPayload(task: Task, text: string): unknown {
  const payload = JSON.parse(text) as unknown;
  if (!task.schema) return payload;
  const checked = checkPayload(task, payload);
  return checked instanceof Promise ? checked.then(accepted) : accepted(checked);
}

function accepted(verdict: Checked): unknown {
  if (verdict.ok) return verdict.value;
  throw fault("BAD_PAYLOAD", `${verdict.field}: ${verdict.message}`);
}
