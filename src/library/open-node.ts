/** Builds the node behind a `Baton`. Loads all that a node is made of, so only when one is made. */

import type { NodeOptions as WholeOptions } from "../node/node-options.ts";
import { systemRandom } from "../platform/random.ts";
import { aroundRuns, NodeListeners } from "./node-listeners.ts";
import { type NodeOptions, readOptions } from "./node-options.ts";

/** `given`: in place of the machine's own, for a test. */
export async function openNode(options: NodeOptions, given: Pick<WholeOptions, "clock" | "random"> = {}) {
  const { settings, tasks, listens, log } = readOptions(options, systemRandom);
  const { createNode } = await import("../node/baton-node.ts");
  const listeners = new NodeListeners({ onError: options.onError, log });
  const node = await createNode({
    ...given,
    settings,
    tasks,
    log,
    ...(options.schedules && { schedules: options.schedules }),
    ...(options.telemetry && { telemetry: options.telemetry }),
    http: listens,
    around: aroundRuns(options.use ?? []),
    observe: (events) => listeners.hear(events, () => node.services.jobs),
  });
  return { node, listeners };
}
