/** Operations of agents on leases: acquire, renew, and post logs and results. At the leader only. */

import { z } from "zod";
import type { Caller } from "../../../controller/lease-waiters.ts";
import type { Lease } from "../../../controller/controller.ts";
import {
  staleEpoch,
  type AgentReport,
  type AgentResult,
  type ResultAnswer,
} from "../../../controller/result-service.ts";
import { RESULT_STATUSES } from "../../../core/agent.ts";
import type { JobId } from "../../../core/ids.ts";
import { traceHeaders } from "../../../core/trace.ts";
import { LOG_LEVELS, type ClaimedJob } from "../../../store/store.ts";
import { DELAY_MS_MAX } from "../../../core/jobs/job-fields.ts";
import { Instant, JobIdText, milliseconds, Name, whole, bounded } from "../../bodies/fields.ts";
import { Status } from "../../bodies/job-body.ts";
import { answer, operation } from "../../operation.ts";
import { fromWire, toWire } from "../../schema/to-wire.ts";
import {
  AgentName,
  Capabilities,
  CAPABILITIES_MAX,
  Labels,
  RequestId,
  Unanswered,
  Version,
} from "./agents.ts";

const TASKS_MAX = 64;
const TIMEOUT_MS = 25_000;
const TIMEOUT_MS_MAX = 120_000;
const RESULTS_MAX = 1_000;
const LINES_MAX = 1_000;

const LeaseIdText = bounded(256, "the lease_id of an answer of POST /v1/leases");

/** May be missing or null here, so that the refusal is the one for an old epoch. */
const Epoch = z.int().nullable().optional().describe("a whole number, as the lease told it");

const LeaseRequestBody = z.strictObject({
  agent: AgentName,
  capabilities: Capabilities,
  max_tasks: whole(1, TASKS_MAX).default(1),
  timeout_ms: milliseconds(0, TIMEOUT_MS_MAX).default(TIMEOUT_MS),
  queues: z.array(Name).max(CAPABILITIES_MAX).optional().describe("a list of names of queues"),
  version: Version.optional(),
  labels: Labels.optional(),
  leader_epoch: Epoch,
  request_id: RequestId.optional(),
  unanswered: Unanswered.optional(),
});

const leaseRequest = fromWire(LeaseRequestBody, { agent: "name", max_tasks: "limit" });

const LeasedTaskBody = z.object({
  job_id: z.string(),
  job_epoch: z.int(),
  task: z.string(),
  queue: z.string(),
  priority: z.int(),
  payload: z.unknown(),
  attempt: z.int(),
  max_attempts: z.int(),
  failures: z.int(),
  timeout_ms: z.int().nullable(),
  created_at: z.string(),
  traceparent: z
    .string()
    .nullable()
    .describe("the W3C trace that the job was submitted in, for the agent to go on with"),
  tracestate: z.string().nullable(),
});

const LeaseBody = z.object({
  lease_id: z.string(),
  leader_epoch: z.int(),
  leader_id: z.string(),
  expires_in_ms: z.int(),
  tasks: z.array(LeasedTaskBody),
});
type LeaseBody = z.output<typeof LeaseBody>;

const traceOf = ({ trace }: ClaimedJob) => (trace ? traceHeaders(trace) : null);

const leasedTask = toWire(LeasedTaskBody, {
  job_id: "id",
  attempt: "attempts",
  payload: ({ payload }: ClaimedJob): unknown => JSON.parse(payload),
  traceparent: (job: ClaimedJob) => traceOf(job)?.traceparent ?? null,
  tracestate: (job: ClaimedJob) => traceOf(job)?.tracestate ?? null,
});

const leaseBody = toWire(LeaseBody, {
  lease_id: "lease",
  leader_epoch: ({ term }: Lease) => term.epoch,
  leader_id: ({ term }: Lease) => term.leader,
  expires_in_ms: "leaseMs",
  tasks: ({ jobs }: Lease) => jobs.map(leasedTask),
});

const RenewRequestBody = z.strictObject({ agent: AgentName, lease_id: LeaseIdText });

const RenewedBody = z.object({
  lease_id: z.string(),
  leader_epoch: z.int(),
  expires_in_ms: z.int(),
  cancelled: z.array(z.object({ job_id: z.string(), job_epoch: z.int(), reason: z.string().nullable() })),
});

const STAYS: Caller = { gone: false, onGone: () => () => {} };

export const v1Lease = operation("POST /v1/leases", {
  frequent: true,
  summary: "Lease jobs of the named tasks: waits up to timeout_ms for at least one; 204 when there was none",
  waits: true,
  body: LeaseRequestBody,
  replies: { 200: LeaseBody, 204: z.null() },
  async handler(services, { body, caller = STAYS }) {
    const { leaderEpoch, ...request } = leaseRequest(body);
    const known = leaderEpoch == null ? request : { ...request, leaderEpoch };
    const lease = await services.controller.lease(known, caller);
    return lease ? answer(200, leaseBody(lease)) : answer(204, null);
  },
});

