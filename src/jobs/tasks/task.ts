/** The definition of a task, as users write it: a name, a schema and a handler. */

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { durationMs, type Duration } from "../../core/duration.ts";
import { BatonError, invalid, type Issue, reasonOf, unknownName } from "../../core/errors.ts";
import type { JsonOf } from "../../core/json.ts";
import { THING_NAME } from "../../core/ids.ts";
import type { Job } from "../../core/jobs/job.ts";
import { ATTEMPTS_MAX, DELAY_MS_MAX } from "../../core/jobs/job-fields.ts";
import { type JobOptions, readJobOptions } from "../../core/jobs/job-options.ts";
import type { RetryPolicy } from "../../core/jobs/retry.ts";
import type { MissedPolicy, OverlapPolicy } from "../../core/schedules/schedule.ts";
import type { LogLevel } from "../../store/store.ts";
import type { JobHandle } from "../job-handle.ts";

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

/** Of a failed job: exponential, with chance in it. The settings `retry.*` count where a task says nothing. */
export interface RetryOptions {
  /** Runs that may fail before the job does. */
  readonly attempts?: number;
  /** Before the second attempt. */
  readonly delay?: Duration;
  /** How much longer each further wait is. */
  readonly factor?: number;
  readonly maxDelay?: Duration;
  /** Share by which a wait varies to both sides. */
  readonly jitter?: number;
}

export interface TaskOptions {
  /**
   * `thread` runs the handler, the default export of `module`, on a worker thread: a CPU-bound one then holds up nothing else, and can be
   * stopped by force.
   */
  readonly isolation?: "none" | "thread";
  /** `import.meta.url` of the module whose default export this task is. Filled in for tasks out of a folder. */
  readonly module?: string;
  readonly retry?: RetryOptions;
  /** Defaults for jobs of this task that do not say otherwise. */
  readonly timeout?: Duration;
  readonly queue?: string;
  readonly priority?: number;
  readonly schedules?: readonly TaskSchedule[];
}

/** A schedule that stands beside its task in the code. Nodes store it when they start (docs/schedules.md). */
export interface TaskSchedule {
  readonly name: string;
  /** Exactly one of `cron` and `every` (`"15m"`, or milliseconds). */
  readonly cron?: string;
  readonly every?: Duration;
  /** With `cron`: an IANA name, as Europe/Berlin. */
  readonly zone?: string;
  readonly payload?: unknown;
  readonly queue?: string;
  readonly priority?: number;
  readonly attempts?: number;
  readonly timeout?: Duration;
  readonly missed?: MissedPolicy;
  readonly missedMax?: number;
  readonly overlap?: OverlapPolicy;
}

/** `Input` is what a caller submits, `Payload` what the schema makes of it. */
export interface Task<
  Payload = unknown,
  Result = unknown,
  Input = unknown,
  Name extends string = string,
> extends TaskOptions {
  readonly name: Name;
  readonly schema?: StandardSchemaV1<Input, Payload>;
  readonly run: Handler<Payload, Result>;
}

/** A task of whatever payload: what a list of typed tasks holds. */
export type AnyTask = Task<any, any, any>;

export interface TaskDefinition<
  Payload,
  Result,
  Name extends string = string,
  Input = Payload,
> extends TaskOptions {
  readonly name: Name;
  /** Any Standard Schema (zod, valibot, arktype, …): checked at submit and again before the run. */
  readonly schema?: StandardSchemaV1<Input, Payload>;
  readonly run: Handler<Payload, Result>;
}

/** A schema says what the payload is. Without one it is what the type parameters say, and nothing checks it at run time. */
export function defineTask<
  Payload = unknown,
  Result = unknown,
  const Name extends string = string,
  Input = Payload,
>(definition: TaskDefinition<Payload, Result, Name, Input>): Task<Payload, Result, Input, Name> {
  checkTask(definition);
  return definition;
}

/** Throw it to say that another attempt would end the same way: the job fails at once. */
export class PermanentError extends Error {
  readonly retryable = false;
  override readonly name = "PermanentError";
}

/**
 * Throw it to say when to try again, for instance what a server asked for. It counts as a failure, and replaces the delay of the retry
 * policy once. Worth nothing when the attempts are spent.
 */
export class RetryAfter extends Error {
  readonly code = "RETRY_AFTER";
  override readonly name = "RetryAfter";
  readonly retryAfterMs: number;

  /** `"30s"`, `"5m"`, or milliseconds. */
  constructor(delay: Duration, message?: string, options?: ErrorOptions) {
    super(message ?? `asked to run again after ${typeof delay === "number" ? `${delay}ms` : delay}`, options);
    this.retryAfterMs = delayOf(delay);
  }
}

function delayOf(delay: unknown): number {
  const mistake = aDelay(delay);
  if (mistake !== null) throw badDelay(mistake);
  return durationMs(delay);
}

/** It takes the place of what the handler wanted to throw, so the job is retried as after any error. */
function badDelay(why: string): Error {
  return fault("BAD_RETRY_AFTER", `the delay of RetryAfter ${why}`, true);
}

/** A failure of ours in a run. Unless it is `retryable`, another attempt would end the same way. */
export function fault(code: string, message: string, retryable = false): Error {
  return Object.assign(new Error(message), { code, retryable });
}

/** What each option of a task must be, but for those that jobs have too. */
const OPTIONS: Readonly<Record<string, readonly [rule: string, holds: (value: unknown) => boolean]>> = {
  isolation: ['"none" or "thread"', (value) => value === "none" || value === "thread"],
  module: ["the module's URL, import.meta.url", (value) => typeof value === "string"],
  schema: ["a Standard Schema (zod, valibot, arktype, …)", isStandardSchema],
  schedules: ["a list of schedules", Array.isArray],
};
const JOB_OPTIONS = ["queue", "priority", "timeout"];
const KNOWN = ["name", "run", "retry", ...Object.keys(OPTIONS), ...JOB_OPTIONS];

