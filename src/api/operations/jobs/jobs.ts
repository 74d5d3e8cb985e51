/** Operations on single jobs (read, cancel, retry, delete), and lists of the jobs of this node or of all nodes. */

import { z } from "zod";
import { BatonError, type ErrorCode } from "../../../core/errors.ts";
import type { JobId } from "../../../core/ids.ts";
import { JOB_STATUSES, type JobStatus } from "../../../core/jobs/job.ts";
import type { Target } from "../../../core/route.ts";
import type { JobQuery } from "../../../store/store.ts";
import type { Inbound } from "../../../transport/hop-headers.ts";
import { asksOthers, Cursor, mergedPage, searchOf } from "../../ask-all-nodes.ts";
import { FILTER_SCHEMAS, IdParams, Instant, Reason, limit, bounded } from "../../bodies/fields.ts";
import { JobBody, JobSummaryBody, Status, jobBody, jobSummary } from "../../bodies/job-body.ts";
import { answer, operation } from "../../operation.ts";
import { fromWire } from "../../schema/to-wire.ts";
import type { Jobs, JobView } from "../../../jobs/job-service.ts";
import type { NodeServices } from "../../node-services.ts";

export function ownerOf(input: { readonly params: { readonly id: string } }): Target {
  return { at: "owner", job: input.params.id as JobId };
}

export function noSuchJob(id: string): BatonError {
  return new BatonError("NOT_FOUND", `there is no job ${id}; it was deleted, has expired or never was`);
}

function refusal(
  code: ErrorCode,
  { id, status }: { readonly id: string; readonly status: JobStatus },
  why: string,
  details: object = {},
): BatonError {
  return new BatonError(code, `job ${id} ${why}`, { job_id: id, status, ...details });
}

export async function findJob(jobs: Jobs, id: string): Promise<JobView> {
  const job = await jobs.get(id as JobId);
  if (!job) throw noSuchJob(id);
  return job;
}

export const getJob = operation("GET /jobs/{id}", {
  summary: "A job, and why it does not run if it waits",
  target: ownerOf,
  params: IdParams,
  replies: { 200: JobBody },
  handler: async ({ jobs }, { params }) => answer(200, jobBody(await findJob(jobs, params.id))),
});

export const getResult = operation("GET /jobs/{id}/result", {
  summary:
    "The result of a completed job; 409 while there is none (NOT_FINISHED) or when there never will be (NO_RESULT)",
  target: ownerOf,
  large: true,
  params: IdParams,
  replies: { 200: z.object({ job_id: z.string(), status: Status, result: z.unknown() }) },
  async handler({ jobs }, { params }) {
    const job = await findJob(jobs, params.id);
    if (job.status === "completed") {
      const result = await jobs.result(job.id);
      const value: unknown = result === null ? null : JSON.parse(result);
      return answer(200, { job_id: job.id, status: job.status, result: value });
    }
    if (job.status === "failed" || job.status === "cancelled") {
      const why = `was ${job.status} and has no result; its error says why`;
      throw refusal("NO_RESULT", job, why, { job_error: job.error });
    }
    throw refusal("NOT_FINISHED", job, `is ${job.status}; ask again when it is completed`);
  },
});

export const cancelJob = operation("POST /jobs/{id}/cancel", {
  summary: "Cancel a job: at once if it waits (200), through its AbortSignal if it runs (202)",
  target: ownerOf,
  params: IdParams,
  body: z.strictObject({ reason: Reason.optional() }).nullable(),
  audits: ({ body }) => (body?.reason === undefined ? {} : { reason: body.reason }),
  replies: {
    200: z.object({ job_id: z.string(), status: Status }),
    202: z.object({ job_id: z.string(), status: Status, cancel_requested: z.boolean() }),
  },
  async handler({ jobs }, { params: { id }, body }) {
    const outcome = await jobs.cancel(id as JobId, body?.reason ?? null);
    switch (outcome.outcome) {
      case "cancelled":
        return answer(200, { job_id: id, status: "cancelled" });
      case "requested":
        return answer(202, { job_id: id, status: "processing", cancel_requested: true });
      case "finished":
        throw refusal("JOB_FINISHED", { id, status: outcome.status }, `is ${outcome.status} already`);
      case "missing":
        throw noSuchJob(id);
    }
  },
});

export const retryJob = operation("POST /jobs/{id}/retry", {
  summary: "Put a failed or cancelled job back into the queue with fresh budgets",
  target: ownerOf,
  params: IdParams,
  replies: { 200: z.object({ job_id: z.string(), status: Status }) },
  async handler({ jobs }, { params: { id } }) {
    const status = await jobs.retry(id as JobId);
    if (status === "missing") throw noSuchJob(id);
    if (status === "retried") return answer(200, { job_id: id, status: "queued" });
    if (status === "superseded") {
      const why =
        "has failed, and its idempotency key was used again since; look at the newer job of that key";
      throw refusal("JOB_NOT_RETRYABLE", { id, status: "failed" }, why);
    }
    const why = `is ${status}; only failed and cancelled jobs can be retried`;
    throw refusal("JOB_NOT_RETRYABLE", { id, status }, why);
  },
});

export const deleteJob = operation("DELETE /jobs/{id}", {
  summary: "Remove a job that does not run, with its logs and its result",
  target: ownerOf,
  params: IdParams,
  replies: { 200: z.object({ status: z.literal("ok"), job_id: z.string() }) },
  async handler({ jobs }, { params: { id } }) {
    const outcome = await jobs.remove(id as JobId);
    if (outcome === "missing") throw noSuchJob(id);
    if (outcome === "removed") return answer(200, { status: "ok", job_id: id });
    throw refusal("JOB_RUNNING", { id, status: "processing" }, "is running; cancel it first");
  },
});

