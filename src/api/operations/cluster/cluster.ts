/** Operations on the cluster as this node sees it: its leaders, its metrics, and who placed how many jobs where. */

import { z } from "zod";
import { rounded, sumOf } from "../../../core/format-figures.ts";
import { total } from "../../../observe/metrics/metrics-duty.ts";
import { askAllNodes } from "../../ask-all-nodes.ts";
import { limit, StatusCounts } from "../../bodies/fields.ts";
import { toWire } from "../../schema/to-wire.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";
import { OverviewBody } from "../../overview.ts";
import { countOf } from "../jobs/jobs.ts";

export const ClusterBody = z.object({
  name: z.string(),
  total_nodes: z.int(),
  active_nodes: z.int(),
  draining_nodes: z.int(),
  dead_nodes: z.int(),
  joining_nodes: z.int(),
  scheduler_leader: z.string().nullable(),
  minimum_nodes: z.int(),
  formed: z.boolean().describe("whether enough nodes have gathered that callers are served"),
  notes: z.array(z.string()).describe("what people should know of how this cluster works"),
});
export type ClusterBody = z.output<typeof ClusterBody>;
const clusterBody = toWire(ClusterBody);

export const getCluster = operation("GET /cluster", {
  summary: "The cluster in numbers",
  replies: { 200: ClusterBody },
  handler: ({ cluster }) => answer(200, clusterBody(cluster.info())),
});

export const LeaderBody = z.object({
  role: z.string(),
  node_id: z.string(),
  epoch: z.int(),
  acquired_at: z.string(),
  lease_until: z.string(),
  valid: z.boolean().describe("whether the lease runs, by the clock of the node that answers"),
});
export type LeaderBody = z.output<typeof LeaderBody>;
const leaderBody = toWire(LeaderBody, { node_id: "leader" });

export const getLeaders = operation("GET /cluster/leaders", {
  summary: "Who leads in each role, under which epoch and until when",
  replies: { 200: z.object({ leaders: z.array(LeaderBody) }) },
  async handler({ cluster, clock }) {
    const now = clock.now();
    const leaders = await cluster.leaders();
    return answer(200, {
      leaders: leaders.map((leader) => leaderBody({ ...leader, valid: leader.leaseUntil > now })),
    });
  },
});

export const SampleBody = z.object({
  at: z.string(),
  leader_epoch: z.int(),
  nodes: z.int(),
  jobs: StatusCounts,
  finished_per_second: z.number(),
  load: z.object({
    cpu: z.number(),
    memory: z.number(),
    loop_lag_ms_max: z.number(),
    running: z.int(),
  }),
});
export type SampleBody = z.output<typeof SampleBody>;
const SamplesBody = z.object({ samples: z.array(SampleBody) });

const sampleBody = toWire(SampleBody);

/** Nodes take their samples every ten seconds, each at its own time: what is farther away is of another one. */
const SAME_MS = 10_000;

/**
 * Where each node counts its own jobs, the counts of all at about the same time. The first list is our own, and what it
 * says of the nodes holds for the cluster.
 */
export function addedUp([own = [], ...others]: readonly (readonly SampleBody[])[]): SampleBody[] {
  const lists = others.map((samples) => ({ samples, times: samples.map(timeOf), next: 0 }));
  return own.map((sample) => {
    const at = timeOf(sample);
    const beside = lists.flatMap((list) => {
      const away = (index: number): number => Math.abs((list.times[index] ?? Infinity) - at);
      // All are newest first: whoever is nearest to an older one is no newer.
      while (away(list.next + 1) <= away(list.next) && list.next + 1 < list.times.length) list.next++;
      return away(list.next) < SAME_MS ? [list.samples[list.next]!] : [];
    });
    const all = [sample, ...beside];
    return {
      ...sample,
      jobs: total(all.map(({ jobs }) => ({ counts: jobs }))),
      finished_per_second: rounded(sumOf(all, (each) => each.finished_per_second)),
    };
  });
}

function timeOf({ at }: SampleBody): number {
  return Date.parse(at);
}