/** Options may come from plain JavaScript: one bad value would be in every job. Throws BAD_TASK with all mistakes. */
export function checkTask(task: { readonly name: unknown; readonly run: unknown }): void {
  const { name, run } = task;
  const issues: Issue[] = [];
  const named = typeof name === "string" && THING_NAME.test(name);
  const report = (field: string, message: string): void => {
    issues.push({ field, message: named ? `task ${name}: ${message}` : message });
  };
  if (!named) {
    report("name", `a task's name must be letters, digits and . _ : / - (up to 128), not ${shown(name)}`);
  }
  if (typeof run !== "function") report("run", `run must be a function, not ${shown(run)}`);
  const ofJobs: Record<string, unknown> = {};
  for (const [option, value] of Object.entries(task)) {
    if (value === undefined || option === "retry") continue;
    const [rule, holds] = OPTIONS[option] ?? [];
    if (rule !== undefined && !holds!(value))
      report(option, `${option} must be ${rule}, not ${shown(value)}`);
    else if (JOB_OPTIONS.includes(option)) ofJobs[option] = value;
    else if (!KNOWN.includes(option) && mayNotHave(task, value))
      report(option, unknownName("option of a task", option, KNOWN));
  }
  for (const { field, message } of readJobOptions(ofJobs, { names: JOB_OPTIONS }).issues)
    report(field, message);
  const { retry } = task as TaskOptions;
  if (retry !== undefined) checkRetry(retry, report);
  if (issues.length > 0) throw invalid("BAD_TASK", issues);
}

export function badTask(message: string, field: string): BatonError {
  return new BatonError("BAD_TASK", message, { field });
}

/** An object with methods or of a class has what it needs for itself. */
function mayNotHave(task: object, value: unknown): boolean {
  return typeof value !== "function" && Object.getPrototypeOf(task) === Object.prototype;
}

function shown(value: unknown): string {
  if (typeof value === "function") return "a function";
  if (value === undefined) return "undefined";
  return typeof value === "bigint" ? `${value}n` : JSON.stringify(value);
}

function isStandardSchema(schema: unknown): boolean {
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return false;
  const standard = (schema as { "~standard"?: { validate?: unknown } })["~standard"];
  return typeof standard?.validate === "function";
}

type Report = (field: string, message: string) => void;

const within = (min: number, max: number) => (value: unknown) => {
  if (typeof value === "number" && value >= min && value <= max) return null;
  return `must be a number from ${min} to ${max}, not ${shown(value)}`;
};

function aDelay(value: unknown): string | null {
  try {
    return durationMs(value) <= DELAY_MS_MAX ? null : `must be at most a year, not ${shown(value)}`;
  } catch (error) {
    return reasonOf(error);
  }
}

const RETRY: Readonly<Record<keyof RetryOptions, (value: unknown) => string | null>> = {
  attempts: (value) =>
    Number.isInteger(value) ? within(1, ATTEMPTS_MAX)(value) : `must be a whole number, not ${shown(value)}`,
  delay: aDelay,
  factor: within(1, 100),
  maxDelay: aDelay,
  jitter: within(0, 1),
};

function checkRetry(retry: unknown, report: Report): void {
  if (typeof retry !== "object" || retry === null)
    return report("retry", `retry must be an object, not ${shown(retry)}`);
  for (const [name, value] of Object.entries(retry)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(RETRY, name)) {
      report(`retry.${name}`, unknownName("option of retry", name, Object.keys(RETRY)));
      continue;
    }
    const mistake = RETRY[name as keyof RetryOptions](value);
    if (mistake !== null) report(`retry.${name}`, `retry.${name} ${mistake}`);
  }
}

/** What a task says about its jobs, in the units of the node. */
export interface TaskDefaults {
  readonly maxAttempts: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly retry: Partial<RetryPolicy>;
}

const defaultsOf = new WeakMap<object, TaskDefaults>();

export function taskDefaults(task: TaskOptions): TaskDefaults {
  let known = defaultsOf.get(task);
  if (!known) {
    const { timeout, retry: { attempts, delay, factor, maxDelay, jitter } = {} } = task;
    const retry: Record<string, number | undefined> = {
      delayMs: delay === undefined ? undefined : durationMs(delay),
      factor,
      maxDelayMs: maxDelay === undefined ? undefined : durationMs(maxDelay),
      jitter,
    };
    for (const name of Object.keys(retry)) if (retry[name] === undefined) delete retry[name];
    const timeoutMs = timeout === undefined ? undefined : durationMs(timeout);
    defaultsOf.set(task, (known = { maxAttempts: attempts, timeoutMs, retry }));
  }
  return known;
}

export type Checked =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly Issue[] };

export function checkPayload(task: Task, payload: unknown): Checked | Promise<Checked> {
  if (!task.schema) return { ok: true, value: payload };
  const verdict = task.schema["~standard"].validate(payload);
  return verdict instanceof Promise ? verdict.then(read) : read(verdict);
}

function read(verdict: StandardSchemaV1.Result<unknown>): Checked {
  if (!verdict.issues) return { ok: true, value: verdict.value };
  const issues = verdict.issues.map(({ message, path = [] }) => {
    const steps = path.map((part) => String(typeof part === "object" ? part.key : part));
    return { field: ["payload", ...steps].join("."), message };
  });
  return { ok: false, issues: issues.length === 0 ? [{ field: "payload", message: "invalid" }] : issues };
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
  throw fault("BAD_PAYLOAD", verdict.issues.map(({ field, message }) => `${field}: ${message}`).join("; "));
}
