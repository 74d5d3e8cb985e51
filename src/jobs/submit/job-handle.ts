import type { Jobs, JobView } from "../job-service.ts";
import type { JobId } from "../../core/ids.ts";
import { JobFailed } from "../../core/errors.ts";
import { isFinal } from "../../core/jobs/job.ts";

export class JobHandle<Result = unknown> {
  readonly id: JobId;
  /** True when the idempotency key was known: this is the job that was there already. */
  readonly existed: boolean;
  readonly #jobs: Jobs;

  constructor(jobs: Jobs, submitted: { readonly id: JobId; readonly existed: boolean }) {
    this.#jobs = jobs;
    this.id = submitted.id;
    this.existed = submitted.existed;
  }

  job(): Promise<JobView | null> {
    return this.#jobs.get(this.id);
  }

  /** Waits until the job has ended. Rejects with JobFailed, or with the reason of the signal. */
  async result(signal: AbortSignal = new AbortController().signal): Promise<Result> {
    for await (const _ of this.#jobs.changes(this.id, signal)) {
      const job = await this.job();
      if (!job) throw new Error(`job ${this.id} was removed`);
      if (job.status === "completed")
        return JSON.parse((await this.#jobs.result(this.id)) ?? "null") as Result;
      if (isFinal(job.status)) throw new JobFailed(this.id, job.status, job.error);
    }
    throw signal.reason instanceof Error ? signal.reason : new Error(`no longer waiting for job ${this.id}`);
  }

  cancel(reason: string | null = null) {
    return this.#jobs.cancel(this.id, reason);
  }
}
