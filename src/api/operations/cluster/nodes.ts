/** Operations on single nodes of the cluster: read, drain, resume, remove. */

import { z } from "zod";
import type { NodeRequest } from "../../../leadership/coordination.ts";
import { BatonError } from "../../../core/errors.ts";
import type { NodeName } from "../../../core/ids.ts";
import { NodeParams } from "../../bodies/fields.ts";
import { NodeBody, nodeBody } from "../../bodies/node-body.ts";
import { answer, operation } from "../../operation.ts";
import type { Cluster } from "../../../observe/cluster-view.ts";

function noSuchNode(cluster: Cluster, name: string): BatonError {
  const nodes = cluster.nodes().map((node) => node.name);
  return new BatonError("NOT_FOUND", `there is no node ${name}; there are ${nodes.join(", ")}`, { nodes });
}

export const listNodes = operation("GET /cluster/nodes", {
  name: "list_nodes",
  summary: "All nodes, the dead ones too until they are forgotten",
  replies: { 200: z.object({ nodes: z.array(NodeBody) }) },
  handler: ({ cluster }) => answer(200, { nodes: cluster.nodes().map(nodeBody) }),
});

export const getNode = operation("GET /cluster/nodes/{name}", {
  name: "get_node",
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

async function ask(cluster: Cluster, name: string, request: NodeRequest) {
  if (await cluster.ask(name as NodeName, request)) return answer(202, { name, asked: request });
  const known = cluster.nodes().find((each) => each.name === name);
  if (!known) throw noSuchNode(cluster, name);
  throw new BatonError("NOT_FOUND", `node ${name} is ${known.status} and can be asked nothing`, {
    status: known.status,
  });
}

export const drainNode = operation("POST /cluster/nodes/{name}/drain", {
  name: "drain_node",
  summary: "Ask a node to take no more work; it finishes what runs and stays",
  params: NodeParams,
  replies: { 202: AskedBody },
  handler: ({ cluster }, { params }) => ask(cluster, params.name, "drain"),
});

export const resumeNode = operation("POST /cluster/nodes/{name}/resume", {
  name: "resume_node",
  summary: "Ask a node that was drained to take work again",
  params: NodeParams,
  replies: { 202: AskedBody },
  handler: ({ cluster }, { params }) => ask(cluster, params.name, "resume"),
});

export const removeNode = operation("DELETE /cluster/nodes/{name}", {
  name: "remove_node",
  summary: "Take a node out of a cluster of peers, for good unless it joins again",
  target: { at: "leader" },
  params: NodeParams,
  replies: { 200: z.object({ name: z.string(), removed: z.literal(true) }) },
  async handler({ cluster }, { params }) {
    if (!(await cluster.remove(params.name as NodeName))) throw noSuchNode(cluster, params.name);
    return answer(200, { name: params.name, removed: true as const });
  },
});
