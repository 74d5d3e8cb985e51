/** Metrics of the node itself: its version and status, its work in progress, and the nodes that it sees. */

import { HANDOFF_REASONS } from "../../channels/messages.ts";
import type { LoadMeter } from "../load-meter.ts";
import type { Watchdog } from "../watchdog.ts";
import type { Membership } from "../../leadership/coordination.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { WorkerMonitor } from "../../jobs/run/worker-monitor.ts";
import type { Owner } from "../../push/ownership/owner.ts";
import type { Instruments, Reading } from "./instruments.ts";
import { OTHER } from "./queue-task-labels.ts";
import { FastHistogram } from "./instruments.ts";

/** Where the numbers come from. */
export interface NodeMetricsOptions {
  readonly identity: NodeIdentity;
  readonly about: Readonly<Record<"version" | "store" | "coordination" | "channels" | "dispatch", string>>;
  readonly startedAt: number;
  readonly slots: number;
  readonly watch: Pick<WorkerMonitor, "claims">;
  readonly watchdog: Pick<Watchdog, "busy" | "failures">;
  readonly worker: { readonly active: number };
  readonly load: Pick<LoadMeter, "read">;
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

  /** Registers all of them, once everything that they are read from has been built. */
  describe(instruments: Instruments, options: NodeMetricsOptions): void {
    this.#describeNode(instruments, options);
    this.#describeWork(instruments, options);
    this.#describeOthers(instruments, options);
  }

  sampled(lagMs: number): void {
    this.#lastLagMs = lagMs;
    this.#lag.observe(lagMs / 1_000);
  }

  takenOver({ reason }: { readonly reason: string }): void {
    const known = this.#handoffs.has(reason) ? reason : OTHER;
    this.#handoffs.set(known, this.#handoffs.get(known)! + 1);
  }

  #describeNode(instruments: Instruments, { identity, about, startedAt, http }: NodeMetricsOptions): void {
    instruments.gauge({ name: "baton_build_info", help: "What runs here; always 1." }, () => [
      [{ node: identity.name, runtime: process.version, ...about }, 1],
    ]);
    instruments.gauge({ name: "baton_start_time_seconds", help: "Since when, since 1970." }, () => {
      return startedAt / 1_000;
    });
    instruments.histogram(
      {
        name: "baton_event_loop_lag_seconds",
        help: "How late a timer of the event loop was, twice a second: all else on it waited as long.",
      },
      () => [[{}, this.#lag]],
    );
    instruments.gauge(
      { name: "nodejs_eventloop_lag_seconds", help: "How late it was when it was measured last." },
      () => this.#lastLagMs / 1_000,
    );
    instruments.gauge(
      { name: "baton_http_connections", help: "Connections that are open." },
      () => http?.connections ?? 0,
    );
    instruments.gauge(
      { name: "baton_sse_readers", help: "Streams of events and logs that are open." },
      () => http?.streams ?? 0,
    );
  }

  #describeWork(instruments: Instruments, { slots, watch, watchdog, worker }: NodeMetricsOptions): void {
    instruments.gauge({ name: "baton_worker_slots", help: "Jobs that may run here at a time." }, () => slots);
    instruments.gauge({ name: "baton_worker_running", help: "Jobs that run here now." }, () => worker.active);
    instruments.gauge(
      {
        name: "baton_worker_last_claim_seconds",
        help: "How long ago the worker last asked for jobs; it does not while it is full. Left out before the first time.",
      },
      () => {
        const { sentAgoMs } = watch.claims();
        return sentAgoMs === null ? null : sentAgoMs / 1_000;
      },
    );
    instruments.gauge(
      {
        name: "baton_worker_unanswered_seconds",
        help: "For how long the worker has had room for jobs without an answer to a claim; 0 while it is full.",
      },
      () => (slots === 0 ? 0 : watch.claims().unansweredMs / 1_000),
    );
    instruments.gauge(
      {
        name: "baton_duty_busy_seconds",
        help: "For how long a duty of this node, as the leader, has not come to a rest.",
      },
      () => watchdog.busy().map(({ duty, busyMs }): Reading => [{ duty }, busyMs / 1_000]),
    );
    instruments.counter(
      {
        name: "baton_duty_failures_total",
        help: "How often a duty of this node, as the leader, failed and was started again.",
      },
      () => watchdog.failures().map(({ duty, failures }): Reading => [{ duty }, failures]),
    );
  }

  #describeOthers(instruments: Instruments, { identity, membership, owner }: NodeMetricsOptions): void {
    instruments.gauge({ name: "baton_nodes", help: "Nodes of the cluster as this one sees them." }, () => {
      const nodes = membership.nodes();
      return STATUSES.map((status): Reading => {
        return [{ status }, nodes.filter((node) => node.status === status).length];
      });
    });
    instruments.gauge(
      {
        name: "baton_peers_reachable",
        help: "Other nodes, by whether this one has lately heard of them or reached them.",
      },
      (): Reading[] => {
        const nodes = membership.nodes();
        const own = nodes.find(({ incarnation }) => incarnation === identity.incarnation);
        const others = nodes.filter((node) => node !== own && node.status !== "dead");
        const reached = own?.load.reach;
        const near = reached ? reached.filter(({ ok }) => ok) : others.filter(({ alive }) => alive);
        return [
          [{ reachable: "yes" }, near.length],
          [{ reachable: "no" }, (reached ?? others).length - near.length],
        ];
      },
    );
    instruments.gauge(
      { name: "baton_owned_assignments", help: "Assignments whose events are this node's business." },
      () => owner?.assignments ?? 0,
    );
    instruments.gauge({ name: "baton_owned_jobs", help: "Unfinished jobs in them." }, () => owner?.jobs ?? 0);
    instruments.gauge(
      {
        name: "baton_orphan_assignments",
        help: "Assignments without an owner, as this node found them as the leader.",
      },
      () => owner?.orphans().count ?? 0,
    );
    instruments.gauge(
      {
        name: "baton_orphan_oldest_seconds",
        help: "How long the oldest of them has had none; 0 when there is none.",
      },
      () => (owner?.orphans().oldestMs ?? 0) / 1_000,
    );
    instruments.counter(
      {
        name: "baton_handoffs_total",
        help: "Assignments that this node took over from another, by why they changed hands.",
      },
      () => [...this.#handoffs].map(([reason, count]): Reading => [{ reason }, count]),
    );
  }
}
