/** The status of this node: its identity, its tasks, and the guarantees of its backends. */

import { z } from "zod";
import type { Guarantees } from "../../../store/store.ts";
import { isoOf } from "../../bodies/fields.ts";
import { answer, operation } from "../../operation.ts";
import { RoleName, standing } from "./health.ts";

const LOSS: Record<Guarantees["durability"], string> = {
  "power loss": "No acknowledged job is lost: it survives the death of the process and the loss of power.",
  "process crash":
    "No acknowledged job is lost when the process dies; the last moments before a loss of power may be.",
  nothing: "Jobs are kept in memory alone: they end with this process.",
};

function promised(guarantees: Guarantees): string[] {
  const promises = [
    "At-least-once execution: a job runs until a run of it has been accounted for.",
    "At most one accepted result per job: results, logs and progress of a stale run are refused.",
    LOSS[guarantees.durability],
    "One fire per occurrence of a schedule.",
  ];
  if (guarantees.shared) {
    promises.push(
      "Other nodes take over the jobs of this one: when it dies, what it ran runs again elsewhere, with one crash noted.",
      "A node that was paused or cut off and comes back changes nothing any more: what it writes under an old number is refused.",
    );
  }
  return promises;
}

function notPromised(guarantees: Guarantees, more: readonly string[] = []): string[] {
  const limits = [
    "That a job runs only once: a node may die after the effect and before the result. Give effects outside the job_id as their idempotency key: it is the same in every run.",
    "An order among jobs of equal priority when several of them run at the same time.",
  ];
  if (guarantees.shared) {
    limits.push(
      "That work goes on without the database: while it cannot be reached, changes are refused and what runs goes on only until its lease ends.",
      "More than the database keeps: a failover to a replica that lags behind may lose its last commits, and ours with them.",
      "That there is one leader at every instant: a paused one may believe in its term; what it writes is refused.",
      ...more,
    );
  } else {
    limits.push("Other nodes cannot take over the jobs of this one: its store belongs to it alone.");
  }
  return limits;
}

export const status = operation("GET /status", {
  name: "status",
  summary: "This node, its role, its store, and what is promised and what is not",
  tag: "node",
  permission: "read",
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
      cluster: z.object({
        name: z.string(),
        active_nodes: z.int(),
        total_nodes: z.int(),
        formed: z.boolean(),
        coordination: z.string().meta({ description: "what elects the leader and knows the nodes" }),
        channels: z.string().meta({ description: "what carries messages between nodes" }),
        dispatch: z.enum(["pull", "push"]).meta({ description: "how jobs get to workers" }),
        notes: z.array(z.string()),
      }),
      store: z.object({ name: z.string(), durability: z.string(), shared: z.boolean() }),
      guarantees: z.object({ promised: z.array(z.string()), not_promised: z.array(z.string()) }),
    }),
  },
  handler(services) {
    const { identity, guarantees, startedAt, version, clock, roles } = services;
    const { name, activeNodes, totalNodes, formed, fabric, notes, limits } = services.cluster.info();
    const cluster = {
      name,
      active_nodes: activeNodes,
      total_nodes: totalNodes,
      formed,
      ...fabric,
      notes: [...notes],
    };
    return answer(200, {
      node: identity.name,
      incarnation: identity.incarnation,
      version,
      ...standing(services),
      roles: Array.from<string>(roles),
      started_at: isoOf(startedAt),
      uptime_ms: Math.max(0, Math.round(clock.now() - startedAt)),
      cluster,
      store: { name: guarantees.name, durability: guarantees.durability, shared: guarantees.shared },
      guarantees: { promised: promised(guarantees), not_promised: notPromised(guarantees, limits) },
    });
  },
});

export const listTasks = operation("GET /tasks", {
  name: "list_tasks",
  summary: "The tasks that this node can run",
  tag: "node",
  permission: "read",
  replies: {
    200: z.object({
      tasks: z.array(
        z.object({
          name: z.string(),
          isolation: z.enum(["none", "thread"]),
          has_schema: z.boolean(),
          schema: z.record(z.string(), z.unknown()).nullable().meta({
            description: "JSON Schema of the payload, where the task's own schema can be said in it",
          }),
        }),
      ),
    }),
  },
  handler: ({ tasks }) =>
    answer(200, {
      tasks: tasks.list().map(({ name, isolation, hasSchema, schema }) => ({
        name,
        isolation,
        has_schema: hasSchema,
        schema: schema && { ...schema },
      })),
    }),
});

export const getSettings = operation("GET /node/settings", {
  name: "get_settings",
  summary: "The settings of this node with their sources; secrets are hidden",
  tag: "node",
  permission: "operate",
  replies: {
    200: z.object({
      node: z.string(),
      settings: z.array(
        z.object({
          path: z.string(),
          value: z.unknown().meta({ description: "as it would be written in the file" }),
          source: z.string().nullable().meta({
            description:
              "default, a profile, file:line:column, a variable, a flag, or why it was chosen at the start",
          }),
          is_default: z.boolean(),
        }),
      ),
    }),
  },
  handler: ({ identity, settings }) =>
    answer(200, {
      node: identity.name,
      settings: settings
        .list()
        .map(({ path, value, source, isDefault }) => ({ path, value, source, is_default: isDefault })),
    }),
});
