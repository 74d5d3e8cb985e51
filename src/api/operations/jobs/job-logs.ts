/**
 * The logs of a job: one page as JSON, or live as server-sent events until the job is finished.
 *
 *   log       each line once, in order; its sequence number is the event's id
 *   progress  whenever it changed, and once at the beginning if there is any
 *   end       the final status (or `deleted`); nothing follows
 */

import { z } from "zod";
import type { JobId } from "../../../core/ids.ts";
import { IdParams, limit } from "../../bodies/fields.ts";
import { LogLineBody, logLineBody } from "../../bodies/job-body.ts";
import { lastEventId } from "../../schema/event-bytes.ts";
import { answer, operation } from "../../operation.ts";
import { findJob, ownerOf } from "./jobs.ts";
import { isFinal, type JobError } from "../../../core/jobs/job.ts";
import { followJob } from "../../../jobs/follow/follow-job.ts";
import type { ServerEvent } from "../../../platform/feed.ts";
import type { Jobs } from "../../../jobs/job-service.ts";

export const LogsBody = z.object({
  job_id: z.string(),
  logs: z.array(LogLineBody),
  next_after: z.int().describe("give it back as `after` to go on"),
});
export type LogsBody = z.output<typeof LogsBody>;

export const getLogs = operation("GET /jobs/{id}/logs", {
  summary:
    "The log of a job. With Accept: text/event-stream it goes on live (events log, progress, end) and resumes behind Last-Event-ID",
  target: ownerOf,
  streams: true,
  params: IdParams,
  query: z.strictObject({
    after: z.int().min(0).default(0).describe("a sequence number from 0; only later lines are answered"),
    limit: limit(500, 5_000),
  }),
  replies: { 200: LogsBody },
  async handler({ jobs }, { params, query, headers }) {
    await findJob(jobs, params.id);
    const id = params.id as JobId;
    if (wantsEvents(headers["accept"])) {
      const last = lastEventId(headers["last-event-id"], /^\d{1,15}$/, "the sequence number of a log line");
      const after = last === null ? query.after : Number(last);
      return { events: (signal) => jobStream(jobs, id, after, signal) };
    }
    const lines = await jobs.logs(id, query.after, query.limit);
    return answer(200, {
      job_id: id,
      logs: lines.map(logLineBody),
      next_after: lines.at(-1)?.seq ?? query.after,
    });
  },
});

function wantsEvents(accept: string | string[] | undefined): boolean {
  return typeof accept === "string" && accept.includes("text/event-stream");
}

export async function* jobStream(
  jobs: Jobs,
  id: JobId,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const end = (status: string, error: JobError | null): ServerEvent => ({
    event: "end",
    data: { job_id: id, status, error },
  });
  for await (const seen of followJob(jobs, id, signal, after)) {
    if (seen.type === "log") yield { event: "log", id: String(seen.line.seq), data: logLineBody(seen.line) };
    else if (seen.type === "progress")
      yield { event: "progress", data: { progress: seen.progress, message: seen.message } };
    else if (seen.type === "removed") yield end("deleted", null);
    else if (isFinal(seen.status)) yield end(seen.status, seen.job.error);
  }
}
