/** Agents in a cluster of peers: the leader gives out the jobs of its own store, beside its own worker, and nothing runs twice. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { birthplace, PeerCluster } from "../../../support/peer-cluster.ts";
import { AgentProcess } from "../../../support/process-agent.ts";
import { eventually } from "../../../support/wait.ts";
import { submitTo } from "../../../support/real-controllers.ts";
import { eventsOf } from "../../../support/controller-calls.ts";

describe("agents and the workers of nodes among peers", () => {
  it("share the leader's queue, each job runs once, and every node tells of it", async (t) => {
    // Nobody dies here, so that times may be such that a busy machine keeps them.
    const cluster = await PeerCluster.start(t, { settings: { WORKER__CONCURRENCY: "4" } });
    const { name, node: leader } = await cluster.leader();
    const [standby] = cluster.others(name);
    const stop = new AbortController();
    t.after(() => stop.abort());
    const told = new Map<string, string[]>();
    const read = async (): Promise<void> => {
      for await (const { event, data } of eventsOf(`${standby!.url}/v1/events`, stop.signal)) {
        const id = (data.job_id as string | undefined) ?? "";
        told.set(id, [...(told.get(id) ?? []), event]);
      }
    };
    void read().catch(() => {});
    await eventually("hello", async () => told.has(""));

    // It is told of a node that does not lead, and finds the leader.
    const agent = AgentProcess.spawn(t, [standby!.url], { args: ["--concurrency", "8"] });
    const seen = async (): Promise<boolean> => (await leader.client.controller.agents()).agents.length > 0;
    await eventually("the agent", seen, 30_000);
    const ledger = join(cluster.directory, "ledger");
    const ids = await submitTo(
      leader,
      Array.from({ length: 200 }, () => ({ task: "work", payload: { ms: 40, ledger } })),
    );
    assert.ok(ids.every((id) => birthplace(id) === name));
    const elsewhere = await standby!.post("/jobs", { task: "tick" });
    await leader.idle(60_000);
    const jobs = (await leader.allJobs({ task: "work" })).filter(({ job_id }) => ids.includes(job_id));
    for (const { job_id, status, attempts } of jobs)
      assert.deepEqual([status, attempts], ["completed", 1], job_id);
    const runs = readFileSync(ledger, "utf8").trimEnd().split("\n");
    assert.deepEqual(runs.map((run) => run.slice(0, run.indexOf(":"))).sort(), ids.sort(), "each ran once");
    const byAgent = jobs.filter(({ worker }) => worker === "agent-1").length;
    assert.ok(byAgent > 0 && byAgent < 200, `${byAgent} by the agent\n${agent.output}`);

    // Events are lossy by design: on a busy machine some may be told as missing.
    const ends = (id: string) => told.get(id)?.includes("job.completed") ?? false;
    const other = (elsewhere.body as { job_id: string }).job_id;
    await eventually("all ends at a node that does not lead", async () => {
      return [...ids, other].every(ends) || told.get("")!.includes("gap");
    });
    assert.ok(ids.some(ends));
  });
});
