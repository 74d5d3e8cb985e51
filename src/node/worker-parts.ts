/** What a worker is told by the settings of its node. */

import type { Settings } from "../config/settings.ts";
import type { NodeRole } from "../core/node.ts";
import { queuesOf, type WorkerSettings } from "../jobs/worker-settings.ts";

/**
 * The embedded store can be opened by one process only, so its file lock tells that a claimant is alive: leases there
 * do not run out (a hundred years), and a blocked event loop does not cost a node its own jobs. After a crash the next
 * start takes them back at once.
 */
const EMBEDDED_LEASE_MS = 100 * 365 * 24 * 3_600_000;

export type WorkerPlaces = Pick<WorkerSettings, "concurrency" | "queues" | "exceptQueues">;

/** How many jobs a node may run, and of which queues. */
export function workerPlaces({ worker }: Settings, roles: ReadonlySet<NodeRole>): WorkerPlaces {
  const concurrency = roles.has("worker") || roles.has("function") ? worker.concurrency : 0;
  return { concurrency, ...queuesOf(roles, worker.queues) };
}

export function workerSettings(
  { worker, drain }: Settings,
  places: WorkerPlaces,
  sharedStore: boolean,
): WorkerSettings {
  return {
    ...places,
    leaseMs: sharedStore ? worker.leaseMs : EMBEDDED_LEASE_MS,
    renewMs: worker.renewMs,
    prefetchMax: worker.prefetchMax,
    abortGraceMs: drain.cleanupMs,
  };
}
