import type { BatonNode, NodeOptions } from "./baton-node.ts";

/**
 * Makes a node, which runs once it is started. All that a node is made of is loaded here: a program that defines tasks or
 * calls a cluster, and makes no node, starts without it.
 */
export async function createNode(options: NodeOptions = {}): Promise<BatonNode> {
  const node = await import("./baton-node.ts");
  return node.createNode(options);
}
