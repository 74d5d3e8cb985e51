/** The request and response bodies of leases, results and agents. */

import { z } from "zod";
import { AGENT_NAME, REQUEST_ID } from "../../core/agent.ts";
import type { JobId } from "../../core/ids.ts";
import { traceHeaders } from "../../core/trace.ts";
import { LOG_LEVELS } from "../../store/store.ts";
import type { ClaimedJob } from "../../store/store.ts";
import { RESULT_STATUSES } from "../../core/agent.ts";
import type { AgentReport, AgentResult, ResultAnswer } from "../../controller/result-service.ts";
import type { AgentView } from "../../controller/agent-directory.ts";
import type { Lease } from "../../controller/lease-service.ts";
import { fromWire, toWire } from "../schema/to-wire.ts";
import { Instant, JobIdText, milliseconds, Name, whole } from "./fields.ts";
import { Status } from "./job-body.ts";

const CAPABILITIES_MAX = 1_000;
const TASKS_MAX = 64;
const TIMEOUT_MS = 25_000;
const TIMEOUT_MS_MAX = 120_000;
const RESULTS_MAX = 1_000;
const LINES_MAX = 1_000;
const UNANSWERED_MAX = 64;

export const AgentName = z.string().regex(AGENT_NAME).meta({
  description:
    "the name of an agent: 1 to 128 letters, digits or . _ - that begin and end with a letter or a digit",
});

const Capabilities = z
  .array(Name)
  .min(1)
  .max(CAPABILITIES_MAX)
  .meta({ description: `a list of the names of the tasks that the agent can run, 1 to ${CAPABILITIES_MAX}` });

const Version = z.string().min(1).max(128).meta({ description: "a text of 1 to 128 characters" });

const Labels = z.record(z.string(), z.string().max(1_000)).meta({
  description: "an object whose values are texts of at most 1000 characters",
});

const LeaseIdText = z
  .string()
  .min(1)
  .max(256)
  .meta({ description: "the lease_id of an answer of POST /v1/leases" });

const RequestId = z.string().regex(REQUEST_ID).meta({
  description:
    "a name of 1 to 64 letters, digits or . _ ~ - that this agent gives to no other request for a lease",
});

const Unanswered = z
  .array(RequestId)
  .max(UNANSWERED_MAX)
  .meta({
    description: `a list of at most ${UNANSWERED_MAX} request_ids whose answers never arrived and are not waited for: what was leased with them goes back at once`,
  });

/** May be missing or null here, so that the refusal is the one for an old epoch. */
const Epoch = z.int().nullable().optional().meta({ description: "a whole number, as the lease told it" });

export const LeaseRequestBody = z.strictObject({
  agent: AgentName,
  capabilities: Capabilities,
  max_tasks: whole(1, TASKS_MAX).default(1),
  timeout_ms: milliseconds(0, TIMEOUT_MS_MAX).default(TIMEOUT_MS),
  queues: z.array(Name).max(CAPABILITIES_MAX).optional().meta({ description: "a list of names of queues" }),
  version: Version.optional(),
  labels: Labels.optional(),
  leader_epoch: Epoch,
  request_id: RequestId.optional(),
  unanswered: Unanswered.optional(),
});

export const leaseRequest = fromWire(LeaseRequestBody, { agent: "name", max_tasks: "limit" });

export const LeasedTaskBody = z.object({
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
    .meta({ description: "the W3C trace that the job was submitted in, for the agent to go on with" }),
  tracestate: z.string().nullable(),
});

export const LeaseBody = z.object({
  lease_id: z.string(),
  leader_epoch: z.int(),
  leader_id: z.string(),
  expires_in_ms: z.int(),
  tasks: z.array(LeasedTaskBody),
});
export type LeaseBody = z.output<typeof LeaseBody>;

const traceOf = ({ trace }: ClaimedJob) => (trace ? traceHeaders(trace) : null);

