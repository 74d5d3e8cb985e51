/** A node alone that is restarted while an agent of its runs jobs: whose fault is what? */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { AgentProcess } from "../../../support/process-agent.ts";
import { dataDirectory, NodeProcess } from "../../../support/process-node.ts";
import { submitTo } from "../../../support/real-controllers.ts";

const SETTINGS = { WORKER__CONCURRENCY: "0", JOBS__CRASHES_MAX: "1000", WORKER__RENEW: "200ms" };

describe("a node with an agent", () => {
  it("that is stopped, or killed, and started again finds the agent at the same run", async (t) => {
    const data = await dataDirectory(t);
    let node = await NodeProcess.start(t, { data, settings: SETTINGS });
    const args = ["--port", new URL(node.url).port, "--name", "solo"];
    AgentProcess.spawn(t, [node.url]);
    const [id] = await submitTo(node, [{ task: "work", payload: { ms: 4_000 }, max_attempts: 1 }]);
    await node.processing(id!);
    await systemClock.sleep(200); // the store knows of a lease before the agent does
    assert.equal((await node.terminate()).code, 0);
    node = await NodeProcess.start(t, { data, args, settings: SETTINGS });
    await node.processing(id!);
    await node.kill();
    node = await NodeProcess.start(t, { data, args, settings: SETTINGS });
    const job = await node.jobWhen(id!, ({ status }) => status === "completed");
    assert.deepEqual([job.attempts, job.interruptions, job.crashes, job.job_epoch], [1, 0, 0, 1]);
    assert.equal(job.leader_epoch, 3, "its result was taken by the third life");
  });

  it("that is away for longer than a lease interrupts the run; an agent that is killed has crashed", async (t) => {
    const data = await dataDirectory(t);
    const settings = { ...SETTINGS, AGENTS__LEASE: "1s" };
    let node = await NodeProcess.start(t, { data, settings });
    const args = ["--port", new URL(node.url).port, "--name", "solo"];
    const agent = AgentProcess.spawn(t, [node.url]);
    const [id] = await submitTo(node, [{ task: "hold" }]);
    await node.processing(id!);
    await node.kill();
    await systemClock.sleep(1_100);
    node = await NodeProcess.start(t, { data, args, settings });
    const again = await node.jobWhen(id!, ({ attempts }) => attempts === 2);
    assert.deepEqual([again.interruptions, again.crashes], [1, 0]);

    agent.signal("SIGKILL");
    const crashed = await node.jobWhen(id!, ({ status }) => status === "queued");
    assert.deepEqual([crashed.interruptions, crashed.crashes], [1, 1]);
  });
});
