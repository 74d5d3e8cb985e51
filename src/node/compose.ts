/** Builds the six layers of a node, each from results of those before it. Nothing is started here, and nothing is set later. */

import { backend } from "./backend.ts";
import { duties } from "./duties.ts";
import { elections } from "./elections.ts";
import { entry } from "./entry.ts";
import type { NodeOptions } from "./node-options.ts";
import type { NodePlatform } from "./platform.ts";
import { registerMetrics } from "./register-metrics.ts";
import type { ServiceList } from "./service-list.ts";
import { work } from "./work.ts";

export type Composed = Awaited<ReturnType<typeof compose>>;

/** The store is opened through `list`, which closes it with the node. */
export async function compose(p: NodePlatform, options: NodeOptions, list: ServiceList) {
  const b = await backend(p, list, options.fabric);
  const e = elections(p, b, options.beforeLeading);
  const w = await work(p, b, e);
  const d = duties(p, b, e, w);
  const x = await entry(p, b, e, w, options.http ?? true);
  registerMetrics(p, b, e, w, x);
  return { p, b, e, w, d, x, list };
}
