/** Registers the metrics that `/metrics` reads from the services of all layers; the last step of the composition. */

import type { LeaderElections } from "../leadership/leader-elections.ts";
import { describeBacklog } from "../observe/metrics/backlog-metrics.ts";
import { VERSION } from "../platform/version.ts";
import type { Backend } from "./backend.ts";
import type { Entry } from "./entry.ts";
import type { NodePlatform } from "./platform.ts";
import type { Work } from "./work.ts";

export function registerMetrics(p: NodePlatform, b: Backend, e: LeaderElections, w: Work, x: Entry): void {
  const { settings, identity, metrics, startedAt, clock } = p;
  const { instruments, node, leaders, jobs } = metrics;
  node.describe(instruments, {
    identity,
    about: {
      version: VERSION,
      store: b.store.guarantees.name,
      coordination: b.coordination.kind,
      channels: b.channels.kind,
      dispatch: w.push ? "push" : "pull",
    },
    startedAt,
    slots: p.places.concurrency,
    watch: p.watch,
    watchdog: p.watchdog,
    worker: w.worker,
    membership: b.membership,
    http: x.http,
    owner: w.push?.owner ?? null,
  });
  leaders.describe(instruments, (role) => e.of(role));
  describeBacklog(instruments, clock, x.backlog, settings.agents.staleAfterMs, () => jobs.errors);
}
