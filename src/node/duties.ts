/**
 * The fifth layer: the duties of this node while it leads, for each leader role. Duties start and end with the terms of
 * the elections.
 */

import { LeaderDuties } from "../leadership/leader-duties.ts";
import type { LeaderElections } from "../leadership/leader-elections.ts";
import { metricsDuty } from "../observe/metrics/metrics-duty.ts";
import { deadNodeRecovery } from "../jobs/recover/dead-node-recovery.ts";
import { jobId } from "../core/ids.ts";
import { LEADER_ROLES, type Duty, type LeaderRole } from "../core/leadership/term.ts";
import { retentionDuty } from "../jobs/recover/retention.ts";
import { scheduleDuty } from "../jobs/schedules/schedule-duty.ts";
import type { Service } from "../platform/service.ts";
import type { Backend } from "./backend.ts";
import { together } from "./service-list.ts";
import type { NodePlatform } from "./platform.ts";
import type { Work } from "./work.ts";

export function duties(p: NodePlatform, b: Backend, e: LeaderElections, w: Work): Service {
  const { settings, identity, events, metrics, watchdog, clock, random, log } = p;
  const { store, channels, membership } = b;
  const { push, peers, reaper, controller, author } = w;
  const leases = watchdog.duty("leases", (time) => (term, signal) => reaper.duty(term, signal, time));
  const byRole: Readonly<Record<LeaderRole, Readonly<Record<string, Duty>>>> = {
    scheduler: {
      schedules: watchdog.duty("schedules", (time) =>
        scheduleDuty({
          store: peers ? { schedules: peers.schedules.leading } : store,
          channels,
          clock: time,
          random,
          mintId: () => jobId(identity.name, random.timedUuid()),
          author,
          log,
          events,
          replicated: peers !== null,
          sink: metrics.schedules,
        }),
      ),
      nodes: watchdog.duty("nodes", (time) =>
        deadNodeRecovery({
          membership,
          reaper,
          clock: time,
          log,
          events,
          reclaim: async (dead, term) => push?.takeFrom(dead, term),
        }),
      ),
      ...push?.duties,
      agents: watchdog.duty("agents", (time) => (term, signal) => controller.duty(term, signal, time)),
      ...(peers ? { replicas: peers.schedules.duty } : { leases }),
    },
    metrics_aggregator: {
      metrics: watchdog.duty("metrics", (time) =>
        metricsDuty({ store, nodes: () => membership.nodes(), clock: time, events }),
      ),
    },
    log_compactor: {
      retention: watchdog.duty("retention", (time) =>
        retentionDuty({ store, clock: time, events, retention: settings.retention }),
      ),
      // Where each node has a store of its own, each recovers its own jobs.
      ...(peers && { leases }),
    },
  };
  return together(
    LEADER_ROLES.map(
      (role) => new LeaderDuties({ leadership: e.of(role), duties: byRole[role], clock, log }),
    ),
  );
}
