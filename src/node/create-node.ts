import type { BatonNode, NodeOptions } from "./baton-node.ts";

/** Loads all that a node is made of: a program that only defines tasks or calls a cluster starts without it. */
export async function createNode(options: NodeOptions = {}): Promise<BatonNode> {
  const node = await import("./baton-node.ts");
  return node.createNode(options);
}
