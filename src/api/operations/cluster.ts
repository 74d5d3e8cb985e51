/** The cluster as this node sees it: who is in it, who leads, how it fares. */

import { z } from "zod";
import { JOB_STATUSES } from "../../core/job.ts";
import type { JobStatus } from "../../core/job.ts";
import { isoOf, limit } from "../fields.ts";
import { answer, operation } from "../operation.ts";

export const ClusterBody = z.object({
  name: z.string(),
  total_nodes: z.int(),
  active_nodes: z.int(),
  draining_nodes: z.int(),
  dead_nodes: z.int(),
  joining_nodes: z.int(),
  scheduler_leader: z.string().nullable(),
  minimum_nodes: z.int(),
  formed: z.boolean().meta({ description: "whether enough nodes have gathered that callers are served" }),
  notes: z.array(z.string()).meta({ description: "what people should know of how this cluster works" }),
});
export type ClusterBody = z.output<typeof ClusterBody>;

export const getCluster = operation({
  name: "get_cluster",
  method: "GET",
  path: "/cluster",
  summary: "The cluster in numbers",
  tag: "cluster",
  permission: "read",
  target: { at: "here" },
  mutates: false,
  replies: { 200: ClusterBody },
  handler({ cluster }) {
    const info = cluster.info();
    return answer(200, {
      name: info.name,
      total_nodes: info.totalNodes,
      active_nodes: info.activeNodes,
      draining_nodes: info.drainingNodes,
      dead_nodes: info.deadNodes,
      joining_nodes: info.joiningNodes,
      scheduler_leader: info.schedulerLeader,
      minimum_nodes: info.minimumNodes,
      formed: info.formed,
      notes: [...info.notes],
    });
  },
});

export const LeaderBody = z.object({
  role: z.string(),
  node_id: z.string(),
  epoch: z.int(),
  acquired_at: z.string(),
  lease_until: z.string(),
  valid: z.boolean().meta({ description: "whether the lease runs, by the clock of the node that answers" }),
});
export type LeaderBody = z.output<typeof LeaderBody>;

export const getLeaders = operation({
  name: "get_leaders",
  method: "GET",
  path: "/cluster/leaders",
  summary: "Who leads in each role, under which epoch and until when",
  tag: "cluster",
  permission: "read",
  target: { at: "here" },
  mutates: false,
  replies: { 200: z.object({ leaders: z.array(LeaderBody) }) },
  async handler({ cluster, clock }) {
    const leaders = await cluster.leaders();
    return answer(200, {
      leaders: leaders.map((leader) => ({
        role: leader.role,
        node_id: leader.node,
        epoch: leader.epoch,
        acquired_at: isoOf(leader.acquiredAt),
        lease_until: isoOf(leader.leaseUntil),
        valid: leader.leaseUntil > clock.now(),
      })),
    });
  },
});

const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, z.int()])) as Record<
  JobStatus,
  z.ZodInt
>;

export const SampleBody = z.object({
  at: z.string(),
  leader_epoch: z.int(),
  nodes: z.int(),
  jobs: z.object(counts),
  finished_per_second: z.number(),
  load: z.object({
    cpu: z.number(),
    memory: z.number(),
    loop_lag_ms_max: z.number(),
    running: z.int(),
  }),
});
export type SampleBody = z.output<typeof SampleBody>;

export const getMetrics = operation({
  name: "get_cluster_metrics",
  method: "GET",
  path: "/cluster/metrics",
  summary: "Samples of the whole cluster, newest first",
  tag: "cluster",
  permission: "read",
  target: { at: "here" },
  mutates: false,
  query: z.strictObject({ limit: limit(60, 1_000) }),
  replies: { 200: z.object({ samples: z.array(SampleBody) }) },
  async handler({ cluster }, { query }) {
    const samples = await cluster.metrics(query.limit);
    return answer(200, {
      samples: samples.map(({ at, leaderEpoch, nodes, jobs, finishedPerSecond, load }) => ({
        at: isoOf(at),
        leader_epoch: leaderEpoch,
        nodes,
        jobs,
        finished_per_second: finishedPerSecond,
        load: {
          cpu: load.cpu,
          memory: load.memory,
          loop_lag_ms_max: load.loopLagMsMax,
          running: load.running,
        },
      })),
    });
  },
});
