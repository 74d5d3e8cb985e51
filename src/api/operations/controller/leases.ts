/** Operations of agents on leases: acquire, renew, and post logs and results. At the leader only. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import {
  LeaseBody,
  LeaseRequestBody,
  LogsRequestBody,
  RenewRequestBody,
  RenewedBody,
  ResultBody,
  ResultsRequestBody,
  agentReport,
  agentResult,
  leaseBody,
  leaseRequest,
  resultBody,
} from "../../bodies/controller-body.ts";
import { controllerOf } from "../../node-services.ts";
import { answer, operation } from "../../operation.ts";
import type { Caller } from "../../../controller/lease-waiters.ts";

/** One that is not on a socket of ours. */
const STAYS: Caller = { gone: false, onGone: () => () => {} };

export const v1Lease = operation("POST /v1/leases", {
  frequent: true,
  name: "v1_lease",
  summary: "Lease jobs of the named tasks: waits up to timeout_ms for at least one; 204 when there was none",
  waits: true,
  body: LeaseRequestBody,
  replies: { 200: LeaseBody, 204: z.null() },
  async handler(services, { body, caller = STAYS }) {
    const { leaderEpoch, ...request } = leaseRequest(body);
    const known = leaderEpoch == null ? request : { ...request, leaderEpoch };
    const lease = await controllerOf(services).lease(known, caller);
    return lease ? answer(200, leaseBody(lease)) : answer(204, null);
  },
});

export const v1RenewLease = operation("POST /v1/leases/renew", {
  frequent: true,
  name: "v1_renew_lease",
  summary: "Keep a lease, learn the current leader_epoch and which of its jobs are to be cancelled",
  body: RenewRequestBody,
  replies: { 200: RenewedBody },
  async handler(services, { body }) {
    const { lease_id, agent } = body;
    const { leaseMs, leaderEpoch, cancelled } = await controllerOf(services).renew(agent, lease_id);
    return answer(200, {
      lease_id,
      leader_epoch: leaderEpoch,
      expires_in_ms: leaseMs,
      cancelled: cancelled.map(({ id, jobEpoch, reason }) => ({ job_id: id, job_epoch: jobEpoch, reason })),
    });
  },
});

export const v1PostResults = operation("POST /v1/results", {
  frequent: true,
  name: "v1_post_results",
  summary:
    "How a leased job ended, or an array of them with an answer for each; the same again is answered the same",
  body: ResultsRequestBody,
  replies: { 200: z.union([ResultBody, z.array(ResultBody)]) },
  async handler(services, { body }) {
    const many = Array.isArray(body);
    const answers = await controllerOf(services).results((many ? body : [body]).map(agentResult));
    const bodies = answers.map(resultBody);
    if (many) return answer(200, bodies);
    const [only] = answers;
    if (only!.accepted) return answer(200, bodies[0]!);
    const { error: _code, message, accepted: _accepted, ...details } = bodies[0]!;
    throw new BatonError(only!.refusal.code, message!, details);
  },
});

export const v1PostLogs = operation("POST /v1/logs", {
  frequent: true,
  name: "v1_post_logs",
  summary: "Log lines and progress of a leased job",
  body: LogsRequestBody,
  replies: { 200: z.object({ accepted: z.int() }) },
  async handler(services, { body }) {
    const accepted = await controllerOf(services).report(agentReport(body));
    return answer(200, { accepted });
  },
});
