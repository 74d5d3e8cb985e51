/** The example in Python, run for real against real nodes. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { AgentProcess } from "../../support/process-agent.ts";
import { killLeader, openControllers, submitTo, urlsOf } from "../../support/real-controllers.ts";

const python = spawnSync("python3", ["--version"]).status === 0;

describe("the agent in Python", { skip: python ? false : "there is no python3 here" }, () => {
  it("counts words, fails where it must, and finishes under the next leader what it began under the one that was killed", async (t) => {
    const cluster = await openControllers(t);
    const { node: leader } = await cluster.leader();
    const agent = AgentProcess.python(t, urlsOf(cluster));
    const [counted, refused] = await submitTo(leader, [
      { task: "word-count", payload: { text: "to be or not to be" } },
      { task: "word-count", payload: {} },
    ]);
    const done = await leader.jobWhen(counted!, ({ status }) => status === "completed");
    assert.equal(done.worker, "snake");
    const { result } = await leader.client.result(counted!);
    assert.deepEqual(result, { words: 6, characters: 18 });
    const { logs } = await leader.client.logs(counted!);
    assert.deepEqual(
      logs.map(({ message }) => message),
      ["counted 6 words"],
    );
    const failed = await leader.jobWhen(refused!, ({ status }) => status === "failed");
    assert.equal(failed.failures, 1, "another attempt would have been in vain");

    const [slow] = await submitTo(leader, [{ task: "slow-square", payload: { number: 7, seconds: 4 } }]);
    await leader.jobWhen(slow!, ({ progress }) => progress !== null && progress > 0);
    const next = await killLeader(cluster);
    const squared = await next.jobWhen(slow!, ({ status }) => status === "completed");
    assert.deepEqual([squared.attempts, squared.crashes], [1, 0], agent.output);
    assert.deepEqual((await next.client.result(slow!)).result, { square: 49, job_epoch: 1 });

    const [again] = await submitTo(next, [{ task: "slow-square", payload: { number: 2, seconds: 60 } }]);
    await next.processing(again!);
    const stopping = agent.terminate();
    await agent.told(/finishing what runs/);
    agent.signal("SIGTERM");
    assert.equal((await stopping).code, 0, agent.output);
    const waiting = await next.client.job(again!);
    assert.deepEqual([waiting.status, waiting.failures, waiting.crashes], ["queued", 0, 0], agent.output);
  });
});
