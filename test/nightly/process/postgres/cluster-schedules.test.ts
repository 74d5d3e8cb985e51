/** Leaders that are killed one after the other, and then all nodes at once (S18, S77). */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { TestCluster } from "../../../support/cluster.ts";
import { suiteScope } from "../../../support/node-cleanup.ts";
import { killLeaders } from "../../../support/schedule-failover.ts";

const NAMES = ["ada", "bob", "cyd"];

describe("a cluster whose nodes are killed", () => {
  const suite = suiteScope();
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.open(suite, {
      settings: { LOG__LEVEL: "error" },
    });
    await cluster.startAll(...NAMES);
  });

  /** `npm run proof:schedules` does the same with 200 kills. */
  it("one leader after the other, eight times, fires each instant of its schedules once", async (t) => {
    const options = { kills: 8, chance: Math.random };
    const { occurrences, lateMs, leaderlessMs, rerun } = await killLeaders(cluster, options);
    t.diagnostic(`${occurrences} occurrences, ${rerun} jobs ran again`);
    t.diagnostic(`without a leader for ${leaderlessMs.map((ms) => ms.toFixed(0)).join(", ")} ms`);
    t.diagnostic(`the latest occurrence was ${Math.max(...lateMs).toFixed(0)} ms late`);
    assert.ok(occurrences > 40);
    assert.ok(
      Math.max(...lateMs) < 10_000,
      "none waited for longer than a failover and a busy machine explain",
    );
  });

  it("all of it killed at once and started again in any order, epochs go on and jobs are intact", async (t) => {
    const ada = cluster.node("ada");
    const held = await cluster.begunBy("bob", { task: "hold" });
    const { job_id: done } = await ada.client.submit({ task: "work", payload: { ms: 0 } });
    await ada.client.wait(done, { timeoutMs: 10_000 });
    const { job_id: later } = await ada.client.submit({ task: "work", payload: { ms: 0 }, delay_ms: 2_500 });
    await ada.client.pauseQueue("paused");
    const { job_id: waiting } = await ada.client.submit({
      task: "work",
      queue: "paused",
      payload: { ms: 0 },
    });
    const { epoch } = await cluster.leader();
    const running = [...cluster.nodes.values()];
    for (const node of running) node.signal("SIGKILL");
    await Promise.all(running.map((node) => node.exited));
    cluster.nodes.clear();

    const order = NAMES.toSorted(() => Math.random() - 0.5);
    t.diagnostic(`started again as ${order.join(", ")}`);
    const startedAt = systemClock.monotonic();
    const starts = order.map(async (name, n) => {
      await systemClock.sleep(n * 150);
      return cluster.start(name);
    });
    await Promise.race(starts);
    const upAt = systemClock.monotonic();
    const next = await cluster.leader();
    const ledAt = systemClock.monotonic();
    t.diagnostic(
      `first up after ${(upAt - startedAt).toFixed(0)} ms, led ${(ledAt - upAt).toFixed(0)} ms later`,
    );
    assert.ok(ledAt - upAt < 5_000 + 3_000);
    await Promise.all(starts);
    assert.ok(next.epoch > epoch, "epochs are never used again");
    const node = cluster.node("bob");
    const again = await node.jobWhen(
      held,
      ({ status, job_epoch }) => status === "processing" && job_epoch > 1,
    );
    assert.deepEqual([again.crashes, again.killed], [1, ["bob"]]);
    assert.deepEqual((await node.client.result(done)).result, { epoch: 1 });
    assert.equal((await node.client.job(waiting)).status, "queued");
    await node.client.resumeQueue("paused");
    assert.equal((await node.client.wait(waiting, { timeoutMs: 10_000 })).job.attempts, 1);
    assert.equal((await node.client.wait(later, { timeoutMs: 15_000 })).job.attempts, 1);
  });
});
