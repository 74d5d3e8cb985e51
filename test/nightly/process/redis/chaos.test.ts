/**
 * Owners, the leader, workers and Redis are killed in any order while callers go on: nothing that was acknowledged is lost, nothing is
 * settled twice, no key makes two jobs. The order comes from a seed, which is told.
 */

import { describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { assertAllDone, Callers, QUICK, TestCluster } from "../../../support/cluster.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { eventually } from "../../../support/wait.ts";

const FAULTS = Number(process.env["BATON_TEST_FAULTS"] ?? 12);
const SEED = Number(process.env["BATON_TEST_SEED"] ?? Math.floor(systemClock.now() % 1e6));
const NAMES = ["ada", "bob", "cyd", "dan"];

describe("a cluster on Redis in which everything dies now and then", () => {
  it("loses nothing", { timeout: 280_000 }, async (t) => {
    t.diagnostic(`BATON_TEST_SEED=${SEED}`);
    const random = seededRandom(SEED);
    const chance = (below: number): number => Math.floor(random.chance() * below);
    const settings = { ...QUICK, DISPATCH__TIMEOUT: "1500ms", HANDOFF__ACK_TIMEOUT: "500ms" };
    const cluster = await TestCluster.open(t, { settings, redis: {} });
    await cluster.startAll(...NAMES);
    const callers = Callers.start(t, cluster, { payload: () => ({ ms: chance(4) === 0 ? 400 : 5 }) });

    const restart = async (name: string): Promise<void> => {
      cluster.forget(name);
      await systemClock.sleep(chance(1_500));
      await cluster.start(name);
    };
    const faults: Record<string, () => Promise<void>> = {
      async "kill -9 of the leader"() {
        const { name, node } = await cluster.leader();
        await node.kill();
        await restart(name);
      },
      async "kill -9 of any node"() {
        const name = NAMES[chance(NAMES.length)]!;
        await cluster.node(name).kill();
        await restart(name);
      },
      async "SIGTERM of any node"() {
        const name = NAMES[chance(NAMES.length)]!;
        await cluster.node(name).terminate();
        await restart(name);
      },
      async "pause of any node"() {
        const node = cluster.node(NAMES[chance(NAMES.length)]!);
        node.signal("SIGSTOP");
        await systemClock.sleep(500 + chance(3_000));
        node.signal("SIGCONT");
      },
      async "kill -9 of Redis, which comes back empty"() {
        await cluster.redis!.halt("kill");
        await systemClock.sleep(chance(2_000));
        await cluster.redis!.relaunch();
      },
      async FLUSHALL() {
        await cluster.redis!.command("FLUSHALL");
      },
      async "two nodes at once, and Redis"() {
        const [one, two] = [NAMES[chance(2)]!, NAMES[2 + chance(2)]!];
        await Promise.all([cluster.node(one).kill(), cluster.node(two).kill(), cluster.redis!.halt("kill")]);
        await cluster.redis!.relaunch();
        await Promise.all([restart(one), restart(two)]);
      },
    };
    const kinds = Object.entries(faults);
    for (let count = 0; count < FAULTS; count++) {
      // Each kind once, then any.
      const [kind, strike] = kinds[count < kinds.length ? count : chance(kinds.length)]!;
      const before = callers.acknowledged.size;
      const at = systemClock.monotonic();
      await strike();
      await eventually(
        `work to be taken after ${kind}`,
        async () => callers.acknowledged.size > before + 20 || null,
        30_000,
      );
      t.diagnostic(`${kind}: ${(systemClock.monotonic() - at).toFixed(0)} ms`);
    }
    await assertAllDone(cluster, callers);
    t.diagnostic(`${callers.acknowledged.size} jobs`);
  });
});
