/**
 * Metrics of the backlog, as last read. They are the same at every node that shares the store: dashboards must take the
 * maximum, not the sum.
 */

import type { Backlog } from "../store-snapshots.ts";
import { agentState, type AgentState } from "../../core/agent.ts";
import { JOB_STATUSES } from "../../core/jobs/job.ts";
import type { Cached } from "../../platform/cached.ts";
import type { Clock } from "../../platform/clock.ts";
import { byLabel, type Instruments, type Reading } from "./instruments.ts";
import { OTHER } from "./job-metrics.ts";
import type { QueueInfo } from "../../store/store.ts";
import { total } from "./metrics-duty.ts";

/** Each is eight lines of every scrape. The longest queues have their names, the others are one. */
const QUEUES_MAX = 100;

export function describeBacklog(
  instruments: Instruments,
  clock: Clock,
  backlog: Pick<Cached<Backlog>, "value" | "ageMs" | "failures">,
  agentStaleMs: number,
  /** Calls of the store that did not succeed, by who made them; each is tried again by its caller. */
  storeErrors: () => Readonly<Record<string, number>>,
): void {
  const queues = (): readonly QueueInfo[] => bounded(backlog.value?.queues ?? []);
  const tables = () => backlog.value?.deadRows?.tables ?? [];
  instruments.register({
    baton_queue_jobs: () =>
      queues().flatMap(({ name: queue, counts }) =>
        JOB_STATUSES.map((status): Reading => [{ queue, status }, counts[status]]),
      ),
    baton_queue_oldest_seconds() {
      const now = clock.now();
      return queues().map(({ name: queue, oldestAt }): Reading => [
        { queue },
        oldestAt === null ? 0 : Math.max(0, now - oldestAt) / 1_000,
      ]);
    },
    baton_queue_paused: () => queues().map(({ name: queue, paused }): Reading => [{ queue }, paused ? 1 : 0]),
    baton_backlog_age_seconds: () => backlog.value && backlog.ageMs / 1_000,
    baton_agents() {
      if (!backlog.value) return null;
      const counts: Record<Exclude<AgentState, "removed">, number> = { alive: 0, stale: 0 };
      const now = clock.now();
      for (const agent of backlog.value.agents) {
        const state = agentState(agent, now, agentStaleMs);
        if (state !== "removed") counts[state]++;
      }
      return byLabel("state", counts);
    },
    baton_store_dead_rows: () => tables().map(({ name, dead }): Reading => [{ table: name }, dead]),
    baton_store_table_bytes: () => tables().map(({ name, bytes }): Reading => [{ table: name }, bytes]),
    baton_store_oldest_snapshot_seconds: () =>
      backlog.value && (backlog.value.deadRows?.oldestSnapshot?.ageMs ?? 0) / 1_000,
    baton_store_errors_total: () => byLabel("call", { ...storeErrors(), backlog: backlog.failures }),
  });
}

function bounded(queues: readonly QueueInfo[]): readonly QueueInfo[] {
  if (queues.length <= QUEUES_MAX) return queues;
  const fullest = [...queues].sort((a, b) => waiting(b) - waiting(a));
  const rest = fullest.splice(QUEUES_MAX - 1);
  const oldest = Math.min(...rest.map((queue) => queue.oldestAt ?? Infinity));
  const oldestAt = oldest === Infinity ? null : oldest;
  return [...fullest, { name: OTHER, counts: total(rest), oldestAt, paused: false }];
}

function waiting({ counts }: QueueInfo): number {
  return counts.queued + counts.scheduled + counts.processing;
}
