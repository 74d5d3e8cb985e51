/** Metrics of the node itself: its version and status, its process, its work in progress, and the nodes that it sees. */

import { HANDOFF_REASONS } from "../../channels/messages.ts";
import type { Watchdog } from "../watchdog.ts";
import type { Membership } from "../../leadership/coordination.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { WorkerMonitor } from "../../jobs/run/worker-monitor.ts";
import type { Owner } from "../../push/ownership/owner.ts";
import { byLabel, FastHistogram, type Instruments, type Reading } from "./instruments.ts";
import { OTHER } from "./job-metrics.ts";

export interface NodeMetricsOptions {
  readonly identity: NodeIdentity;
  readonly about: Readonly<Record<"version" | "store" | "coordination" | "channels" | "dispatch", string>>;
  readonly startedAt: number;
  readonly slots: number;
  readonly watch: Pick<WorkerMonitor, "claims">;
  readonly watchdog: Pick<Watchdog, "busy" | "failures">;
  readonly worker: { readonly active: number };
  readonly membership: Pick<Membership, "nodes">;
  readonly http: { readonly connections: number; readonly streams: number } | null;
  readonly owner: Pick<Owner, "jobs" | "assignments" | "orphans"> | null;
}

const LAG_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const STATUSES = ["joining", "active", "draining", "dead"] as const;

export class NodeMetrics {
  readonly #lag = new FastHistogram(LAG_BOUNDS);
  readonly #handoffs = new Map<string, number>([...HANDOFF_REASONS, OTHER].map((reason) => [reason, 0]));
  #lastLagMs = 0;

  sampled(lagMs: number): void {
    this.#lastLagMs = lagMs;
    this.#lag.observe(lagMs / 1_000);
  }

  takenOver({ reason }: { readonly reason: string }): void {
    const known = this.#handoffs.has(reason) ? reason : OTHER;
    this.#handoffs.set(known, this.#handoffs.get(known)! + 1);
  }

  describe(instruments: Instruments, options: NodeMetricsOptions): void {
    const { identity, about, startedAt, slots, watch, watchdog, worker, membership, http, owner } = options;
    instruments.register({
      baton_event_loop_lag_seconds: () => this.#lag,
      baton_build_info: () => [[{ node: identity.name, runtime: process.version, ...about }, 1]],
      baton_start_time_seconds: () => startedAt / 1_000,
      nodejs_eventloop_lag_seconds: () => this.#lastLagMs / 1_000,
      baton_http_connections: () => http?.connections ?? 0,
      baton_sse_readers: () => http?.streams ?? 0,
      baton_worker_slots: () => slots,
      baton_worker_running: () => worker.active,
      baton_worker_last_claim_seconds() {
        const { sentAgoMs } = watch.claims();
        return sentAgoMs === null ? null : sentAgoMs / 1_000;
      },
      baton_worker_unanswered_seconds: () => (slots === 0 ? 0 : watch.claims().unansweredMs / 1_000),
      baton_duty_busy_seconds: () =>
        watchdog.busy().map(({ duty, busyMs }): Reading => [{ duty }, busyMs / 1_000]),
      baton_duty_failures_total: () =>
        watchdog.failures().map(({ duty, failures }): Reading => [{ duty }, failures]),
      baton_nodes() {
        const nodes = membership.nodes();
        return STATUSES.map((status): Reading => {
          return [{ status }, nodes.filter((node) => node.status === status).length];
        });
      },
      baton_peers_reachable() {
        const nodes = membership.nodes();
        const own = nodes.find(({ incarnation }) => incarnation === identity.incarnation);
        const others = nodes.filter((node) => node !== own && node.status !== "dead");
        const reached = own?.load.reach;
        const near = reached ? reached.filter(({ ok }) => ok) : others.filter(({ alive }) => alive);
        return byLabel("reachable", { yes: near.length, no: (reached ?? others).length - near.length });
      },
      baton_owned_assignments: () => owner?.assignments ?? 0,
      baton_owned_jobs: () => owner?.jobs ?? 0,
      baton_orphan_assignments: () => owner?.orphans.found().count ?? 0,
      baton_orphan_oldest_seconds: () => (owner?.orphans.found().oldestMs ?? 0) / 1_000,
      baton_handoffs_total: () => [...this.#handoffs].map(([reason, count]): Reading => [{ reason }, count]),
    });
    describeProcess(instruments, startedAt);
  }
}

/**
 * The process, under the names that dashboards for Node.js expect. A library's collectors would leave a timer and an
 * observer behind for every registry, and nodes start and stop within one process.
 */
function describeProcess(instruments: Instruments, startedAt: number): void {
  instruments.register({
    process_cpu_user_seconds_total: () => process.cpuUsage().user / 1e6,
    process_cpu_system_seconds_total: () => process.cpuUsage().system / 1e6,
    process_cpu_seconds_total() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
    process_start_time_seconds: () => startedAt / 1_000,
    process_resident_memory_bytes: () => process.memoryUsage.rss(),
    nodejs_heap_size_bytes() {
      const { heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
      return byLabel("kind", { total: heapTotal, used: heapUsed, external, array_buffers: arrayBuffers });
    },
    nodejs_active_resources() {
      const counts: Record<string, number> = {};
      for (const type of process.getActiveResourcesInfo()) counts[type] = (counts[type] ?? 0) + 1;
      return byLabel("type", counts);
    },
  });
}
