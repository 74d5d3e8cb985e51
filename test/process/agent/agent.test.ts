import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { FakeControllers } from "../../support/fake-controller.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { eventually } from "../../support/wait.ts";

describe("an agent that gets SIGTERM", () => {
  it("finishes short jobs, gives long ones back, and exits with 0", async (t) => {
    const controllers = await FakeControllers.open(t);
    const agent = AgentProcess.spawn(t, [controllers.nodes[0]!.url], {
      environment: { BATON_DRAIN__TIMEOUT: "1500ms", BATON_DRAIN__CLEANUP: "500ms" },
    });
    const long = controllers.submit("hold");
    await eventually("its line", async () => (long.lines.length > 0 ? true : null));
    const short = await controllers.until(controllers.submit("work", { ms: 400 }), "processing");
    await systemClock.sleep(100); // the handler has begun
    const { code } = await agent.terminate();
    assert.equal(code, 0, agent.output);
    assert.deepEqual(short.accepted, ["succeeded 1/1"]);
    assert.deepEqual([long.accepted, long.lines], [["released 1/1"], ["holding", "told: drain"]]);
  });

  it("exits with 0 also when it never reached a node, and has said which ones it tried and why not", async (t) => {
    const controllers = await FakeControllers.open(t);
    const { url } = controllers.nodes[0]!;
    await controllers.nodes[0]!.close();
    const agent = AgentProcess.spawn(t, [url]);
    await agent.told(/no node can be reached \(http:.*ECONNREFUSED.*trying again/);
    const { code } = await agent.terminate();
    assert.equal(code, 0, agent.output);
  });
});

describe("an agent that dies", () => {
  it("loses its lease, and its job is leased again under the next epoch", async (t) => {
    const controllers = await FakeControllers.open(t, { leaseMs: 1_000 });
    const first = AgentProcess.spawn(t, [controllers.nodes[0]!.url], { name: "first" });
    const job = await controllers.until(controllers.submit("work", { ms: 3_000 }), "processing");
    first.signal("SIGKILL");
    await first.exited;
    AgentProcess.spawn(t, [controllers.nodes[0]!.url], { name: "second" });
    await controllers.until(job, "completed");
    assert.deepEqual([job.epoch, job.accepted], [2, ["succeeded 2/1"]]);
  });
});
