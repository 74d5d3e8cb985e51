/**
 * npm run proof:schedules -- [--kills N] [--seed N]
 * npm run proof:peer-schedules -- [--kills N] [--seed N]
 *
 * Three nodes, all at the defaults, on one PostgreSQL (fsync on) or with a store each, and schedules that fire every second, while
 * whoever leads is killed with -9 and started again, N times. At the end the database, or the stores of all nodes, are asked: was
 * every instant fired once, by one job, that was completed? Exits with 1 if not.
 */

import { parseArgs } from "node:util";
import { percentile } from "../../bench/statistics.ts";
import { TestCluster } from "../support/cluster.ts";
import { listedFile } from "../support/host-cluster.ts";
import { PeerCluster } from "../support/peer-cluster.ts";
import { killPeerLeaders } from "../support/peer-schedule-failover.ts";
import { killLeaders } from "../support/schedule-failover.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { inProof } from "./scope.ts";

const { values } = parseArgs({
  options: { kills: { type: "string" }, seed: { type: "string", default: "1" }, peers: { type: "boolean" } },
});
const kills = Math.max(1, Math.floor(Number(values.kills ?? (values.peers ? 100 : 200))) || 1);

await inProof(async (scope, say) => {
  const settings = { LOG__LEVEL: "error" };
  const random = seededRandom(Number(values.seed));
  const options = {
    kills,
    chance: () => random.chance(),
    onKill: (n: number, ms: number) => say(`kill ${n} of ${kills}: another led after ${ms.toFixed(0)} ms`),
  };
  const onPeers = async () =>
    killPeerLeaders(await PeerCluster.start(scope, { file: listedFile, settings }), options);
  const onOneDatabase = async () => {
    const cluster = await TestCluster.open(scope, { settings, server: { durable: true } });
    await cluster.startAll("ada", "bob", "cyd");
    return killLeaders(cluster, options);
  };
  const report = await (values.peers ? onPeers() : onOneDatabase());
  const line = (what: string, list: readonly number[]): string =>
    `${what}: p50 ${percentile(list, 0.5).toFixed(0)} ms, p99 ${percentile(list, 0.99).toFixed(0)} ms, max ${percentile(list, 1).toFixed(0)} ms`;
  return [
    `${kills} kills of the leader in ${(report.tookMs / 1_000).toFixed(0)} s`,
    `${report.occurrences} occurrences, each fired once, each with one job, each completed; none lost, none twice`,
    `${report.rerun} of the jobs ran again because the node that ran them was killed`,
    line("without a leader, while a majority was there", report.leaderlessMs),
    line("from an instant to its job", report.lateMs),
  ];
});