const leasedTask = toWire(LeasedTaskBody, {
  job_id: "id",
  attempt: "attempts",
  payload: ({ payload }: ClaimedJob): unknown => JSON.parse(payload),
  traceparent: (job: ClaimedJob) => traceOf(job)?.traceparent ?? null,
  tracestate: (job: ClaimedJob) => traceOf(job)?.tracestate ?? null,
});

export const leaseBody = toWire(LeaseBody, {
  lease_id: "id",
  leader_id: "leader",
  expires_in_ms: "leaseMs",
  tasks: ({ jobs }: Lease) => jobs.map(leasedTask),
});

export const RenewRequestBody = z.strictObject({ agent: AgentName, lease_id: LeaseIdText });

export const RenewedBody = z.object({
  lease_id: z.string(),
  leader_epoch: z.int(),
  expires_in_ms: z.int(),
  cancelled: z.array(z.object({ job_id: z.string(), job_epoch: z.int(), reason: z.string().nullable() })),
});

// ---------------------------------------------------------------- what agents say of their runs

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
    })
    .optional(),
});

export const ResultsRequestBody = z.union([ResultRequest, z.array(ResultRequest).min(1).max(RESULTS_MAX)]);

export const ResultBody = z.object({
  job_id: z.string(),
  accepted: z.boolean(),
  status: Status.optional().meta({
    description: "of the job afterwards; left out when the result was refused",
  }),
  leader_epoch: z.int().nullable(),
  error: z.string().optional().meta({ description: "STALE_EPOCH or NOT_FOUND, when it was refused" }),
  alias: z.string().optional(),
  message: z.string().optional(),
  field: z.string().optional(),
});
export type ResultBody = z.output<typeof ResultBody>;

const runNames = { lease_id: "lease", job_id: "job" } as const;
const NO_EPOCHS = { jobEpoch: null, leaderEpoch: null };
const resultOf = fromWire(ResultRequest, runNames);

export function agentResult(body: z.output<typeof ResultRequest>): AgentResult {
  const result = resultOf(body);
  return { ...NO_EPOCHS, ...result, job: result.job as JobId };
}

export function resultBody(answer: ResultAnswer): ResultBody {
  if (answer.accepted) {
    const { job, status, leaderEpoch } = answer;
    return { job_id: job, accepted: true, status, leader_epoch: leaderEpoch };
  }
  const { code, message, field, leaderEpoch } = answer.refusal;
  const alias = code === "STALE_EPOCH" ? { alias: "STALE_LEASE" } : {};
  return {
    job_id: answer.job,
    accepted: false,
    leader_epoch: leaderEpoch,
    error: code,
    ...alias,
    message,
    field,
  };
}

export const LogsRequestBody = z.strictObject({
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
      percent: z.number().min(0).max(100).meta({ description: "a number from 0 to 100" }),
      message: z.string().optional(),
    })
    .optional(),
});

const logsOf = fromWire(LogsRequestBody, runNames);

export function agentReport(body: z.output<typeof LogsRequestBody>): AgentReport {
  const { lines, progress, ...run } = logsOf(body);
  return {
    ...NO_EPOCHS,
    ...run,
    job: run.job as JobId,
    lines: lines.map((line) => ({ ...line, at: line.at ?? null })),
    progress: progress ? { value: progress.percent, message: progress.message ?? null } : null,
  };
}

// ---------------------------------------------------------------- agents

export const HeartbeatBody = z.strictObject({
  agent: AgentName,
  capabilities: Capabilities.optional(),
  version: Version.optional(),
  labels: Labels.optional(),
  running: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .meta({ description: "a whole number from 0: how many jobs it runs" }),
  unanswered: Unanswered.optional(),
});

export const AgentBody = z.object({
  name: z.string(),
  state: z.enum(["alive", "stale", "removed"]),
  capabilities: z.array(z.string()),
  version: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
  running: z.int(),
  first_seen_at: z.string(),
  last_seen_at: z.string(),
  removed_at: z.string().nullable(),
  leader_epoch: z.int(),
});
export type AgentBody = z.output<typeof AgentBody>;

export const agentBody = toWire(AgentBody, {
  labels: ({ labels }: AgentView) => JSON.parse(labels) as Record<string, string>,
});
