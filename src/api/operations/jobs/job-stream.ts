/**
 * The logs and progress of a job as a live stream, until the job is finished.
 *
 *   log       each line once, in order; its sequence number is the event's id
 *   progress  whenever it changed, and once at the beginning if there is any
 *   end       the final status (or `deleted`); nothing follows
 */

import { isFinal } from "../../../core/jobs/job.ts";
import type { JobId } from "../../../core/ids.ts";
import { logLineBody } from "../../bodies/job-body.ts";
import type { ServerEvent } from "../../../core/server-event.ts";
import type { Jobs } from "../../../jobs/job-service.ts";

const PAGE = 500;

export async function* jobStream(
  jobs: Jobs,
  id: JobId,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  let seen = after;
  let sent = "";
  for await (const _ of jobs.changes(id, signal)) {
    // The job before its logs: lines are written before the status that ends them, so a finished job's are all there.
    const job = await jobs.get(id);
    for (let more = true; more && !signal.aborted;) {
      const lines = await jobs.logs(id, seen, PAGE);
      for (const line of lines) {
        seen = line.seq;
        yield { event: "log", id: String(line.seq), data: logLineBody(line) };
      }
      more = lines.length === PAGE;
    }
    if (signal.aborted) return;
    if (!job) {
      yield { event: "end", data: { job_id: id, status: "deleted", error: null } };
      return;
    }
    const progress = { progress: job.progress, message: job.progressMessage };
    const text = JSON.stringify(progress);
    if (text !== sent && (sent !== "" || job.progress !== null || job.progressMessage !== null)) {
      sent = text;
      yield { event: "progress", data: progress };
    }
    if (isFinal(job.status)) {
      yield { event: "end", data: { job_id: id, status: job.status, error: job.error } };
      return;
    }
  }
}
