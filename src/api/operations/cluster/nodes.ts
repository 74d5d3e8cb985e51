/** Operations on single nodes of the cluster: read, drain, resume, remove. */

import { z } from "zod";
import type { NodeRequest } from "../../../leadership/coordination.ts";
import { BatonError } from "../../../core/errors.ts";
import type { NodeName } from "../../../core/ids.ts";
import type { NodeInfo, NodeLoad } from "../../../core/node.ts";
import { NodeParams, type ByName } from "../../bodies/fields.ts";
import type { NodeServices } from "../../node-services.ts";
import { answer, operation } from "../../operation.ts";
import type { Cluster } from "../../../observe/cluster-view.ts";
import { isoOf, toWire } from "../../schema/to-wire.ts";

export const NodeBody = z.object({
  name: z.string(),
  status: z.string().describe("joining, active, draining or dead"),
  last_seen: z.string().nullable().describe("null: never yet"),
  alive: z.boolean().describe("not dead, and heard of lately"),
  incarnation: z.string(),
  url: z.string().nullable(),
  hostname: z.string(),
  address: z.string().nullable(),
  http_port: z.int().nullable(),
  roles: z.array(z.string()),
  capabilities: z.array(z.string()).describe("the tasks that it can run"),
  version: z.string(),
  started_at: z.string(),
  load: z.object({
    jobs: z.int().describe("how many run now"),
    connections: z.int(),
    cpu: z.number().describe("a share between 0 and 1, as memory"),
    memory: z.number(),
    loop_lag_ms: z.number(),
    slots: z.int().nullable().describe("how many jobs it may run at once"),
    owned: z
      .int()
      .nullable()
      .describe("unfinished jobs whose events are this node's business; null where jobs are not dispatched"),
  }),
  drain: z
    .object({
      owned: z.int().describe("jobs that it owned when the drain began"),
      handed_over: z.int(),
      finished: z.int().describe("ended while they waited for another owner"),
      waiting: z.int(),
      orphaned: z.int().describe("left to the leader, which offers them"),
      released: z.int().describe("given up when the time was over"),
    })
    .nullable()
    .describe("how far a drain is with handing over; null while there is none"),
  reach: z
    .array(
      z.object({
        node: z.string(),
        ok: z.boolean(),
        latency_ms: z.number().nullable(),
        reason: z.string().nullable(),
      }),
    )
    .describe("whether it can reach the others at the addresses that they tell, every few seconds"),
  supervised: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe("what the node-controller above it tells of itself and its children; null without one"),
});
export type NodeBody = z.output<typeof NodeBody>;

const ofNode = toWire(NodeBody.omit({ drain: true, reach: true, supervised: true }), {
  last_seen: ({ lastSeenAt }: NodeInfo) => (lastSeenAt === 0 ? null : isoOf(lastSeenAt)),
});
const ofLoad = toWire(NodeBody.pick({ drain: true, reach: true, supervised: true }), {
  reach: ({ reach = [] }: NodeLoad) =>
    reach.map(({ latencyMs, ...rest }) => ({ ...rest, latency_ms: latencyMs })),
});

function nodeBody(node: NodeInfo): NodeBody {
  return { ...ofNode(node), ...ofLoad(node.load) };
}

function noSuchNode(cluster: Cluster, name: string): BatonError {
  const nodes = cluster.nodes().map((node) => node.name);
  return new BatonError("NOT_FOUND", `there is no node ${name}; there are ${nodes.join(", ")}`, { nodes });
}

export const listNodes = operation("GET /cluster/nodes", {
  summary: "All nodes, the dead ones too until they are forgotten",
  replies: { 200: z.object({ nodes: z.array(NodeBody) }) },
  handler: ({ cluster }) => answer(200, { nodes: cluster.nodes().map(nodeBody) }),
});

export const getNode = operation("GET /cluster/nodes/{name}", {
  summary: "One node, as last seen",
  params: NodeParams,
  replies: { 200: NodeBody },
  handler({ cluster }, { params }) {
    const node = cluster.nodes().find((each) => each.name === params.name);
    if (!node) throw noSuchNode(cluster, params.name);
    return answer(200, nodeBody(node));
  },
});

const AskedBody = z.object({ name: z.string(), asked: z.enum(["drain", "resume"]) });

const asking = (request: NodeRequest) => ({
  params: NodeParams,
  replies: { 202: AskedBody },
  async handler({ cluster }: NodeServices, { params: { name } }: ByName) {
    if (await cluster.ask(name as NodeName, request)) return answer(202, { name, asked: request });
    const known = cluster.nodes().find((each) => each.name === name);
    if (!known) throw noSuchNode(cluster, name);
    throw new BatonError("NOT_FOUND", `node ${name} is ${known.status} and can be asked nothing`, {
      status: known.status,
    });
  },
});

export const drainNode = operation("POST /cluster/nodes/{name}/drain", {
  summary: "Ask a node to take no more work; it finishes what runs and stays",
  ...asking("drain"),
});

export const resumeNode = operation("POST /cluster/nodes/{name}/resume", {
  summary: "Ask a node that was drained to take work again",
  ...asking("resume"),
});

export const removeNode = operation("DELETE /cluster/nodes/{name}", {
  summary: "Take a node out of a cluster of peers, for good unless it joins again",
  target: { at: "leader" },
  params: NodeParams,
  replies: { 200: z.object({ name: z.string(), removed: z.literal(true) }) },
  async handler({ cluster }, { params }) {
    if (!(await cluster.remove(params.name as NodeName))) throw noSuchNode(cluster, params.name);
    return answer(200, { name: params.name, removed: true as const });
  },
});
