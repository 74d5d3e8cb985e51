import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { openControllers, submitTo, urlsOf } from "../../support/real-controllers.ts";

const job = (queue?: string) => ({ task: "work", payload: { ms: 0 }, ...(queue && { queue }) });

describe("agents with --queues", () => {
  it("lease from these and from no other; the rest waits for an agent that may", async (t) => {
    const cluster = await openControllers(t);
    const { node } = await cluster.leader();
    const picky = AgentProcess.spawn(t, urlsOf(cluster), {
      name: "picky",
      args: ["--queues", "mail,reports"],
    });
    const [mail, other, report, plain] = await submitTo(node, [
      job("mail"),
      job("other"),
      job("reports"),
      job(),
    ]);
    const completed = (id: string) => node.jobWhen(id, ({ status }) => status === "completed");
    for (const id of [mail!, report!]) assert.equal((await completed(id)).worker, "picky", picky.output);
    await systemClock.sleep(1_500); // longer than the leader waits before it looks for jobs again
    for (const id of [other!, plain!]) {
      const { status, attempts } = await node.client.job(id);
      assert.deepEqual([status, attempts], ["queued", 0], "nobody may run it");
    }
    // As a variable, which the agent of a node-controller has.
    AgentProcess.spawn(t, urlsOf(cluster), { name: "ours", environment: { BATON_WORKER__QUEUES: "other" } });
    assert.equal((await completed(other!)).worker, "ours");
    assert.equal((await node.client.job(plain!)).status, "queued");
    AgentProcess.spawn(t, urlsOf(cluster), { name: "any" });
    assert.equal((await completed(plain!)).worker, "any");
    assert.equal((await picky.terminate()).code, 0, picky.output);
  });
});
