import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../../../src/platform/clock.ts";
import { FakeControllers } from "../../../support/fake-controller.ts";
import { AgentProcess } from "../../../support/process-agent.ts";
import { eventually } from "../../../support/wait.ts";

const OWN_TASKS = fileURLToPath(new URL("../../../process/agent/tasks", import.meta.url));

describe("an agent whose handler blocks the event loop", () => {
  it("keeps its leases and goes on beating", async (t) => {
    const controllers = await FakeControllers.open(t, { leaseMs: 900 });
    const agent = AgentProcess.spawn(t, [controllers.nodes[0]!.url]);
    const job = controllers.submit("block", { ms: 6_000 });
    await controllers.until(job, "processing");
    await controllers.until(job, "completed", 12_000);
    assert.deepEqual([job.epoch, job.accepted], [1, ["succeeded 1/1"]], agent.output);
    const renewals = controllers.calls("/v1/leases/renew").length;
    assert.ok(renewals >= 15, `${renewals} renewals in 6 s, one each 0.3 s`);
    assert.ok(controllers.calls("/v1/agents/heartbeat").length >= 2);
  });

  it("gives back what it leased meanwhile, without burning anything, and runs it later", async (t) => {
    const controllers = await FakeControllers.open(t, { leaseMs: 3_000 });
    const agent = AgentProcess.spawn(t, [controllers.nodes[0]!.url], {
      args: ["--concurrency", "2", "--tasks", OWN_TASKS],
    });
    const blocking = await controllers.until(controllers.submit("late-block", { ms: 4_000 }), "processing");
    await systemClock.sleep(1_000); // it blocks by now, and a poll is under way
    assert.equal(controllers.polls, 1);
    const other = controllers.submit("work", { ms: 0 });
    await eventually("it to come back", async () => other.accepted.length > 0);
    assert.deepEqual([other.accepted, other.attempts], [["released 1/1"], 0]);
    assert.equal(blocking.status, "processing", "the handler still blocks");
    await controllers.until(blocking, "completed");
    await controllers.until(other, "completed");
    assert.match(agent.output, /a handler blocks the event loop/);
    assert.deepEqual(other.accepted, ["released 1/1", "succeeded 2/1"]);
  });
});
