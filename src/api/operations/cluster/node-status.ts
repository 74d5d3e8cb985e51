/** This node: whether it is alive, ready and working, its role, its tasks, and the guarantees of its backends. */

import { z } from "zod";
import type { Guarantees } from "../../../store/store.ts";
import { isoOf, toWire } from "../../schema/to-wire.ts";
import { answer, operation } from "../../operation.ts";
import { WORK_CODES } from "../../../core/health/work-health.ts";
import type { WorkReport } from "../../../observe/worker-health-check.ts";
import { standing } from "../../route.ts";

export const RoleName = z.enum(["LEADER", "STANDBY", "DRAINING"]);

const Standing = z.object({
  role: RoleName,
  leader_epoch: z.int().nullable(),
  leader_id: z.string().nullable(),
});

export const health = operation("GET /health", {
  summary: "This node answers",
  permission: "public",
  replies: { 200: z.object({ status: z.literal("ok"), node: z.string() }) },
  handler: ({ identity }) => answer(200, { status: "ok", node: identity.name }),
});

export const healthz = operation("GET /healthz", {
  summary: "This node answers, with its role",
  permission: "public",
  replies: { 200: Standing.extend({ ok: z.literal(true) }) },
  handler: (services) => answer(200, { ok: true, ...standing(services) }),
});

export const livez = operation("GET /livez", {
  summary: "The process runs and its event loop turns; 503 when only a restart will help",
  permission: "public",
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
  summary: "Whether this node can do its work now: 200, or 503 with the check that fails",
  permission: "public",
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
  slots: z.int().describe("jobs that may run here at a time"),
  running: z.int(),
  ready: z
    .int()
    .nullable()
    .describe("jobs that are due in the queues that this node serves; null when the store does not say"),
  last_claim_ms: z.int().nullable().describe("since this node last asked for jobs"),
  claim_under_way_ms: z.int().nullable(),
});

const whole = (ms: number | null): number | null => (ms === null ? null : Math.round(ms));
const workBody = toWire(WorkBody, {
  last_claim_ms: ({ lastClaimMs }: WorkReport) => whole(lastClaimMs),
  claim_under_way_ms: ({ claimUnderWayMs }: WorkReport) => whole(claimUnderWayMs),
});

export const workz = operation("GET /workz", {
  summary: "Whether this node takes and runs jobs as it should: 200, or 503 with the reason",
  permission: "public",
  replies: { 200: WorkBody, 503: WorkBody },
  async handler({ work }) {
    const body = workBody(await work.check());
    return body.ok ? answer(200, body) : answer(503, body);
  },
});

export const role = operation("GET /role", {
  summary: "The role of this node and the leader as last seen",
  replies: { 200: Standing.extend({ node_id: z.string() }) },
  handler: (services) => answer(200, { node_id: services.identity.name, ...standing(services) }),
});

export const prometheus = operation("GET /metrics", {
  summary: "The metrics of this node as text for Prometheus",
  permission: "public",
  replies: { 200: z.string().describe("the text format of Prometheus, version 0.0.4") },
  handler: async ({ metrics }) => answer(200, await metrics.text(), { "content-type": metrics.contentType }),
});

const LOSS: Record<Guarantees["durability"], string> = {
  "power loss": "No acknowledged job is lost: it survives the death of the process and the loss of power.",
  "process crash":
    "No acknowledged job is lost when the process dies; the last moments before a loss of power may be.",
  nothing: "Jobs are kept in memory alone: they end with this process.",
};

function promised({ durability, shared }: Guarantees): string[] {
  return [
    "At-least-once execution: a job runs until a run of it has been accounted for.",
    "At most one accepted result per job: results, logs and progress of a stale run are refused.",
    LOSS[durability],
    "One fire per occurrence of a schedule.",
    ...(shared ? PROMISED_WHEN_SHARED : []),
  ];
}

const PROMISED_WHEN_SHARED = [
  "Other nodes take over the jobs of this one: when it dies, what it ran runs again elsewhere, with one crash noted.",
  "A node that was paused or cut off and comes back changes nothing any more: what it writes under an old number is refused.",
];

