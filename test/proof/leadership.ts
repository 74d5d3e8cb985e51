/**
 * npm run proof:leadership -- [--pauses N] [--seed N]
 *
 * Three nodes on one PostgreSQL (fsync on) with a lease of a second, and schedules of which one fires every 25 ms, while whoever
 * leads is stopped (SIGSTOP) at moments that nobody chose until another leads, N times, and then goes on. At the end the
 * database is asked for the order of commits: was anything of an older term committed after the grant of a newer one? Exits
 * with 1 if so.
 */

import { parseArgs } from "node:util";
import { percentile } from "../../bench/statistics.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { QUICK, TestCluster } from "../support/cluster.ts";
import { assertNothingStale, COMMIT_ORDER_SETTINGS, watchGrants } from "../support/commit-order.ts";
import { inProof } from "./scope.ts";

const NAMES = ["ada", "bob", "cyd"];
const SCHEDULES = 40;
const { values } = parseArgs({
  options: { pauses: { type: "string", default: "50" }, seed: { type: "string", default: "1" } },
});
const pauses = Math.max(1, Math.floor(Number(values.pauses)) || 1);

await inProof(async (scope, say) => {
  const cluster = await TestCluster.open(scope, {
    settings: {
      ...QUICK,
      LEADER__LEASE: "1s",
      LEADER__RENEW: "200ms",
      LEADER__MARGIN: "300ms",
      LOG__LEVEL: "warn",
    },
    server: { durable: true, settings: COMMIT_ORDER_SETTINGS },
  });
  await cluster.startAll(...NAMES);
  await watchGrants(cluster);
  for (let n = 0; n < SCHEDULES; n++) {
    const often = { task: "tick", every_ms: 1_000, missed: "run_all", missed_max: 10_000 } as const;
    await cluster.node("ada").client.putSchedule({ ...often, name: `often-${n}` });
    await systemClock.sleep(1_000 / SCHEDULES);
  }
  const random = seededRandom(Number(values.seed));
  const replacedMs: number[] = [];
  for (let n = 1; n <= pauses; n++) {
    const { name, node, epoch } = await cluster.leader();
    await systemClock.sleep(random.chance() * 300);
    node.signal("SIGSTOP");
    const stoppedAt = systemClock.monotonic();
    cluster.forget(name);
    const next = await cluster.leader();
    replacedMs.push(systemClock.monotonic() - stoppedAt);
    if (next.epoch <= epoch) throw new Error(`${next.name} leads under epoch ${next.epoch} after ${epoch}`);
    node.signal("SIGCONT");
    cluster.nodes.set(name, node);
    say(`pause ${n} of ${pauses}: replaced after ${replacedMs.at(-1)!.toFixed(0)} ms`);
  }
  await systemClock.sleep(2_000); // for whatever the last one would still write
  const { grants, occurrences } = await assertNothingStale(cluster);
  const refused = [...cluster.nodes.values()].filter(({ stdout }) =>
    stdout.includes("a newer term fires"),
  ).length;
  return [
    `${pauses} pauses of the leader, ${grants} grants, ${occurrences} occurrences`,
    "nothing of an older term was committed after the grant of a newer one",
    `${refused} of ${NAMES.length} nodes had a late write refused`,
    `replaced after: p50 ${percentile(replacedMs, 0.5).toFixed(0)} ms, max ${percentile(replacedMs, 1).toFixed(0)} ms, with a lease of 1000 ms`,
  ];
});
