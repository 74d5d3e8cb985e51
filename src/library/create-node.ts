import { Baton } from "./baton.ts";
import type { NodeOptions } from "./node-options.ts";
import { openNode } from "./open-node.ts";

/** A node for this program. Nothing has begun before its `start()`. Rejects with BAD_OPTIONS, and names what is wrong. */
export async function createNode(options: NodeOptions = {}): Promise<Baton> {
  const { node, listeners } = await openNode(options);
  return new Baton(node, listeners);
}
