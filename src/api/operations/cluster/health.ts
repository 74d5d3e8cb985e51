/** Health checks: whether this node is alive, ready and working, and its role. */

import { z } from "zod";
import { WORK_CODES } from "../../../core/health/work-health.ts";
import { roleOf } from "../../../core/leadership/role.ts";
import type { Role } from "../../../core/leadership/role.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";

export const RoleName = z.enum(["LEADER", "STANDBY", "DRAINING"]);

export function standing(services: NodeServices): {
  role: Role;
  leader_epoch: number | null;
  leader_id: string | null;
} {
  const term = services.leadership.current();
  return {
    role: roleOf(services.leadership.held(), services.health.draining),
    leader_epoch: term?.epoch ?? null,
    leader_id: term?.leader ?? null,
  };
}

const Standing = z.object({
  role: RoleName,
  leader_epoch: z.int().nullable(),
  leader_id: z.string().nullable(),
});

const here = { at: "here" } as const;

export const health = operation("GET /health", {
  name: "health",
  summary: "This node answers",
  tag: "node",
  permission: "public",
  target: here,
  replies: { 200: z.object({ status: z.literal("ok"), node: z.string() }) },
  handler: ({ identity }) => answer(200, { status: "ok", node: identity.name }),
});

export const healthz = operation("GET /healthz", {
  name: "healthz",
  summary: "This node answers, with its role",
  tag: "node",
  permission: "public",
  target: here,
  replies: { 200: Standing.extend({ ok: z.literal(true) }) },
  handler: (services) => answer(200, { ok: true, ...standing(services) }),
});

export const livez = operation("GET /livez", {
  name: "livez",
  summary: "The process runs and its event loop turns; 503 when only a restart will help",
  tag: "node",
  permission: "public",
  target: here,
  replies: {
    200: z.object({ ok: z.literal(true) }),
    503: z.object({ ok: z.literal(false), reason: z.string() }),
  },
  handler: ({ health }) =>
    health.problem === null ? answer(200, { ok: true }) : answer(503, { ok: false, reason: health.problem }),
});

const ReadyBody = z.object({
  ready: z.boolean(),
  checks: z.record(z.string(), z.object({ ok: z.boolean(), reason: z.string().optional() })),
});

export const readyz = operation("GET /readyz", {
  name: "readyz",
  summary: "Whether this node can do its work now: 200, or 503 with the check that fails",
  tag: "node",
  permission: "public",
  target: here,
  replies: { 200: ReadyBody, 503: ReadyBody },
  async handler(services) {
    const { ready, checks } = await services.health.ready();
    const body = { ready, checks };
    return ready ? answer(200, body) : answer(503, body, { "retry-after": "1" });
  },
});

const WorkBody = z.object({
  ok: z.boolean(),
  code: z.enum(WORK_CODES),
  reason: z.string(),
  slots: z.int().meta({ description: "jobs that may run here at a time" }),
  running: z.int(),
  ready: z.int().nullable().meta({
    description: "jobs that are due in the queues that this node serves; null when the store does not say",
  }),
  last_claim_ms: z.int().nullable().meta({ description: "since this node last asked for jobs" }),
  claim_under_way_ms: z.int().nullable(),
});

export const workz = operation("GET /workz", {
  name: "workz",
  summary: "Whether this node takes and runs jobs as it should: 200, or 503 with the reason",
  tag: "node",
  permission: "public",
  target: here,
  replies: { 200: WorkBody, 503: WorkBody },
  async handler({ work }) {
    const { lastClaimMs, claimUnderWayMs, ...report } = await work.check();
    const whole = (ms: number | null): number | null => (ms === null ? null : Math.round(ms));
    const body = {
      ...report,
      last_claim_ms: whole(lastClaimMs),
      claim_under_way_ms: whole(claimUnderWayMs),
    };
    return report.ok ? answer(200, body) : answer(503, body);
  },
});

export const role = operation("GET /role", {
  name: "role",
  summary: "The role of this node and the leader as last seen",
  tag: "node",
  permission: "read",
  target: here,
  replies: { 200: Standing.extend({ node_id: z.string() }) },
  handler: (services) => answer(200, { node_id: services.identity.name, ...standing(services) }),
});

export const prometheus = operation("GET /metrics", {
  name: "prometheus",
  summary: "The metrics of this node as text for Prometheus",
  tag: "node",
  permission: "public",
  replies: { 200: z.string().meta({ description: "the text format of Prometheus, version 0.0.4" }) },
  async handler({ metrics }) {
    return answer(200, await metrics.text(), { "content-type": metrics.contentType });
  },
});
