/**
 * Builds the six layers of a node, each from results of those before it. Nothing is started here, and nothing is set
 * later. Also has the order in which services start; they stop in reverse.
 */

import { describeBacklog } from "../observe/metrics/backlog-metrics.ts";
import type { Service } from "../platform/service.ts";
import { VERSION } from "../platform/version.ts";
import { backend } from "./backend.ts";
import { duties } from "./duties.ts";
import { elections } from "./elections.ts";
import { entry } from "./entry.ts";
import type { NodeOptions } from "./node-options.ts";
import type { NodePlatform } from "./platform.ts";
import { atStop, type ServiceList } from "./service-list.ts";
import { work } from "./work.ts";

export type Composed = Awaited<ReturnType<typeof compose>>;

/** The store is opened through `list`, which closes it with the node. */
export async function compose(p: NodePlatform, options: NodeOptions, list: ServiceList) {
  const b = await backend(p, list, options.fabric);
  const e = elections(p, b, options.beforeLeading);
  const w = await work(p, b, e, options.around);
  const d = duties(p, b, e, w);
  const x = await entry(p, b, e, w, options.http ?? true);
  registerMetrics({ p, b, e, w, x });
  return { p, b, e, w, d, x, list };
}

function registerMetrics({ p, b, e, w, x }: Omit<Composed, "d" | "list">): void {
  const { settings, metrics, clock } = p;
  const { instruments, node, leaders, jobs } = metrics;
  node.describe(instruments, {
    ...p,
    about: {
      version: VERSION,
      store: b.store.guarantees.name,
      coordination: b.coordination.kind,
      channels: b.channels.kind,
      dispatch: w.push ? "push" : "pull",
    },
    slots: p.places.concurrency,
    worker: w.worker,
    membership: b.membership,
    http: x.http,
    owner: w.push?.owner ?? null,
  });
  leaders.describe(instruments, (role) => e.of(role));
  describeBacklog(instruments, clock, x.backlog, settings.agents.staleAfterMs, () => jobs.errors);
}

type Ordered = readonly (Service | null | undefined)[];

/** Started with the node, in the same order for all fabrics, without what the fabric does not have. The store is open. */
export function baseServices({ p, b, e, w, x }: Composed): Ordered {
  return [
    ...x.records,
    p.load,
    // Read before a peer can ask for a job back.
    w.peers?.retractionFile,
    b.peers?.transport,
    w.peers?.position,
    // Peers reach each other through their listeners, so it opens before the coordination.
    x.http,
    x.mounted,
    atStop(() => p.events.emit("node.status", "left")),
    b.coordination,
    b.reach,
    b.channels,
    w.followers,
    w.threads,
    w.push?.sink,
    e,
    w.controller,
    x.joinServer,
    w.peers?.retractions,
  ];
}

/** Started once the cluster has formed, and again when a drained node is resumed. */
export function workingServices({ w, d }: Composed): Ordered {
  return [w.push?.owner, w.push?.inbox, w.worker, d, w.declared];
}