export const v1RenewLease = operation("POST /v1/leases/renew", {
  frequent: true,
  summary: "Keep a lease, learn the current leader_epoch and which of its jobs are to be cancelled",
  body: RenewRequestBody,
  replies: { 200: RenewedBody },
  async handler(services, { body }) {
    const { lease_id, agent } = body;
    const { leaseMs, leaderEpoch, cancelled } = await services.controller.renew(agent, lease_id);
    return answer(200, {
      lease_id,
      leader_epoch: leaderEpoch,
      expires_in_ms: leaseMs,
      cancelled: cancelled.map(({ id, jobEpoch, reason }) => ({ job_id: id, job_epoch: jobEpoch, reason })),
    });
  },
});

const RunNamed = {
  lease_id: LeaseIdText,
  job_id: JobIdText,
  job_epoch: Epoch,
  leader_epoch: Epoch,
};

const ResultRequest = z.strictObject({
  agent: AgentName.optional(),
  ...RunNamed,
  status: z.enum(RESULT_STATUSES),
  result: z.unknown().optional(),
  error: z
    .strictObject({
      message: z.string(),
      code: z.string().optional(),
      stack: z.string().optional(),
      retryable: z.boolean().optional(),
      retry_after_ms: milliseconds(0, DELAY_MS_MAX).optional(),
    })
    .optional(),
});

const ResultsRequestBody = z.union([ResultRequest, z.array(ResultRequest).min(1).max(RESULTS_MAX)]);

const ResultBody = z.object({
  job_id: z.string(),
  accepted: z.boolean(),
  status: Status.optional().describe("of the job afterwards; left out when the result was refused"),
  leader_epoch: z.int().nullable(),
  error: z.string().optional().describe("STALE_EPOCH or NOT_FOUND, when it was refused"),
  alias: z.string().optional(),
  message: z.string().optional(),
  field: z.string().optional(),
});
type ResultBody = z.output<typeof ResultBody>;

const runNames = { lease_id: "lease", job_id: "job" } as const;
const NO_EPOCHS = { jobEpoch: null, leaderEpoch: null };
const resultOf = fromWire(ResultRequest, runNames);

function agentResult(body: z.output<typeof ResultRequest>): AgentResult {
  const result = resultOf(body);
  return { ...NO_EPOCHS, ...result, job: result.job as JobId };
}

function resultBody(answer: ResultAnswer): ResultBody {
  if (answer.accepted) {
    const { job, status, leaderEpoch } = answer;
    return { job_id: job, accepted: true, status, leader_epoch: leaderEpoch };
  }
  const { code, message, details } = staleEpoch(answer.job, answer.refusal);
  return { job_id: answer.job, leader_epoch: null, ...details, accepted: false, error: code, message };
}

const LogsRequestBody = z.strictObject({
  ...RunNamed,
  lines: z
    .array(
      z.strictObject({
        at: Instant.optional(),
        level: z.enum(LOG_LEVELS).default("info"),
        message: z.string(),
      }),
    )
    .max(LINES_MAX)
    .default([]),
  progress: z
    .strictObject({
      percent: z.number().min(0).max(100).describe("a number from 0 to 100"),
      message: z.string().optional(),
    })
    .optional(),
});

const logsOf = fromWire(LogsRequestBody, runNames);

function agentReport(body: z.output<typeof LogsRequestBody>): AgentReport {
  const { lines, progress, ...run } = logsOf(body);
  return {
    ...NO_EPOCHS,
    ...run,
    job: run.job as JobId,
    lines: lines.map((line) => ({ ...line, at: line.at ?? null })),
    progress: progress ? { value: progress.percent, message: progress.message ?? null } : null,
  };
}

export const v1PostResults = operation("POST /v1/results", {
  frequent: true,
  summary:
    "How a leased job ended, or an array of them with an answer for each; the same again is answered the same",
  body: ResultsRequestBody,
  replies: { 200: z.union([ResultBody, z.array(ResultBody)]) },
  async handler(services, { body }) {
    const many = Array.isArray(body);
    const answers = await services.controller.results((many ? body : [body]).map(agentResult));
    const bodies = answers.map(resultBody);
    if (many) return answer(200, bodies);
    const only = answers[0]!;
    if (only.accepted) return answer(200, bodies[0]!);
    throw staleEpoch(only.job, only.refusal);
  },
});

export const v1PostLogs = operation("POST /v1/logs", {
  frequent: true,
  summary: "Log lines and progress of a leased job",
  body: LogsRequestBody,
  replies: { 200: z.object({ accepted: z.int() }) },
  handler: async ({ controller }, { body }) =>
    answer(200, { accepted: await controller.report(agentReport(body)) }),
});
