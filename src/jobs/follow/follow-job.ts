/** All that becomes visible of one job: its status, progress and log lines, each in order, until it is finished. */

import type { JobId } from "../../core/ids.ts";
import { isFinal, type JobStatus } from "../../core/jobs/job.ts";
import type { LogLine } from "../../store/store.ts";
import type { Jobs, JobView } from "../job-service.ts";

export type JobSight =
  | { readonly type: "status"; readonly status: JobStatus; readonly job: JobView }
  | { readonly type: "progress"; readonly progress: number | null; readonly message: string | null }
  | { readonly type: "log"; readonly line: LogLine }
  /** There is no such job, or no longer. */
  | { readonly type: "removed" };

const PAGE = 500;

/** Each log line behind `after` once. A status that lasted for a moment only may be missed; the final one comes last. */
export async function* followJob(
  jobs: Jobs,
  id: JobId,
  signal: AbortSignal,
  after = 0,
): AsyncGenerator<JobSight> {
  let seen = after;
  let told = "";
  let status: JobStatus | null = null;
  for await (const _ of jobs.changes(id, signal)) {
    // The job before its logs: lines are written before the status that ends them, so a finished job's are all there.
    const job = await jobs.get(id);
    const ended = job !== null && isFinal(job.status);
    if (job && !ended && job.status !== status) yield { type: "status", status: job.status, job };
    status = job?.status ?? null;
    for (let more = true; more && !signal.aborted;) {
      const lines = await jobs.logs(id, seen, PAGE);
      for (const line of lines) {
        seen = line.seq;
        yield { type: "log", line };
      }
      more = lines.length === PAGE;
    }
    if (signal.aborted) return;
    if (!job) return yield { type: "removed" };
    const { progress, progressMessage: message } = job;
    const text = JSON.stringify([progress, message]);
    if (text !== told && (told !== "" || progress !== null || message !== null)) {
      told = text;
      yield { type: "progress", progress, message };
    }
    if (ended) return yield { type: "status", status: job.status, job };
  }
}