function notPromised({ shared }: Guarantees, more: readonly string[] = []): string[] {
  return [
    "That a job runs only once: a node may die after the effect and before the result. Give effects outside the job_id as their idempotency key: it is the same in every run.",
    "An order among jobs of equal priority when several of them run at the same time.",
    ...(shared ? [...LIMITS_WHEN_SHARED, ...more] : LIMITS_WHEN_OWN),
  ];
}

const LIMITS_WHEN_SHARED = [
  "That work goes on without the database: while it cannot be reached, changes are refused and what runs goes on only until its lease ends.",
  "More than the database keeps: a failover to a replica that lags behind may lose its last commits, and ours with them.",
  "That there is one leader at every instant: a paused one may believe in its term; what it writes is refused.",
];
const LIMITS_WHEN_OWN = ["Other nodes cannot take over the jobs of this one: its store belongs to it alone."];

const FabricBody = z.object({
  name: z.string(),
  active_nodes: z.int(),
  total_nodes: z.int(),
  formed: z.boolean(),
  coordination: z.string().describe("what elects the leader"),
  channels: z.string().describe("what carries messages between nodes"),
  dispatch: z.enum(["pull", "push"]).describe("how jobs get to workers"),
  notes: z.array(z.string()),
});
const clusterBody = toWire(FabricBody);

export const status = operation("GET /status", {
  summary: "This node, its role, its store, and what is promised and what is not",
  replies: {
    200: z.object({
      node: z.string(),
      incarnation: z.string(),
      version: z.string(),
      role: RoleName,
      roles: z.array(z.string()),
      leader_epoch: z.int().nullable(),
      leader_id: z.string().nullable(),
      started_at: z.string(),
      uptime_ms: z.int(),
      cluster: FabricBody,
      store: z.object({ name: z.string(), durability: z.string(), shared: z.boolean() }),
      guarantees: z.object({ promised: z.array(z.string()), not_promised: z.array(z.string()) }),
    }),
  },
  handler(services) {
    const { identity, guarantees, startedAt, version, clock, roles } = services;
    const info = services.cluster.info();
    return answer(200, {
      node: identity.name,
      incarnation: identity.incarnation,
      version,
      ...standing(services),
      roles: Array.from<string>(roles),
      started_at: isoOf(startedAt),
      uptime_ms: Math.max(0, Math.round(clock.now() - startedAt)),
      cluster: clusterBody({ ...info, ...info.fabric }),
      store: { name: guarantees.name, durability: guarantees.durability, shared: guarantees.shared },
      guarantees: { promised: promised(guarantees), not_promised: notPromised(guarantees, info.limits) },
    });
  },
});

const TaskBody = z.object({
  name: z.string(),
  isolation: z.enum(["none", "thread"]),
  has_schema: z.boolean(),
  schema: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe("JSON Schema of the payload, where the task's own schema can be said in it"),
});
const taskBody = toWire(TaskBody);

export const listTasks = operation("GET /tasks", {
  summary: "The tasks that this node can run",
  replies: { 200: z.object({ tasks: z.array(TaskBody) }) },
  handler: ({ tasks }) => answer(200, { tasks: tasks.list().map(taskBody) }),
});

const SettingBody = z.object({
  path: z.string(),
  value: z.unknown().describe("as it would be written in the file"),
  source: z
    .string()
    .nullable()
    .describe("default, a profile, file:line:column, a variable, a flag, or why it was chosen at the start"),
  is_default: z.boolean(),
});
const settingBody = toWire(SettingBody);

export const getSettings = operation("GET /node/settings", {
  summary: "The settings of this node with their sources; secrets are hidden",
  permission: "operate",
  replies: { 200: z.object({ node: z.string(), settings: z.array(SettingBody) }) },
  handler: ({ identity, settings }) =>
    answer(200, { node: identity.name, settings: settings.list().map(settingBody) }),
});
