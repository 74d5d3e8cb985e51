/** One submitted job, in the hands of the program that submitted it or asks for it. */

import { type Duration, durationMs } from "../core/duration.ts";
import { BatonError, JobFailed, reasonOf } from "../core/errors.ts";
import type { JobId } from "../core/ids.ts";
import { isFinal, type JobStatus } from "../core/jobs/job.ts";
import type { Clock } from "../platform/clock.ts";
import { Deadline } from "../platform/loop.ts";
import type { LogLine } from "../store/store.ts";
import { followJob } from "./follow/follow-job.ts";
import { type JobInfo, jobInfo, type JobLogLine, jobLogLine } from "./job-info.ts";
import type { Jobs } from "./job-service.ts";

export interface WaitOptions {
  /** Then it rejects with TIMEOUT, and the job goes on. For as long as it takes unless told otherwise. */
  readonly timeout?: Duration;
  /** Aborted, it rejects with the reason of the signal, and the job goes on. */
  readonly signal?: AbortSignal;
}

export type JobEvent =
  | { readonly type: JobStatus; readonly job: JobInfo }
  | { readonly type: "progress"; readonly progress: number | null; readonly message: string | null }
  | { readonly type: "log"; readonly line: JobLogLine };

export interface HandleParts {
  readonly jobs: Jobs;
  readonly clock: Clock;
  /** Of a run that waits: its slot is another's meanwhile, and the wait ends with the run. */
  readonly waiter?: {
    readonly signal: AbortSignal;
    wait<Answer>(work: () => Promise<Answer>): Promise<Answer>;
  };
  /** Submitted in a transaction of the caller that may still be open. */
  readonly inTransaction?: boolean;
}

const LOG_PAGE = 1_000;

export class JobHandle<Result = unknown> {
  readonly id: JobId;
  /** True when a key was known: this is the job that was there already. */
  readonly existed: boolean;
  readonly #parts: HandleParts;

  constructor(parts: HandleParts, submitted: { readonly id: JobId; readonly existed: boolean }) {
    this.#parts = parts;
    this.id = submitted.id;
    this.existed = submitted.existed;
  }

  /** As it is now. Rejects with NOT_FOUND. */
  async job(): Promise<JobInfo> {
    const job = await this.#parts.jobs.get(this.id);
    if (!job) throw this.#missing();
    return jobInfo(job);
  }

  /** Waits until the job has ended. Rejects with JobFailed when it failed or was cancelled. */
  async result(options: WaitOptions = {}): Promise<Result> {
    const { waiter, clock } = this.#parts;
    const timeoutMs = options.timeout === undefined ? null : waitMs(options.timeout);
    using limit = timeoutMs === null ? null : new Deadline(clock, timeoutMs);
    const signals = [options.signal, waiter?.signal, limit?.signal].filter((each) => each !== undefined);
    const work = (): Promise<Result> => this.#ended(AbortSignal.any(signals), () => limit?.expired ?? false);
    return await (waiter ? waiter.wait(work) : work()); // the deadline ends with this function
  }

  /** Its status, its progress and its log lines, from the first on and as they come, until it is finished. */
  async *events(options: Pick<WaitOptions, "signal"> = {}): AsyncGenerator<JobEvent, void> {
    const signal = options.signal ?? new AbortController().signal;
    for await (const seen of followJob(this.#parts.jobs, this.id, signal)) {
      if (seen.type === "removed") throw this.#missing();
      if (seen.type === "log") yield { type: "log", line: jobLogLine(seen.line) };
      else if (seen.type === "status") yield { type: seen.status, job: jobInfo(seen.job) };
      else yield seen;
    }
    signal.throwIfAborted();
  }

  async logs(): Promise<JobLogLine[]> {
    const all: JobLogLine[] = [];
    let page: readonly LogLine[];
    do {
      page = await this.#parts.jobs.logs(this.id, all.at(-1)?.seq ?? 0, LOG_PAGE);
      all.push(...page.map(jobLogLine));
    } while (page.length === LOG_PAGE);
    return all;
  }

  /** A waiting job is cancelled at once; a running one is told to stop, and its signal fires. Rejects with JOB_FINISHED. */
  async cancel(reason: string | null = null): Promise<void> {
    const answer = await this.#parts.jobs.cancel(this.id, reason);
    if (answer.outcome === "missing") throw this.#missing();
    if (answer.outcome === "finished") throw this.#refused("JOB_FINISHED", `is ${answer.status} already`);
  }

  /** Back into its queue with all its attempts. Rejects with JOB_NOT_RETRYABLE unless it failed or was cancelled. */
  async retry(): Promise<void> {
    const status = await this.#parts.jobs.retry(this.id);
    if (status === "missing") throw this.#missing();
    if (status === "retried") return;
    throw this.#refused("JOB_NOT_RETRYABLE", `is ${status}; only failed and cancelled jobs can be retried`);
  }

  async #ended(signal: AbortSignal, expired: () => boolean): Promise<Result> {
    const { jobs } = this.#parts;
    for await (const _ of jobs.changes(this.id, signal)) {
      const job = await jobs.get(this.id);
      if (!job) throw this.#missing();
      if (job.status === "completed") return JSON.parse((await jobs.result(this.id)) ?? "null") as Result;
      if (isFinal(job.status)) throw new JobFailed(this.id, job.status, job.error);
    }
    if (expired()) throw new BatonError("TIMEOUT", `job ${this.id} has not ended in time; it goes on`);
    throw signal.reason;
  }

  #missing(): BatonError {
    const why = this.#parts.inTransaction
      ? "its transaction has not been committed yet, or was rolled back; wait after the commit"
      : "it was deleted, has expired or never was";
    return new BatonError("NOT_FOUND", `there is no job ${this.id}; ${why}`, { job: this.id });
  }

  #refused(code: "JOB_FINISHED" | "JOB_NOT_RETRYABLE", why: string): BatonError {
    return new BatonError(code, `job ${this.id} ${why}`, { job: this.id });
  }
}

function waitMs(timeout: Duration): number {
  try {
    return durationMs(timeout);
  } catch (error) {
    throw new BatonError("BAD_REQUEST", `timeout ${reasonOf(error)}`, { field: "timeout" });
  }
}
