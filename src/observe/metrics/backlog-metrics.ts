/**
 * Metrics of the backlog in the store, as last read. The values are the same at every node that shares the store:
 * dashboards must take the maximum, not the sum.
 */

import type { BacklogReader } from "../backlog-reader.ts";
import { agentState, type AgentState } from "../../core/agent.ts";
import { JOB_STATUSES, type JobStatus } from "../../core/jobs/job.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Instruments, Reading } from "./instruments.ts";
import { OTHER } from "./queue-task-labels.ts";

export interface BacklogMetricsOptions {
  readonly backlog: Pick<BacklogReader, "known" | "failures">;
  readonly clock: Clock;
  readonly agentStaleMs: number;
}

/** Each is eight lines of every scrape. The fullest are told by name, the others as one. */
const QUEUES_MAX = 100;

interface QueueReading {
  readonly queue: string;
  readonly counts: Readonly<Record<JobStatus, number>>;
  readonly oldestAt: number | null;
  readonly paused: boolean;
}

export function describeBacklog(instruments: Instruments, options: BacklogMetricsOptions): void {
  const { backlog, clock, agentStaleMs } = options;
  const queues = (): readonly QueueReading[] => bounded(readingsOf(backlog));
  instruments.gauge(
    {
      name: "baton_queue_jobs",
      help: "Jobs in the store, by queue and status.",
    },
    () =>
      queues().flatMap(({ queue, counts }) =>
        JOB_STATUSES.map((status): Reading => [{ queue, status }, counts[status]]),
      ),
  );
  instruments.gauge(
    {
      name: "baton_queue_oldest_seconds",
      help: "How long the job has been due that waits longest; 0 when none waits.",
    },
    () => {
      const now = clock.now();
      return queues().map(({ queue, oldestAt }): Reading => [
        { queue },
        oldestAt === null ? 0 : Math.max(0, now - oldestAt) / 1_000,
      ]);
    },
  );
  instruments.gauge({ name: "baton_queue_paused", help: "1 while the queue is paused." }, () =>
    queues().map(({ queue, paused }): Reading => [{ queue }, paused ? 1 : 0]),
  );
  instruments.gauge(
    {
      name: "baton_backlog_age_seconds",
      help: "How old the numbers of queues and agents are that this scrape tells; left out before the first.",
    },
    () => {
      const known = backlog.known();
      return known && known.ageMs / 1_000;
    },
  );
  instruments.gauge({ name: "baton_agents", help: "Agents that the store knows." }, (): Reading[] => {
    const known = backlog.known();
    if (!known) return [];
    const counts: Record<Exclude<AgentState, "removed">, number> = { alive: 0, stale: 0 };
    const now = clock.now();
    for (const agent of known.agents) {
      const state = agentState(agent, now, agentStaleMs);
      if (state !== "removed") counts[state]++;
    }
    return Object.entries(counts).map(([state, count]) => [{ state }, count]);
  });
}

function readingsOf(backlog: Pick<BacklogReader, "known">): QueueReading[] {
  const known = backlog.known()?.queues ?? [];
  return known.map(({ name, counts, oldestAt, paused }) => ({ queue: name, counts, oldestAt, paused }));
}

function bounded(queues: readonly QueueReading[]): readonly QueueReading[] {
  if (queues.length <= QUEUES_MAX) return queues;
  const fullest = [...queues].sort((a, b) => waiting(b) - waiting(a));
  const rest = fullest.splice(QUEUES_MAX - 1);
  const counts = { scheduled: 0, queued: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };
  let oldestAt: number | null = null;
  for (const queue of rest) {
    for (const status of JOB_STATUSES) counts[status] += queue.counts[status];
    if (queue.oldestAt !== null) oldestAt = Math.min(oldestAt ?? Infinity, queue.oldestAt);
  }
  return [...fullest, { queue: OTHER, counts, oldestAt, paused: false }];
}

function waiting({ counts }: QueueReading): number {
  return counts.queued + counts.scheduled + counts.processing;
}

/** Calls of the store that did not succeed, by who made them; each is tried again by whoever it was. */
export function describeStoreErrors(
  instruments: Instruments,
  errors: () => Readonly<Record<string, number>>,
): void {
  instruments.counter(
    {
      name: "baton_store_errors_total",
      help: "Calls of the store that did not succeed. claim: the worker asked for jobs; results: it brought them; submit: new jobs were to be stored; backlog: a look for metrics.",
    },
    () => Object.entries(errors()).map(([call, count]): Reading => [{ call }, count]),
  );
}
