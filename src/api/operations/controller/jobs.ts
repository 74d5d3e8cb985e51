/** Jobs under `/v1`: submitted at the leader only, readable at every node. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import { parseJobId, type JobId } from "../../../core/ids.ts";
import type { NodeServices } from "../../node-services.ts";
import { IdParams, JobIdText } from "../../bodies/fields.ts";
import { traceIn } from "../../../transport/hop-headers.ts";
import { JobBody, JobSummaryBody, jobSummary } from "../../bodies/job-body.ts";
import { answer, operation } from "../../operation.ts";
import type { SubmitRequest } from "../../../jobs/submit/submitter.ts";
import { JobsQuery, getJob, jobQuery } from "../jobs/jobs.ts";
import { JobRequestBody, request, SubmittedBody } from "../jobs/submit-jobs.ts";

const V1JobRequest = JobRequestBody.extend({ job_id: JobIdText.optional() });
const SubmittedUnder = SubmittedBody.extend({ leader_epoch: z.int() });
const JOBS_MAX = 10_000;

export const v1SubmitJobs = operation("POST /v1/jobs", {
  summary: "Submit one job, or an array of jobs of which all or none are taken; at the leader only",
  permission: "submit",
  frequent: true,
  body: z.union([V1JobRequest, z.array(V1JobRequest).min(1).max(JOBS_MAX)]),
  replies: { 200: z.union([SubmittedUnder, z.array(SubmittedUnder)]) },
  async handler(services, { body, headers }) {
    const many = Array.isArray(body);
    const requests = many
      ? body.map((job, index) => submitRequest(services, job, index))
      : [submitRequest(services, body, null)];
    const { jobs, leaderEpoch } = await services.controller.submit(requests, { trace: traceIn(headers) });
    const bodies = jobs.map(({ id, status, existed }) => ({
      job_id: id,
      status,
      existed,
      leader_epoch: leaderEpoch,
    }));
    return answer(200, many ? bodies : bodies[0]!);
  },
});

function submitRequest(
  { identity, guarantees }: NodeServices,
  { job_id: id, ...body }: z.output<typeof V1JobRequest>,
  index: number | null,
): SubmitRequest {
  // Agents come and go: a controller has work for them before the first one has asked.
  const plain = request({ allow_unknown: true, ...body }, index);
  if (id === undefined) return plain;
  // Where each node keeps its own jobs, whoever looks for a job goes to the node that its id begins with.
  if (!guarantees.shared && parseJobId(id)?.birthplace !== identity.name) {
    const field = `${index === null ? "" : `[${index}].`}job_id`;
    const message = `"${field}" must begin with ${identity.name}-, the name of this node`;
    throw new BatonError("BAD_REQUEST", message, { field });
  }
  return { ...plain, id: id as JobId };
}

export const v1ListJobs = operation("GET /v1/jobs", {
  summary: "The jobs in the store of this node, newest first, without their payloads",
  query: JobsQuery,
  replies: { 200: z.object({ jobs: z.array(JobSummaryBody), next_cursor: z.string().nullable() }) },
  async handler({ jobs }, { query }) {
    const page = await jobs.list(jobQuery(query));
    return answer(200, { jobs: page.jobs.map(jobSummary), next_cursor: page.cursor });
  },
});

export const v1GetJob = operation("GET /v1/jobs/{id}", {
  summary: "A job, and why it does not run if it waits",
  params: IdParams,
  replies: { 200: JobBody },
  handler: (services, input) => getJob.handler(services, input),
});
