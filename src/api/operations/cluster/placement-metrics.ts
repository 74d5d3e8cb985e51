/** How many jobs each node has placed on which nodes, with one row per node for a dashboard of the whole cluster. */

import { z } from "zod";
import { sumOf } from "../../../core/format-figures.ts";
import { askAllNodes } from "../../ask-all-nodes.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";
import { countOf } from "../jobs/jobs.ts";

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
