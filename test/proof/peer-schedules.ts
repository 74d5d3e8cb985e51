/**
 * npm run proof:peer-schedules -- [--kills N] [--seed N]
 *
 * Three nodes that are a cluster by themselves, all at the defaults, and schedules that fire every second, while whoever leads is
 * killed with -9 and started again, N times. At the end the stores of all nodes are asked: has every instant one job, and was it
 * completed? Exits with 1 if not.
 */

import { parseArgs } from "node:util";
import { percentile } from "../../bench/statistics.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { listedFile } from "../support/host-cluster.ts";
import { PeerCluster } from "../support/peer-cluster.ts";
import { killPeerLeaders } from "../support/peer-schedule-failover.ts";
import { inProof } from "./scope.ts";

const { values } = parseArgs({
  options: { kills: { type: "string", default: "100" }, seed: { type: "string", default: "1" } },
});
const kills = Math.max(1, Math.floor(Number(values.kills)) || 1);

await inProof(async (scope, say) => {
  const cluster = await PeerCluster.start(scope, { file: listedFile, settings: { LOG__LEVEL: "error" } });
  const random = seededRandom(Number(values.seed));
  const report = await killPeerLeaders(cluster, {
    kills,
    chance: () => random.chance(),
    onKill: (n, ms) => say(`kill ${n} of ${kills}: another led after ${ms.toFixed(0)} ms`),
  });
  const line = (what: string, list: readonly number[]): string =>
    `${what}: p50 ${percentile(list, 0.5).toFixed(0)} ms, p99 ${percentile(list, 0.99).toFixed(0)} ms, max ${percentile(list, 1).toFixed(0)} ms`;
  return [
    `${kills} kills of the leader in ${(report.tookMs / 1_000).toFixed(0)} s`,
    `${report.occurrences} instants, each with one job over all stores, each completed; none lost, none twice`,
    `${report.rerun} of the jobs ran again because the node that ran them was killed`,
    line("without a leader, while a majority was there", report.leaderlessMs),
    line("from an instant to its job", report.lateMs),
  ];
});
