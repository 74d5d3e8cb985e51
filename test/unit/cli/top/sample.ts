/** A cluster to be drawn: three nodes, one of them dead, some queues, some jobs. */

import type { JournalEntryBody } from "../../../../src/api/operations/cluster/journal.ts";
import type { JobSummaryBody } from "../../../../src/api/bodies/job-body.ts";
import type { NodeBody } from "../../../../src/api/operations/cluster/nodes.ts";
import type { OverviewBody } from "../../../../src/api/overview.ts";
import { FIRST, type Model, step, type TopEvent } from "../../../../src/cli/top/top-model.ts";
import { jobBody, nodeBody } from "../fake-node.ts";

export const NOW = Date.UTC(2026, 0, 1, 12);
export const ago = (ms: number): string => new Date(NOW - ms).toISOString();

export function nodeRow(name: string, over: Partial<NodeBody> = {}): NodeBody {
  const load = {
    jobs: 3,
    connections: 1,
    cpu: 0.256,
    memory: 0.5,
    loop_lag_ms: 1.4,
    slots: null,
    owned: null,
  };
  const roles = ["gateway", "worker", "scheduler"];
  const row = {
    name,
    last_seen: ago(400),
    roles,
    started_at: ago(3_600_000),
    load,
    drain: null,
    supervised: null,
  };
  return nodeBody({ ...row, ...over }) as unknown as NodeBody;
}

export function overview(over: Partial<OverviewBody> = {}): OverviewBody {
  return {
    at: ago(0),
    node: "node-a",
    partial: false,
    unreachable: [],
    cluster: {
      name: "demo",
      formed: true,
      total_nodes: 3,
      active_nodes: 2,
      draining_nodes: 0,
      dead_nodes: 1,
      joining_nodes: 0,
      coordination: "bully",
      channels: "memory",
      dispatch: "pull",
      store: "sqlite",
    },
    leader: { node_id: "node-a", epoch: 7, acquired_at: ago(754_000), lease_until: ago(-3_000) },
    counted_at: ago(0),
    jobs: { scheduled: 4, queued: 1_204, processing: 12, completed: 48_112, failed: 3, cancelled: 0 },
    rates: { submitted_per_second: 120.4, finished_per_second: 118, failed_per_second: 0.2 },
    times: { wait_ms: { p50: 3, p95: 21, p99: 80 }, run_ms: { p50: 41, p95: 310, p99: 900 }, of: 1_000 },
    backlog: { ready: 1_204, oldest_age_ms: 3_400 },
    workers: { slots: 30, running: 12 },
    alerts: [
      {
        code: "node_dead",
        severity: "warning",
        subject: "node-c",
        message: "node-c has been silent for 12 s and is taken to be dead",
        remedy: "start it again; what it ran runs elsewhere",
        since: ago(12_000),
      },
    ],
    ...over,
  };
}

export function jobRow(n: number, over: Record<string, unknown> = {}): JobSummaryBody {
  return jobBody({
    job_id: `node-a-0199c3a1-0000-7000-8000-${String(n).padStart(12, "0")}`,
    task: n % 2 ? "resize" : "identify-language",
    status: "processing",
    worker: "node-a/1",
    progress: n * 10,
    started_at: ago(n * 1_300),
    finished_at: null,
    ...over,
  }) as unknown as JobSummaryBody;
}

const EVENTS: readonly JournalEntryBody[] = [
  {
    id: "3",
    at: ago(11_000),
    kind: "term.started",
    node: "node-a",
    actor: null,
    subject: "scheduler",
    detail: { leader: "node-a", epoch: 7 },
  },
  { id: "2", at: ago(12_000), kind: "node.dead", node: "node-a", actor: null, subject: "node-c", detail: {} },
  {
    id: "1",
    at: ago(15_000),
    kind: "write.refused",
    node: "node-c",
    actor: null,
    subject: null,
    detail: { what: "a fire", carried_epoch: 6, current_epoch: 7, count: 1 },
  },
];

const counts = { scheduled: 4, queued: 1_204, processing: 12, completed: 48_112, failed: 3, cancelled: 0 };
const figures = { slots: 30, submitted_per_second: 120.4, finished_per_second: 118 };

export function sample(...events: readonly TopEvent[]): Model {
  const all: readonly TopEvent[] = [
    { kind: "overview", overview: overview() },
    {
      kind: "lists",
      lists: {
        nodes: [
          nodeRow("node-a"),
          nodeRow("node-b"),
          nodeRow("node-c", { status: "dead", alive: false, last_seen: ago(12_000) }),
        ],
        queues: [
          { name: "default", paused: false, counts, oldest_waiting_at: ago(3_400), ...figures },
          {
            name: "mail",
            paused: true,
            counts: { ...counts, queued: 0, failed: 0 },
            oldest_waiting_at: null,
            ...figures,
          },
        ],
        jobs: Array.from({ length: 9 }, (_, n) => jobRow(n + 1)),
      },
    },
    { kind: "journal", entries: EVENTS },
    ...events,
  ];
  return all.reduce((model, event) => step(model, event).model, FIRST);
}
