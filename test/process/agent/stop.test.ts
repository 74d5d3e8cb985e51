import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AgentProcess } from "../../support/process-agent.ts";
import { eventually } from "../../support/process-node.ts";
import { openControllers, submitTo, urlsOf } from "../../support/real-controllers.ts";

describe("an agent of real controllers", () => {
  it("gives its job back when it is stopped, with nothing burned, and another hears that it is cancelled", async (t) => {
    const cluster = await openControllers(t);
    const { node } = await cluster.leader();
    const first = AgentProcess.spawn(t, urlsOf(cluster), {
      environment: { BATON_DRAIN__TIMEOUT: "600ms", BATON_DRAIN__CLEANUP: "300ms" },
    });
    const [id] = await submitTo(node, [{ task: "hold", max_attempts: 1 }]);
    await node.processing(id!);
    await eventually("its line", async () => ((await node.client.logs(id!)).logs.length > 0 ? true : null));
    assert.equal((await first.terminate()).code, 0);
    const waiting = await node.client.job(id!);
    assert.deepEqual([waiting.status, waiting.failures, waiting.crashes], ["queued", 0, 0]);
    const { logs } = await node.client.logs(id!);
    assert.deepEqual(
      logs.map(({ message }) => message),
      ["holding", "told: drain"],
    );
    AgentProcess.spawn(t, urlsOf(cluster), { name: "agent-2" });
    await node.processing(id!);
    await node.client.cancel(id!, "enough");
    const job = await node.jobWhen(id!, ({ status }) => status === "cancelled");
    assert.equal(job.error?.["message"], "enough");
  });
});
