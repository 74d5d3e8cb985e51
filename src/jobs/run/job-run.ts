/**
 * One run of one job: its context for the handler, and how it is stopped. One is created for every job, up to a hundred thousand per
 * second, so what most handlers never use (the AbortSignal, the log) is created on first use.
 */

import type { AbortReason } from "../../core/jobs/job.ts";
import { traceHeaders } from "../../core/trace.ts";
import type { Span } from "../../platform/tracing.ts";
import { LOG_LEVELS } from "../../store/store.ts";
import type { ClaimedJob, LogLevel, NewLogLine, Report } from "../../store/store.ts";
import type { ChildJobs, Task, TaskContext, TaskJob, TaskLog } from "../tasks/task.ts";
import { childJobs, type RunJobs } from "./run-jobs.ts";
import type { ConsoleCapture } from "./console-capture.ts";
import type { ThreadPool } from "./thread-pool.ts";

/** What `signal.reason` is, and what an aborted handler usually rejects with. */
export class JobAborted extends Error {
  override readonly name = "JobAborted";
  readonly why: AbortReason;

  constructor(why: AbortReason, message: string | null = null) {
    super(message ?? `the job was aborted: ${why}`);
    this.why = why;
  }
}

/** Longer lines and errors are cut: they are for reading, and a result is the place for data. */
export const LOG_MESSAGE_LENGTH_MAX = 16_384;

export interface RunHooks {
  readonly onReport: (run: JobRun) => void;
  readonly now: () => number;
  readonly jobs?: RunJobs | undefined;
  /** Waits without the slot of the run. */
  readonly wait: <Answer>(run: JobRun, work: () => Promise<Answer>) => Promise<Answer>;
}

export class JobRun implements TaskContext {
  readonly claimed: ClaimedJob;
  /** Monotonic. */
  readonly startedAt: number;
  span: Span | null = null;
  /** Monotonic; Infinity without a timeout. Moved on by an abort to the end of its grace. */
  deadline: number;
  /** Where it is among the runs of its worker (running-runs.ts). */
  place = -1;
  /** Its slot has been given to another job: whatever the handler still does is not waited for. */
  abandoned = false;
  /** It has ended, or was given up: what it still writes to the console is not of the job. */
  over = false;
  aborted: JobAborted | null = null;
  #controller: AbortController | null = null;
  #log: TaskLog | null = null;
  #job: TaskJob | null = null;
  #lines: NewLogLine[] | null = null;
  #progress: Report["progress"] = null;
  #children: ChildJobs | null = null;
  readonly #hooks: RunHooks;

  constructor(claimed: ClaimedJob, startedAt: number, hooks: RunHooks) {
    this.claimed = claimed;
    this.startedAt = startedAt;
    this.deadline = claimed.timeoutMs === null ? Infinity : startedAt + claimed.timeoutMs;
    this.#hooks = hooks;
  }

  // ------------------------------------------------ for the handler

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(this.aborted);
    }
    return this.#controller.signal;
  }

  get log(): TaskLog {
    return (this.#log ??= taskLog((level, message) => this.addLine(level, message)));
  }

  get attempt(): number {
    return this.claimed.attempts;
  }

  get traceparent(): string | null {
    const trace = this.span?.trace ?? this.claimed.trace;
    return trace ? traceHeaders(trace).traceparent : null;
  }

  get job(): TaskJob {
    return (this.#job ??= taskJob(this.claimed));
  }

  get submit(): ChildJobs["submit"] {
    return this.#jobs().submit;
  }

  get call(): ChildJobs["call"] {
    return this.#jobs().call;
  }

  /** A function of its own, as `log` is: handlers take their context apart, and those in plain JavaScript pass anything. */
  get progress(): (percent: unknown, message?: unknown) => void {
    return (percent, message) => {
      this.#progress = progressOf(percent, message);
      this.#hooks.onReport(this);
    };
  }

  #jobs(): ChildJobs {
    const { jobs, wait } = this.#hooks;
    return (this.#children ??= childJobs(jobs, {
      id: this.claimed.id,
      trace: this.span?.trace ?? this.claimed.trace ?? null,
      waiter: { signal: this.signal, wait: (work) => wait(this, work) },
    }));
  }

  // ------------------------------------------------ for the worker

  /** The first reason stays: a signal fires once. */
  abort(why: AbortReason, message: string | null = null): boolean {
    if (this.aborted) return false;
    this.aborted = new JobAborted(why, message);
    this.#controller?.abort(this.aborted);
    return true;
  }

  addLine(level: LogLevel, message: string): void {
    const known = LOG_LEVELS.includes(level) ? level : "info";
    this.#lines ??= [];
    this.#lines.push({ at: this.#hooks.now(), level: known, message: cut(message) });
    this.#hooks.onReport(this);
  }

  takeReport(): Report | null {
    if (this.#lines === null && this.#progress === null) return null;
    const report: Report = { run: this.claimed, logs: this.#lines ?? [], progress: this.#progress };
    this.#lines = null;
    this.#progress = null;
    return report;
  }
}

export function taskLog(write: (level: LogLevel, message: string) => void): TaskLog {
  // Handlers in plain JavaScript log whatever they have.
  const log = (message: unknown, level: LogLevel = "info"): void => write(level, String(message));
  return Object.assign(log, {
    debug: (message: string) => log(message, "debug"),
    info: (message: string) => log(message, "info"),
    warn: (message: string) => log(message, "warn"),
    error: (message: string) => log(message, "error"),
  });
}

export function taskJob(claimed: ClaimedJob): TaskJob {
  const { id, task, queue, priority, jobEpoch, failures, interruptions, crashes, maxAttempts } = claimed;
  const createdAt = new Date(claimed.createdAt);
  return { id, task, queue, priority, jobEpoch, failures, interruptions, crashes, maxAttempts, createdAt };
}

export function progressOf(percent: unknown, message: unknown): NonNullable<Report["progress"]> {
  if (typeof percent !== "number" || !(percent >= 0 && percent <= 100)) {
    throw new RangeError(`progress must be a number from 0 to 100, not ${String(percent)}`);
  }
  return { value: percent, message: message == null ? null : cut(String(message)) };
}

export function cut(text: string): string {
  return text.length > LOG_MESSAGE_LENGTH_MAX ? `${text.slice(0, LOG_MESSAGE_LENGTH_MAX)}… (cut)` : text;
}

/** What handlers run with: the threads for those that want one, and the console of the others. */
export interface RunPlaces {
  readonly threads: Pick<ThreadPool, "run">;
  readonly captured: ConsoleCapture;
}

export function invoke(task: Task, payload: unknown, run: JobRun, places: RunPlaces): unknown {
  if (run.span) return run.span.run(() => call(task, payload, run, places));
  return call(task, payload, run, places);
}

function call(task: Task, payload: unknown, run: JobRun, { threads, captured }: RunPlaces): unknown {
  if (task.isolation === "thread") return threads.run(task, payload, run);
  return captured.during(run, runTask, task, payload, run);
}

/** As a method: a task may be an object whose handler uses others of its methods. */
function runTask(task: Task, payload: unknown, run: JobRun): unknown {
  return task.run(payload, run);
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
