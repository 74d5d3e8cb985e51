/** Operations on agents under `/v1`, and the stream of events. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import { AgentBody, AgentName, HeartbeatBody, agentBody } from "../../bodies/controller-body.ts";
import { controllerOf } from "../../node-services.ts";
import { answer, operation } from "../../operation.ts";

export const v1ListAgents = operation("GET /v1/agents", {
  name: "v1_list_agents",
  summary: "The agents, by name, with what they can run and when they were seen",
  query: z.strictObject({
    include_removed: z.enum(["true", "false"]).default("false").meta({ description: "true or false" }),
  }),
  replies: { 200: z.object({ agents: z.array(AgentBody) }) },
  async handler(services, { query }) {
    const agents = await controllerOf(services).agents(query.include_removed === "true");
    return answer(200, { agents: agents.map(agentBody) });
  },
});

export const v1AgentHeartbeat = operation("POST /v1/agents/heartbeat", {
  name: "v1_agent_heartbeat",
  summary: "An agent says that it lives; what it leaves out stays as it was",
  frequent: true,
  body: HeartbeatBody,
  replies: { 200: z.object({ ok: z.literal(true), leader_epoch: z.int() }) },
  async handler(services, { body: { agent, ...sign } }) {
    const { leaderEpoch } = await controllerOf(services).heartbeat({ ...sign, name: agent });
    return answer(200, { ok: true, leader_epoch: leaderEpoch });
  },
});

export const v1RemoveAgent = operation("DELETE /v1/agents/{agent_name}", {
  name: "v1_remove_agent",
  summary: "Remove an agent; it is back when it shows itself again, and what it has leased is not touched",
  permission: "admin",
  params: z.strictObject({ agent_name: AgentName }),
  replies: { 200: z.object({ ok: z.literal(true), deleted: z.boolean() }) },
  async handler(services, { params }) {
    return answer(200, { ok: true, deleted: await controllerOf(services).removeAgent(params.agent_name) });
  },
});

const EVENT_ID = /^\d{1,15}-\d{1,15}$/;
const EventId = z.string().regex(EVENT_ID).meta({ description: "the id of an event, as 7-120" });

export const v1Events = operation("GET /v1/events", {
  name: "v1_events",
  summary:
    "What happens at this node, as server-sent events: first hello, then the others; resumes behind Last-Event-ID or since",
  streams: true,
  query: z.strictObject({ since: EventId.optional() }),
  replies: {},
  handler(services, { query, headers }) {
    const controller = controllerOf(services);
    const since = lastSeen(headers["last-event-id"]) ?? query.since ?? null;
    return { events: (signal) => controller.events(since, signal) };
  },
});

function lastSeen(header: string | string[] | undefined): string | null {
  if (header === undefined || header === "") return null;
  if (typeof header === "string" && EVENT_ID.test(header)) return header;
  throw new BatonError("BAD_REQUEST", "the header Last-Event-ID must be the id of an event, as 7-120", {
    field: "last-event-id",
  });
}