export const JobsQuery = z.strictObject({
  status: Status.optional(),
  ...FILTER_SCHEMAS,
  since: Instant.optional(),
  until: Instant.optional(),
  error_code: bounded(
    128,
    "a text of 1 to 128 characters: the code of the error that a job ended with",
  ).optional(),
  limit: limit(100, 1_000),
  cursor: bounded(512, "the next_cursor of an earlier answer").optional(),
});

export const jobQuery: (query: z.output<typeof JobsQuery>) => JobQuery = fromWire(JobsQuery);

const ListedJobs = z.object({
  server: z.string(),
  jobs: z.array(JobSummaryBody),
  job_count: z
    .int()
    .nullable()
    .describe("how many there are in all; null where that is not known without counting them"),
  next_cursor: z.string().nullable(),
});
type ListedJobs = z.output<typeof ListedJobs>;

export const listJobs = operation("GET /admin/jobs", {
  summary: "The jobs in the store of this node, newest first, without their payloads",
  query: JobsQuery,
  replies: { 200: ListedJobs },
  async handler(services, { query }) {
    const [page, count] = await Promise.all([services.jobs.list(jobQuery(query)), countOf(services, query)]);
    return answer(200, {
      server: services.identity.name,
      jobs: page.jobs.map(jobSummary),
      job_count: count,
      next_cursor: page.cursor,
    });
  },
});

/** Out of the counters of the queues: nothing else is counted. */
export async function countOf(
  { queues }: Pick<NodeServices, "queues">,
  { status, queue, limit: _limit, cursor: _cursor, ...uncounted }: z.output<typeof JobsQuery>,
): Promise<number | null> {
  if (Object.values(uncounted).some((filter) => filter !== undefined)) return null;
  let count = 0;
  for (const each of await queues.list()) {
    if (queue !== undefined && each.name !== queue) continue;
    for (const name of status === undefined ? JOB_STATUSES : [status]) count += each.counts[name];
  }
  return count;
}

type Query = z.output<typeof JobsQuery>;
interface Asking {
  readonly query: Query;
  readonly inbound: Inbound;
}

const allJobs = {
  query: JobsQuery.extend({ cursor: Cursor.optional() }),
  replies: {
    200: z.object({
      items: z.array(JobSummaryBody),
      nodes: z.array(
        z.object({
          name: z.string(),
          reachable: z.boolean(),
          job_count: z
            .int()
            .describe(
              "how many of the jobs asked for it has, before the list was cut; in a shared store, how many on this page it owns",
            ),
        }),
      ),
      partial: z.boolean().describe("a node could not be reached, so its jobs are missing"),
      next_cursor: z.string().nullable(),
    }),
  },
  async handler(services: NodeServices, { query, inbound }: Asking) {
    const page = asksOthers(services, inbound)
      ? clusterPage(services, inbound, query)
      : clusterPageOfStore(services, query);
    return answer(200, await page);
  },
};

export const listAllJobs = operation("GET /jobs", {
  summary: "The jobs of all nodes that can be reached, newest first, without their payloads",
  ...allJobs,
});

export const listClusterJobs = operation("GET /cluster/jobs", {
  summary: "As GET /jobs; nodes that are no gateways answer it too",
  ...allJobs,
});

async function clusterPageOfStore({ identity, jobs, cluster, guarantees }: NodeServices, query: Query) {
  const page = await jobs.list(jobQuery(query));
  const nodes = cluster.nodes().filter((node) => guarantees.shared || node.name === identity.name);
  return {
    items: page.jobs.map(jobSummary),
    nodes: nodes.map((node) => ({
      name: node.name,
      reachable: node.alive,
      job_count: page.jobs.filter((job) => job.owner === node.name).length,
    })),
    partial: false,
    next_cursor: page.cursor,
  };
}

async function clusterPage(services: NodeServices, inbound: Inbound, { limit, cursor, ...filter }: Query) {
  const { items, nextCursor, answers, nodes, partial } = await mergedPage<JobSummaryBody>(
    services,
    inbound,
    { limit, cursor },
    {
      here: async (query) => {
        const own = { ...filter, ...query };
        const [page, count] = await Promise.all([services.jobs.list(jobQuery(own)), countOf(services, own)]);
        return { items: page.jobs.map(jobSummary), cursor: page.cursor, count };
      },
      path: (query) => `/admin/jobs${searchOf({ ...filter, ...query })}`,
      read: readPage,
      idOf: ({ job_id }) => job_id,
      isNewer: (a, b) =>
        a.created_at > b.created_at || (a.created_at === b.created_at && a.job_id > b.job_id),
    },
  );
  const counts = new Map(
    answers.map(({ node, answer: { items: own, count } }) => [node, count ?? own.length]),
  );
  return {
    items,
    nodes: nodes.map((node) => ({ ...node, job_count: counts.get(node.name) ?? 0 })),
    partial,
    next_cursor: nextCursor,
  };
}

/** As `GET /admin/jobs` answers it; not checked job by job. */
function readPage(body: unknown) {
  const { jobs, next_cursor, job_count } = body as Partial<ListedJobs>;
  if (!Array.isArray(jobs)) throw new TypeError("not a page of jobs");
  return { items: jobs, cursor: next_cursor ?? null, count: job_count ?? null };
}
