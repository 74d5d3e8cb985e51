/** Agents of two real controllers on one database, in TypeScript and in Python. Their leader is killed while jobs run. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import type { TestCluster } from "../../support/cluster.ts";
import { atEnd, suiteScope } from "../../support/node-cleanup.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { dataDirectory } from "../../support/process-node.ts";
import { killLeader, openControllers, submitTo, urlsOf } from "../../support/real-controllers.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { eventually } from "../../support/wait.ts";

const python = spawnSync("python3", ["--version"]).status === 0;

describe("an agent of two controllers", () => {
  const suite = suiteScope();
  let cluster: TestCluster;

  before(async () => {
    cluster = await openControllers(suite, { AGENTS__LEASE: "60s" });
  });

  it("gives its job back when it is stopped, with nothing burned, and another hears that it is cancelled", async (t) => {
    const { node } = await cluster.leader();
    const first = AgentProcess.spawn(t, urlsOf(cluster), {
      environment: { BATON_DRAIN__TIMEOUT: "600ms", BATON_DRAIN__CLEANUP: "300ms" },
    });
    const [id] = await submitTo(node, [{ task: "hold", max_attempts: 1 }]);
    await node.processing(id!);
    await eventually("its line", async () => (await node.client.logs(id!)).logs.length > 0);
    assert.equal((await first.terminate()).code, 0);
    const waiting = await node.client.job(id!);
    assert.deepEqual([waiting.status, waiting.failures, waiting.crashes], ["queued", 0, 0]);
    assert.deepEqual(await node.lines(id!), ["holding", "told: drain"]);
    const second = AgentProcess.spawn(t, urlsOf(cluster), { name: "agent-2" });
    await node.processing(id!);
    await node.client.cancel(id!, "enough");
    const job = await node.jobWhen(id!, ({ status }) => status === "cancelled");
    assert.equal(job.error?.["message"], "enough");
    assert.equal((await second.terminate()).code, 0, second.output);
  });

  const skip = python ? false : "there is no python3 here";
  it("in Python counts words, and fails where it must", { skip }, async (t) => {
    const { node: leader } = await cluster.leader();
    const snake = AgentProcess.python(t, urlsOf(cluster));
    const [counted, refused] = await submitTo(leader, [
      { task: "word-count", payload: { text: "to be or not to be" } },
      { task: "word-count", payload: {} },
    ]);
    const done = await leader.jobWhen(counted!, ({ status }) => status === "completed");
    assert.equal(done.worker, "snake");
    const { result } = await leader.client.result(counted!);
    assert.deepEqual(result, { words: 6, characters: 18 });
    assert.deepEqual(await leader.lines(counted!), ["counted 6 words"]);
    const failed = await leader.jobWhen(refused!, ({ status }) => status === "failed");
    assert.equal(failed.failures, 1, "another attempt would have been in vain");

    const [slow] = await submitTo(leader, [{ task: "slow-square", payload: { number: 2, seconds: 60 } }]);
    await leader.processing(slow!);
    const stopping = snake.terminate();
    await snake.told(/finishing what runs/);
    snake.signal("SIGTERM");
    assert.equal((await stopping).code, 0, snake.output);
    const waiting = await leader.client.job(slow!);
    assert.deepEqual([waiting.status, waiting.failures, waiting.crashes], ["queued", 0, 0], snake.output);
    await leader.client.cancel(slow!);
  });

  it("finishes under the next leader what it began under the one that was killed, each job once", async (t) => {
    const { node: leader, epoch } = await cluster.leader();
    // It is told of the standby only, and finds the leader.
    const standby = urlsOf(cluster).filter((url) => url !== leader.url);
    const agent = AgentProcess.spawn(t, standby, { args: ["--concurrency", "20"] });
    const snake = python ? AgentProcess.python(t, urlsOf(cluster)) : null;
    const squares = snake
      ? await submitTo(leader, [{ task: "slow-square", payload: { number: 7, seconds: 4 } }])
      : [];
    for (const id of squares) await leader.jobWhen(id, ({ progress }) => progress !== null && progress > 0);
    const work = (ms: number) => ({ task: "work", payload: { ms } });
    const directory = await dataDirectory(t);
    const [ledger, until] = [join(directory, "ledger"), join(directory, "led again")];
    const held = Array.from({ length: 5 }, () => ({ task: "work", payload: { ledger, until } }));
    const long = await submitTo(leader, held);
    const short = await submitTo(
      leader,
      Array.from({ length: 40 }, (_, n) => work(n * 10)),
    );
    for (const id of long) await leader.processing(id);
    // The store knows of a lease before the agent does.
    await eventually("all of them to be begun", () => {
      const begun = readFileSync(ledger, "utf8");
      return long.every((id) => begun.includes(id));
    });
    const next = await killLeader(cluster);
    writeFileSync(until, "");
    for (const id of [...long, ...short]) {
      const job = await next.jobWhen(id, ({ status }) => status === "completed");
      const counted = [job.attempts, job.interruptions, job.crashes, job.failures];
      // A lease whose answer died with the leader was never begun.
      const lost = !long.includes(id) && job.attempts === 2;
      assert.deepEqual(counted, lost ? [2, 1, 0, 0] : [1, 0, 0, 0], `${id} ran once: ${agent.output}`);
      if (long.includes(id))
        assert.ok(job.leader_epoch > epoch, "its result was accepted by the next leader");
    }
    for (const id of squares) {
      const squared = await next.jobWhen(id, ({ status }) => status === "completed");
      assert.deepEqual([squared.attempts, squared.crashes], [1, 0], snake!.output);
      assert.deepEqual((await next.client.result(id)).result, { square: 49, job_epoch: 1 });
    }
    const [last] = await submitTo(next, [work(0)]);
    await next.jobWhen(last!, ({ status }) => status === "completed");
    assert.equal((await agent.terminate()).code, 0, agent.output);
  });

  it("whose leader is killed between the grant and the answer says so to the next one, and the job runs at once, as one that was interrupted", async (t) => {
    await cluster.start("cyd");
    const { name, node: leader } = await cluster.leader();
    const proxy = await TcpProxy.start(leader.url);
    atEnd(t, () => proxy.stop());
    const standby = [...cluster.nodes.values()].find((node) => node !== leader)!;
    const agent = AgentProcess.spawn(t, [proxy.through(leader.url), standby.url], { name: "cut-off" });
    const [first] = await submitTo(leader, [{ task: "work", payload: { ms: 0 } }]);
    await leader.jobWhen(first!, ({ status }) => status === "completed");
    await eventually("its next poll", async () => {
      const { body } = await leader.call("/v1/agents");
      const { agents } = body as { agents: { name: string; running: number }[] };
      return agents.find(({ name }) => name === "cut-off")?.running === 0;
    });

    await proxy.freeze("down");
    const [lost] = await submitTo(leader, [{ task: "work", payload: { ms: 0 }, max_attempts: 1 }]);
    const granted = await leader.processing(lost!);
    await cluster.kill(name);
    await proxy.refuse();
    await cluster.leader();
    const done = await standby.jobWhen(lost!, ({ status }) => status === "completed");
    assert.deepEqual([done.interruptions, done.crashes, done.failures, done.attempts], [1, 0, 0, 2]);
    assert.equal(done.job_epoch, granted.job_epoch + 2);
    assert.equal((await agent.terminate()).code, 0, agent.output);
  });

  it("that never reached a node has said which ones it tried and why not, and exits with 0", async (t) => {
    const agent = AgentProcess.spawn(t, ["http://127.0.0.1:1"]);
    await agent.told(/no node can be reached \(http:.*ECONNREFUSED.*trying again/);
    const { code } = await agent.terminate();
    assert.equal(code, 0, agent.output);
  });
});
