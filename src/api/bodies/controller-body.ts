/** The request and response bodies of leases, results and agents. */

import { z } from "zod";
import { AGENT_NAME, REQUEST_ID } from "../../core/agent.ts";
import type { JobId } from "../../core/ids.ts";
import { traceHeaders } from "../../core/trace.ts";
import { LOG_LEVELS } from "../../store/store.ts";
import type { ClaimedJob } from "../../store/store.ts";
import { RESULT_STATUSES } from "../../core/agent.ts";
import type { AgentResult, ResultAnswer } from "../../controller/result-service.ts";
import type { AgentView } from "../../controller/agent-directory.ts";
import type { Lease } from "../../controller/lease-service.ts";
import { Instant, JobIdText, Name, isoOf, isoOrNull } from "./fields.ts";
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
  max_tasks: z
    .int()
    .min(1)
    .max(TASKS_MAX)
    .default(1)
    .meta({ description: `a whole number from 1 to ${TASKS_MAX}` }),
  timeout_ms: z
    .int()
    .min(0)
    .max(TIMEOUT_MS_MAX)
    .default(TIMEOUT_MS)
    .meta({ description: `a number of milliseconds from 0 to ${TIMEOUT_MS_MAX}` }),
  queues: z.array(Name).max(CAPABILITIES_MAX).optional().meta({ description: "a list of names of queues" }),
  version: Version.optional(),
  labels: Labels.optional(),
  leader_epoch: Epoch,
  request_id: RequestId.optional(),
  unanswered: Unanswered.optional(),
});

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

export function leaseBody(lease: Lease): LeaseBody {
  return {
    lease_id: lease.id,
    leader_epoch: lease.leaderEpoch,
    leader_id: lease.leader,
    expires_in_ms: lease.leaseMs,
    tasks: lease.jobs.map(leasedTask),
  };
}

function leasedTask(job: ClaimedJob): z.output<typeof LeasedTaskBody> {
  const { traceparent = null, tracestate = null } = job.trace ? traceHeaders(job.trace) : {};
  return {
    job_id: job.id,
    job_epoch: job.jobEpoch,
    task: job.task,
    queue: job.queue,
    priority: job.priority,
    payload: JSON.parse(job.payload) as unknown,
    attempt: job.attempts,
    max_attempts: job.maxAttempts,
    failures: job.failures,
    timeout_ms: job.timeoutMs,
    created_at: isoOf(job.createdAt),
    traceparent,
    tracestate,
  };
}

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

export function agentResult(body: z.output<typeof ResultRequest>): AgentResult {
  const { lease_id, job_id, job_epoch, leader_epoch, ...rest } = body;
  return { ...rest, ...runNamed({ lease_id, job_id, job_epoch, leader_epoch }) };
}

export function runNamed(body: {
  lease_id: string;
  job_id: string;
  job_epoch?: number | null;
  leader_epoch?: number | null;
}) {
  return {
    job: body.job_id as JobId,
    lease: body.lease_id,
    jobEpoch: body.job_epoch ?? null,
    leaderEpoch: body.leader_epoch ?? null,
  };
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

export function agentBody(agent: AgentView): AgentBody {
  return {
    name: agent.name,
    state: agent.state,
    capabilities: [...agent.capabilities],
    version: agent.version,
    labels: JSON.parse(agent.labels) as Record<string, string>,
    running: agent.running,
    first_seen_at: isoOf(agent.firstSeenAt),
    last_seen_at: isoOf(agent.lastSeenAt),
    removed_at: isoOrNull(agent.removedAt),
    leader_epoch: agent.leaderEpoch,
  };
}
