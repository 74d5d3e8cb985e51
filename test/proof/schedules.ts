/**
 * npm run proof:schedules -- [--kills N] [--seed N]
 *
 * Three nodes on one PostgreSQL (fsync on), all at the defaults, and schedules that fire every second, while whoever leads is
 * killed with -9 and started again, N times. At the end the database is asked: was every instant fired once, by one job,
 * that was completed? Exits with 1 if not.
 */

import { parseArgs } from "node:util";
import { percentile } from "../../bench/statistics.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { TestCluster } from "../support/cluster.ts";
import { killLeaders } from "../support/schedule-failover.ts";
import { inProof } from "./scope.ts";

const NAMES = ["ada", "bob", "cyd"];
const { values } = parseArgs({
  options: { kills: { type: "string", default: "200" }, seed: { type: "string", default: "1" } },
});
const kills = Math.max(1, Math.floor(Number(values.kills)) || 1);

await inProof(async (scope, say) => {
  const cluster = await TestCluster.open(scope, {
    settings: { LOG__LEVEL: "error" },
    server: { durable: true },
  });
  await cluster.startAll(...NAMES);
  const random = seededRandom(Number(values.seed));
  const report = await killLeaders(cluster, {
    kills,
    chance: () => random.chance(),
    onKill: (n, ms) => say(`kill ${n} of ${kills}: another led after ${ms.toFixed(0)} ms`),
  });
  const line = (what: string, list: readonly number[]): string =>
    `${what}: p50 ${percentile(list, 0.5).toFixed(0)} ms, p99 ${percentile(list, 0.99).toFixed(0)} ms, max ${percentile(list, 1).toFixed(0)} ms`;
  return [
    `${report.kills} kills of the leader in ${(report.tookMs / 1_000).toFixed(0)} s`,
    `${report.occurrences} occurrences, each fired once, each with one job, each completed; none lost, none twice`,
    `${report.rerun} of the jobs ran again because the node that ran them was killed`,
    line("without a leader", report.leaderlessMs),
    line("from an instant to its occurrence", report.lateMs),
  ];
});
