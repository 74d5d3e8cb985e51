/** An agent of two real controllers on one database, whose leader is killed while jobs run. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { killLeader, openControllers, submitTo, urlsOf } from "../../support/real-controllers.ts";

describe("an agent of two controllers", () => {
  it("finishes under the next leader what it began under the one that was killed, each job once", async (t) => {
    const cluster = await openControllers(t);
    const { node: leader, epoch } = await cluster.leader();
    // It is told of the standby only, and finds the leader.
    const standby = urlsOf(cluster).filter((url) => url !== leader.url);
    const agent = AgentProcess.spawn(t, standby, { args: ["--concurrency", "20"] });
    const work = (ms: number) => ({ task: "work", payload: { ms } });
    const long = await submitTo(
      leader,
      Array.from({ length: 5 }, () => work(4_000)),
    );
    const short = await submitTo(
      leader,
      Array.from({ length: 40 }, (_, n) => work(n * 10)),
    );
    for (const id of long) await leader.processing(id);
    await systemClock.sleep(500); // the store knows of a lease before the agent does
    const next = await killLeader(cluster);
    for (const id of [...long, ...short]) {
      const job = await next.jobWhen(id, ({ status }) => status === "completed");
      const counted = [job.attempts, job.interruptions, job.crashes, job.failures];
      // A lease whose answer died with the leader was never begun.
      const lost = !long.includes(id) && job.attempts === 2;
      assert.deepEqual(counted, lost ? [2, 1, 0, 0] : [1, 0, 0, 0], `${id} ran once: ${agent.output}`);
      if (long.includes(id))
        assert.ok(job.leader_epoch > epoch, "its result was accepted by the next leader");
    }
    const [last] = await submitTo(next, [work(0)]);
    await next.jobWhen(last!, ({ status }) => status === "completed");
    assert.equal((await agent.terminate()).code, 0, agent.output);
  });
});
