/** What a node does while it leads: the duties of each leader role, and who stands for which. */

import type { BeforeLeading, LeaderGate } from "./cluster/gated-leadership.ts";
import type { Duty } from "./cluster/leader-duties.ts";
import { LeaderRoles } from "./cluster/leader-roles.ts";
import { metricsDuty } from "./cluster/metrics-duty.ts";
import { nodeWatch } from "./cluster/node-watch.ts";
import type { Watchdog } from "./cluster/watchdog.ts";
import type { Channels } from "./channels/channels.ts";
import type { Settings } from "./config/settings.ts";
import type { Controller } from "./controller/controller.ts";
import type { Coordination } from "./coordination/coordination.ts";
import { jobId, type JobId } from "./core/ids.ts";
import type { NodeIdentity, NodeRole } from "./core/node.ts";
import type { LeaseReaper } from "./jobs/lease-reaper.ts";
import { retentionDuty } from "./jobs/retention.ts";
import { scheduleDuty, type ScheduleSink } from "./jobs/schedule-duty.ts";
import type { PeerFabric } from "./peer-fabric.ts";
import type { Clock } from "./platform/clock.ts";
import type { Log } from "./platform/log.ts";
import type { NodeEvents } from "./platform/node-events.ts";
import type { Random } from "./platform/random.ts";
import type { PushDispatch } from "./push-dispatch.ts";
import type { Author, Store } from "./store/store.ts";

export interface LeaderPartsOptions {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly roles: ReadonlySet<NodeRole>;
  readonly store: Store;
  readonly coordination: Coordination;
  readonly channels: Channels;
  readonly controller: Pick<Controller, "duty" | "switchedOff">;
  readonly reaper: LeaseReaper;
  readonly push: PushDispatch | null;
  readonly peers: PeerFabric | null;
  readonly author: () => Author;
  readonly watchdog: Watchdog;
  /** Whoever measures how schedules fire. */
  readonly scheduleSink: ScheduleSink;
  readonly beforeLeading: BeforeLeading | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly events: NodeEvents;
}

export function leaderParts(options: LeaderPartsOptions): LeaderRoles {
  const { settings, identity, roles, store, coordination, channels, controller, reaper } = options;
  const { push, peers, author, beforeLeading, clock, random, log, events } = options;
  const watched = options.watchdog;
  const gate: LeaderGate | undefined =
    beforeLeading && (async (term, signal) => controller.switchedOff(await beforeLeading(term, signal)));
  const leases: Duty = watched.duty("leases", (time) => (term, signal) => reaper.duty(term, signal, time));
  const mintId = (): JobId => jobId(identity.name, random.timedUuid());
  return new LeaderRoles({
    coordination,
    identity,
    // Where each node keeps its own jobs, each looks after its own store.
    stands: (role) => roles.has("scheduler") || (peers !== null && role !== "scheduler"),
    gate,
    onChange: (change) => events.emit("term.changed", change),
    settings: settings.leader,
    clock,
    random,
    log,
    duties: {
      scheduler: {
        schedules: watched.duty("schedules", (time) =>
          scheduleDuty({
            store: peers ? { schedules: peers.schedules.leading } : store,
            channels,
            clock: time,
            random,
            mintId,
            author,
            log,
            events,
            replicated: peers !== null,
            sink: options.scheduleSink,
          }),
        ),
        nodes: watched.duty("nodes", (time) =>
          nodeWatch({
            membership: coordination.membership,
            reaper,
            clock: time,
            log,
            events,
            bury: async (lives, term) => push?.bury(lives, term),
          }),
        ),
        ...push?.duties,
        agents: watched.duty("agents", (time) => (term, signal) => controller.duty(term, signal, time)),
        ...(peers ? { replicas: peers.schedules.duty } : { leases }),
      },
      metrics_aggregator: {
        metrics: watched.duty("metrics", (time) =>
          metricsDuty({ store, nodes: () => coordination.membership.nodes(), clock: time, events }),
        ),
      },
      log_compactor: {
        retention: watched.duty("retention", (time) =>
          retentionDuty({ store, clock: time, events, retention: settings.retention }),
        ),
        ...(peers && { leases }),
      },
    },
  });
}
