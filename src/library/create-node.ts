import { systemRandom } from "../platform/random.ts";
import { Baton } from "./baton.ts";
import { aroundRuns, NodeListeners } from "./node-listeners.ts";
import { type NodeOptions, readOptions } from "./node-options.ts";

/** A node for this program. Nothing has begun before its `start()`. Rejects with BAD_OPTIONS, and names what is wrong. */
export async function createNode(options: NodeOptions = {}): Promise<Baton> {
  const { settings, tasks, listens, log } = readOptions(options, systemRandom);
  // Loads all that a node is made of: a program that only defines tasks or calls a cluster starts without it.
  const { createNode: createWhole } = await import("../node/baton-node.ts");
  const listeners = new NodeListeners({ onError: options.onError, log });
  const node = await createWhole({
    settings,
    tasks,
    log,
    http: listens,
    around: aroundRuns(options.use ?? []),
    observe: (events) => listeners.hear(events, () => node.services.jobs),
  });
  return new Baton(node, listeners);
}
