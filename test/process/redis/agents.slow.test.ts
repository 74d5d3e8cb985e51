/** Agents beside the workers of nodes, where jobs are pushed through Redis: one line for all of them, and nothing runs twice. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { TestCluster } from "../../support/cluster.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { dataDirectory } from "../../support/process-node.ts";
import { submitTo, urlsOf } from "../../support/real-controllers.ts";
import { eventually } from "../../support/wait.ts";

describe("agents and the workers of nodes on Redis", () => {
  it("share a queue, and each job runs once", async (t) => {
    // Nobody dies here, so that times may be such that a busy machine keeps them.
    const settings = { WORKER__CONCURRENCY: "4" };
    const cluster = await TestCluster.open(t, { settings, redis: {} });
    await cluster.startAll("ada", "bob");
    const agent = AgentProcess.spawn(t, urlsOf(cluster), { args: ["--concurrency", "8"] });
    const { node: leader } = await cluster.leader();
    const seen = async (): Promise<true | null> =>
      (await leader.client.controller.agents()).agents.length > 0 || null;
    await eventually("the agent", seen, 30_000);
    const ledger = join(await dataDirectory(t), "ledger");
    const work = { task: "work", payload: { ms: 40, ledger } };
    const viaController = await submitTo(
      leader,
      Array.from({ length: 200 }, () => work),
    );
    const viaNode = await leader.client.submitMany(Array.from({ length: 200 }, () => work));
    const ids = [...viaController, ...viaNode.map(({ job_id }) => job_id)];
    await leader.idle(60_000);
    const jobs = (await leader.allJobs({ task: "work" })).filter(({ job_id }) => ids.includes(job_id));
    assert.equal(jobs.length, 400);
    const workers = Map.groupBy(jobs, ({ worker }) => worker);
    for (const { job_id, status, attempts } of jobs)
      assert.deepEqual([status, attempts], ["completed", 1], job_id);
    const runs = readFileSync(ledger, "utf8").trimEnd().split("\n");
    assert.deepEqual(runs.map((run) => run.slice(0, run.indexOf(":"))).sort(), ids.sort(), "each ran once");
    const shares = ["ada", "bob", "agent-1"].map((name) => workers.get(name)?.length ?? 0);
    assert.ok(shares[2]! > 0 && shares[0]! + shares[1]! > 0, `${shares.join(", ")}\n${agent.output}`);
  });
});
