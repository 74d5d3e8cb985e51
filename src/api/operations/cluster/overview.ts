/** The overview of the cluster, once or live. */

import { answer, operation } from "../../operation.ts";
import { OverviewBody } from "../../bodies/overview-body.ts";

export const getOverview = operation("GET /cluster/overview", {
  name: "get_overview",
  summary: "The cluster at a glance: nodes, leader, jobs, rates, times, backlog and alerts",
  tag: "cluster",
  permission: "read",
  replies: { 200: OverviewBody },
  async handler({ live }, { inbound }) {
    return answer(200, await live.overview(inbound));
  },
});

export const followCluster = operation("GET /cluster/live", {
  name: "follow_cluster",
  summary:
    "The cluster as it changes, as server-sent events: overview (at once, then at most once a second), journal (each new entry)",
  tag: "cluster",
  permission: "read",
  streams: true,
  replies: {},
  handler: ({ live }) => ({ events: (signal) => live.follow(signal) }),
});
