/** Operations on agents under `/v1`, and the stream of events. */

import { z } from "zod";
import type { AgentView } from "../../../controller/agent-directory.ts";
import { AGENT_NAME, REQUEST_ID } from "../../../core/agent.ts";
import { Name, bounded, matching } from "../../bodies/fields.ts";
import { answer, operation } from "../../operation.ts";
import { lastEventId } from "../../schema/event-bytes.ts";
import { toWire } from "../../schema/to-wire.ts";

export const CAPABILITIES_MAX = 1_000;
const UNANSWERED_MAX = 64;

export const AgentName = matching(
  AGENT_NAME,
  "the name of an agent: 1 to 128 letters, digits or . _ - that begin and end with a letter or a digit",
);

export const Capabilities = z
  .array(Name)
  .min(1)
  .max(CAPABILITIES_MAX)
  .describe(`a list of the names of the tasks that the agent can run, 1 to ${CAPABILITIES_MAX}`);

export const Version = bounded(128, "a text of 1 to 128 characters");

export const Labels = z
  .record(z.string(), z.string().max(1_000))
  .describe("an object whose values are texts of at most 1000 characters");

export const RequestId = matching(
  REQUEST_ID,
  "a name of 1 to 64 letters, digits or . _ ~ - that this agent gives to no other request for a lease",
);

export const Unanswered = z
  .array(RequestId)
  .max(UNANSWERED_MAX)
  .describe(
    `a list of at most ${UNANSWERED_MAX} request_ids whose answers never arrived and are not waited for: what was leased with them goes back at once`,
  );

const HeartbeatBody = z.strictObject({
  agent: AgentName,
  capabilities: Capabilities.optional(),
  version: Version.optional(),
  labels: Labels.optional(),
  running: z.int().min(0).max(1_000_000).optional().describe("a whole number from 0: how many jobs it runs"),
  unanswered: Unanswered.optional(),
});

const AgentBody = z.object({
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
const agentBody = toWire(AgentBody, {
  labels: ({ labels }: AgentView) => JSON.parse(labels) as Record<string, string>,
});

export const v1ListAgents = operation("GET /v1/agents", {
  summary: "The agents, by name, with what they can run and when they were seen",
  query: z.strictObject({
    include_removed: z.enum(["true", "false"]).default("false").describe("true or false"),
  }),
  replies: { 200: z.object({ agents: z.array(AgentBody) }) },
  async handler(services, { query }) {
    const agents = await services.controller.agents(query.include_removed === "true");
    return answer(200, { agents: agents.map(agentBody) });
  },
});

export const v1AgentHeartbeat = operation("POST /v1/agents/heartbeat", {
  summary: "An agent says that it lives; what it leaves out stays as it was",
  frequent: true,
  body: HeartbeatBody,
  replies: { 200: z.object({ ok: z.literal(true), leader_epoch: z.int() }) },
  async handler(services, { body: { agent, ...sign } }) {
    const { leaderEpoch } = await services.controller.heartbeat({ ...sign, name: agent });
    return answer(200, { ok: true, leader_epoch: leaderEpoch });
  },
});

export const v1RemoveAgent = operation("DELETE /v1/agents/{agent_name}", {
  summary: "Remove an agent; it is back when it shows itself again, and what it has leased is not touched",
  permission: "admin",
  params: z.strictObject({ agent_name: AgentName }),
  replies: { 200: z.object({ ok: z.literal(true), deleted: z.boolean() }) },
  handler: async (services, { params }) =>
    answer(200, { ok: true, deleted: await services.controller.removeAgent(params.agent_name) }),
});

const EVENT_ID = /^\d{1,15}-\d{1,15}$/;
const EventId = matching(EVENT_ID, "the id of an event, as 7-120");

export const v1Events = operation("GET /v1/events", {
  summary:
    "What happens at this node, as server-sent events: first hello, then the others; resumes behind Last-Event-ID or since",
  streams: true,
  query: z.strictObject({ since: EventId.optional() }),
  replies: {},
  handler(services, { query, headers }) {
    const controller = services.controller;
    const since =
      lastEventId(headers["last-event-id"], EVENT_ID, "the id of an event, as 7-120") ?? query.since ?? null;
    return { events: (signal) => controller.events(since, signal) };
  },
});
