/** Leaders of a cluster of peers that are killed one after the other, while its schedules fire every second. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { listedFile } from "../../../support/host-cluster.ts";
import { PeerCluster } from "../../../support/peer-cluster.ts";
import { killPeerLeaders } from "../../../support/peer-schedule-failover.ts";

/** `npm run proof:peer-schedules` does the same with 100 kills. */
it("every instant of a schedule makes one job over all stores while ten leaders are killed", async (t) => {
  const cluster = await PeerCluster.start(t, { file: listedFile, settings: { LOG__LEVEL: "error" } });
  const report = await killPeerLeaders(cluster, { kills: 10, chance: Math.random });
  t.diagnostic(`${report.occurrences} occurrences, ${report.rerun} jobs ran again`);
  t.diagnostic(`kept by ${JSON.stringify(report.kept)}`);
  t.diagnostic(`without a leader for ${report.leaderlessMs.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  t.diagnostic(`the latest job came ${Math.max(...report.lateMs).toFixed(0)} ms behind its instant`);
  assert.ok(report.occurrences > 40);
  assert.deepEqual(Object.keys(report.kept).sort(), cluster.names, "they go round");
});
