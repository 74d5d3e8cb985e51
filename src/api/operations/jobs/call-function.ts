/** Calls a function: runs a task and waits for its result. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import type { Job } from "../../../core/jobs/job.ts";
import { milliseconds, Name, Payload } from "../../bodies/fields.ts";
import { Status } from "../../bodies/job-body.ts";
import { traceIn } from "../../../transport/hop-headers.ts";
import { answer, operation } from "../../operation.ts";

/** Who wants to wait longer submits a job and comes back for it. */
const PATIENCE_MS_MAX = 600_000;
const Patience = milliseconds(1, PATIENCE_MS_MAX);

export const callFunction = operation("POST /functions/{task}", {
  summary:
    "Run a task and answer with its result; 202 with the job's address when it takes longer than the caller waits",
  permission: "submit",
  target: { at: "any" },
  frequent: true,
  params: z.strictObject({ task: Name }),
  query: z.strictObject({ timeout_ms: Patience.optional() }),
  body: Payload,
  replies: {
    200: z.object({ job_id: z.string(), result: z.unknown() }),
    202: z.object({ job_id: z.string(), status: Status }),
  },
  places({ functions }, { params, query }) {
    const wants = { role: "function", tasks: [params.task] } as const;
    // Passed on once at most: a caller who got no answer does not know whether it ran, and neither do we.
    const once = { key: null, jobs: null, prefersHere: true };
    return { wants, ...once, waitsMs: query.timeout_ms ?? functions.timeoutMs };
  },
  async handler({ functions, jobs }, { params, query, body, headers }) {
    const timeoutMs = query.timeout_ms ?? functions.timeoutMs;
    const options = { timeoutMs, trace: traceIn(headers) };
    const called = await functions.call(params.task, body ?? null, options);
    if (!called.ended) {
      const job = await jobs.get(called.id);
      const location = { location: `/jobs/${called.id}` };
      return answer(202, { job_id: called.id, status: job?.status ?? "queued" }, location);
    }
    const { job, result } = called;
    if (job.status !== "completed") throw failed(job);
    const value: unknown = result === null ? null : JSON.parse(result);
    return answer(200, { job_id: job.id, result: value });
  },
});

function failed(job: Job): BatonError {
  const why = job.error ? `: ${job.error.message}` : "";
  const ended = job.status === "failed" ? "failed" : `was ${job.status}`;
  return new BatonError("FUNCTION_FAILED", `${job.task} ${ended}${why}`, {
    job_id: job.id,
    status: job.status,
    job_error: job.error,
  });
}
