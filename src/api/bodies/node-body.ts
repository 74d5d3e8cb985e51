/** The response body of a node. */

import { z } from "zod";
import type { NodeInfo, NodeLoad } from "../../core/node.ts";
import { isoOf, toWire } from "../schema/to-wire.ts";

export const NodeBody = z.object({
  name: z.string(),
  status: z.string().meta({ description: "joining, active, draining or dead" }),
  last_seen: z.string().nullable().meta({ description: "null: never yet" }),
  alive: z.boolean().meta({ description: "not dead, and heard of lately" }),
  incarnation: z.string(),
  url: z.string().nullable(),
  hostname: z.string(),
  address: z.string().nullable(),
  http_port: z.int().nullable(),
  roles: z.array(z.string()),
  capabilities: z.array(z.string()).meta({ description: "the tasks that it can run" }),
  version: z.string(),
  started_at: z.string(),
  load: z.object({
    jobs: z.int().meta({ description: "how many run now" }),
    connections: z.int(),
    cpu: z.number().meta({ description: "a share between 0 and 1, as memory" }),
    memory: z.number(),
    loop_lag_ms: z.number(),
    slots: z.int().nullable().meta({ description: "how many jobs it may run at once" }),
    owned: z.int().nullable().meta({
      description:
        "unfinished jobs whose events are this node's business; null where jobs are not dispatched",
    }),
  }),
  drain: z
    .object({
      owned: z.int().meta({ description: "jobs that it owned when the drain began" }),
      handed_over: z.int(),
      finished: z.int().meta({ description: "ended while they waited for another owner" }),
      waiting: z.int(),
      orphaned: z.int().meta({ description: "left to the leader, which offers them" }),
      released: z.int().meta({ description: "given up when the time was over" }),
    })
    .nullable()
    .meta({ description: "how far a drain is with handing over; null while there is none" }),
  reach: z
    .array(
      z.object({
        node: z.string(),
        ok: z.boolean(),
        latency_ms: z.number().nullable(),
        reason: z.string().nullable(),
      }),
    )
    .meta({
      description: "whether it can reach the others at the addresses that they tell, every few seconds",
    }),
  supervised: z.record(z.string(), z.unknown()).nullable().meta({
    description: "what the node-controller above it tells of itself and its children; null without one",
  }),
});
export type NodeBody = z.output<typeof NodeBody>;

const ofNode = toWire(NodeBody.omit({ drain: true, reach: true, supervised: true }), {
  // Before the first sign of life.
  last_seen: ({ lastSeenAt }: NodeInfo) => (lastSeenAt === 0 ? null : isoOf(lastSeenAt)),
});
const ofLoad = toWire(NodeBody.pick({ drain: true, reach: true, supervised: true }), {
  reach: ({ reach = [] }: NodeLoad) =>
    reach.map(({ latencyMs, ...rest }) => ({ ...rest, latency_ms: latencyMs })),
});

export function nodeBody(node: NodeInfo): NodeBody {
  return { ...ofNode(node), ...ofLoad(node.load) };
}
