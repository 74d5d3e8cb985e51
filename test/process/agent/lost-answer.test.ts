/** A lease that was granted and whose answer never arrived: its leader was killed in between. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { atEnd } from "../../support/node-cleanup.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { eventually } from "../../support/wait.ts";
import { openControllers, submitTo } from "../../support/real-controllers.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";

describe("an agent whose leader is killed between the grant and the answer", () => {
  it("says to the next one that the answer never came, and the job runs at once, as one that was interrupted", async (t) => {
    const cluster = await openControllers(t, { AGENTS__LEASE: "60s" });
    const { name, node: leader } = await cluster.leader();
    const proxy = await TcpProxy.start(leader.url);
    atEnd(t, () => proxy.stop());
    const standby = [...cluster.nodes.values()].find((node) => node !== leader)!;
    const agent = AgentProcess.spawn(t, [proxy.through(leader.url), standby.url]);
    const [first] = await submitTo(leader, [{ task: "work", payload: { ms: 0 } }]);
    await leader.jobWhen(first!, ({ status }) => status === "completed");
    await eventually("its next poll", async () => {
      const { body } = await leader.call("/v1/agents");
      return (body as { agents: { running: number }[] }).agents[0]!.running === 0 || null;
    });

    await proxy.freeze("down");
    const [lost] = await submitTo(leader, [{ task: "work", payload: { ms: 0 }, max_attempts: 1 }]);
    const granted = await leader.processing(lost!);
    await leader.kill();
    cluster.forget(name);
    await proxy.refuse();
    await cluster.leader();
    const done = await standby.jobWhen(lost!, ({ status }) => status === "completed");
    assert.deepEqual([done.interruptions, done.crashes, done.failures, done.attempts], [1, 0, 0, 2]);
    assert.equal(done.job_epoch, granted.job_epoch + 2);
    assert.equal((await agent.terminate()).code, 0, agent.output);
  });
});
