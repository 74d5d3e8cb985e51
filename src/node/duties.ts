/** The fifth layer: the duties of this node while it leads, by leader role. They start and end with the terms. */

import { LeaderDuties } from "../leadership/leader-duties.ts";
import type { LeaderElections } from "../leadership/leader-elections.ts";
import { metricsDuty } from "../observe/metrics/metrics-duty.ts";
import { deadNodeRecovery } from "../jobs/recover/dead-node-recovery.ts";
import { LEADER_ROLES, type Duty, type LeaderRole } from "../core/leadership/term.ts";
import { retentionDuty } from "../jobs/retention-duty.ts";
import { scheduleDuty } from "../jobs/schedules/schedule-duty.ts";
import type { Service } from "../platform/service.ts";
import type { Backend } from "./backend.ts";
import { together } from "./service-list.ts";
import type { NodePlatform } from "./platform.ts";
import type { Work } from "./work.ts";

export function duties(p: NodePlatform, b: Backend, e: LeaderElections, w: Work): Service {
  const { settings, events, metrics, watchdog, clock: systemClock, log } = p;
  const { store, channels, membership } = b;
  const { push, peers, reaper, controller, author } = w;
  const leases = watchdog.duty("leases", (time) => (term, signal) => reaper.duty(term, signal, time));
  const byRole: Readonly<Record<LeaderRole, Readonly<Record<string, Duty>>>> = {
    scheduler: {
      schedules: watchdog.duty("schedules", (clock) =>
        scheduleDuty(
          { ...p, clock },
          {
            store: peers ? { schedules: peers.schedules.leading } : store,
            channels,
            author,
            replicated: peers !== null,
            sink: metrics.schedules,
          },
        ),
      ),
      nodes: watchdog.duty("nodes", (clock) =>
        deadNodeRecovery({ ...p, clock }, membership, reaper, async (dead, term) =>
          push?.takeFrom(dead, term),
        ),
      ),
      ...push?.duties,
      agents: watchdog.duty("agents", (time) => (term, signal) => controller.duty(term, signal, time)),
      ...(peers ? { replicas: peers.schedules.duty } : { leases }),
    },
    metrics_aggregator: {
      metrics: watchdog.duty("metrics", (time) =>
        metricsDuty({ clock: time, events }, store, () => membership.nodes()),
      ),
    },
    log_compactor: {
      retention: watchdog.duty("retention", (clock) =>
        retentionDuty({ ...p, clock }, store, settings.retention),
      ),
      // Where each node has a store of its own, each recovers its own jobs.
      ...(peers && { leases }),
    },
  };
  return together(
    LEADER_ROLES.map(
      (role) => new LeaderDuties({ leadership: e.of(role), duties: byRole[role], clock: systemClock, log }),
    ),
  );
}