export const getClusterMetrics = operation("GET /cluster/metrics", {
  summary: "Samples of the whole cluster, newest first",
  query: z.strictObject({ limit: limit(60, 1_000) }),
  replies: { 200: SamplesBody },
  async handler(services, { query, inbound }) {
    const { answers } = await askAllNodes(services, inbound, {
      here: async () => (await services.cluster.metrics(query.limit)).map(sampleBody),
      path: () => `/cluster/metrics?limit=${query.limit}`,
      read: (body) => SamplesBody.parse(body).samples,
    });
    return answer(200, { samples: addedUp(answers.map(({ answer: samples }) => samples)) });
  },
});

export const getOverview = operation("GET /cluster/overview", {
  summary: "The cluster at a glance: nodes, leader, jobs, rates, times, backlog and alerts",
  replies: { 200: OverviewBody },
  handler: async ({ live }, { inbound }) => answer(200, await live.overview(inbound)),
});

export const followCluster = operation("GET /cluster/live", {
  summary:
    "The cluster as it changes, as server-sent events: overview (at once, then at most once a second), journal (each new entry)",
  streams: true,
  replies: {},
  handler: ({ live }) => ({ events: (signal) => live.follow(signal) }),
});

const Counts = z.record(z.string(), z.number());

export const LocalMetricsBody = z.object({
  jobs_submitted: Counts.describe(
    "requests with new jobs since this node's start, by the node that was asked and the one that got them",
  ),
  jobs_owned: Counts,
  jobs_active: Counts,
  node_up: Counts.describe("1 or 0, as this node sees it"),
  node_last_health: Counts.describe("when each was last heard of, in seconds since 1970"),
});
export type LocalMetricsBody = z.output<typeof LocalMetricsBody>;

async function localMetrics(services: NodeServices): Promise<LocalMetricsBody> {
  const { identity, cluster, placement } = services;
  const self = identity.name;
  const nodes = cluster.nodes();
  const placed = Object.entries(placement?.placed() ?? {});
  return {
    jobs_submitted: Object.fromEntries(placed.map(([target, count]) => [`${self},${target}`, count])),
    jobs_owned: { [self]: (await countOf(services, { limit: 1 })) ?? 0 },
    jobs_active: { [self]: nodes.find(({ name }) => name === self)?.load.jobs ?? 0 },
    node_up: Object.fromEntries(nodes.map(({ name, alive }) => [name, alive ? 1 : 0])),
    node_last_health: Object.fromEntries(nodes.map(({ name, lastSeenAt }) => [name, lastSeenAt / 1_000])),
  };
}

export const getLocalMetrics = operation("GET /cluster/local-metrics", {
  summary: "What this node has placed, keeps and runs, and whom it sees",
  replies: { 200: LocalMetricsBody },
  handler: async (services) => answer(200, await localMetrics(services)),
});

export const getMetricsSummary = operation("GET /cluster/metrics-summary", {
  summary: "All nodes in one row each: the numbers of those that answer, added up",
  replies: {
    200: z.object({
      nodes: z.array(
        z.object({
          name: z.string(),
          up: z.boolean(),
          jobs_owned_total: z.int(),
          jobs_active: z.int(),
          jobs_submitted_as_target: z.int(),
          last_health_ts: z.number(),
        }),
      ),
    }),
  },
  async handler(services, { inbound }) {
    const known = services.cluster.nodes();
    const { answers } = await askAllNodes(services, inbound, {
      here: () => localMetrics(services),
      path: () => "/cluster/local-metrics",
      read: (body) => LocalMetricsBody.parse(body),
    });
    const given = answers.map((each) => each.answer);
    return answer(200, {
      nodes: known.map(({ name, alive, lastSeenAt }) => ({
        name,
        up: alive,
        jobs_owned_total: sumOf(given, ({ jobs_owned }) => jobs_owned[name]),
        jobs_active: sumOf(given, ({ jobs_active }) => jobs_active[name]),
        jobs_submitted_as_target: sumOf(
          given.flatMap(({ jobs_submitted }) => Object.entries(jobs_submitted)),
          ([pair, count]) => (pair.split(",")[1] === name ? count : 0),
        ),
        last_health_ts: lastSeenAt / 1_000,
      })),
    });
  },
});
