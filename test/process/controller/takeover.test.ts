/** What a change of leaders costs the jobs that run in that moment: neither a crash nor a failure. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { atEnd } from "../../support/node-cleanup.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { eventually } from "../../support/wait.ts";
import { holding, jobWhen, submit, workingPair } from "./pair-world.ts";

describe("a takeover", () => {
  it("gives the job of the new leader's own agent back at once, as an interruption, to whoever asks", async (t) => {
    const server = await PostgresServer.shared();
    atEnd(t, () => server.stop());
    const { leader, standby } = await workingPair(t, server);
    const [id] = await submit(leader, [{ task: "hold", max_attempts: 1 }]);
    await holding(leader, id!);
    const before = await jobWhen(leader, id!, ({ status }) => status === "processing");
    assert.equal(before.worker, `${standby.name}-worker`);
    const free = AgentProcess.spawn(t, [leader.report()!.url!, standby.report()!.url!], { name: "free" });
    await eventually("the other agent", async () => {
      const answer = await fetch(`${leader.report()!.url}/v1/agents`);
      const { agents } = (await answer.json()) as { agents: { name: string }[] };
      return agents.some(({ name }) => name === "free") || null;
    });

    process.kill(leader.report()!.controller.pid!, "SIGKILL");
    await standby.leading();
    const begunAt = Date.parse(standby.log("the gate is open").at(-1)!.time);
    const again = await jobWhen(standby, id!, (job) => job.attempts === 2 && job.status === "processing");
    const tookMs = Date.parse(again.started_at!) - begunAt;
    t.diagnostic(`runs again ${tookMs} ms after the takeover, with ${again.worker}`);
    assert.deepEqual([again.interruptions, again.crashes, again.failures], [1, 0, 0]);
    assert.equal(again.job_epoch, before.job_epoch + 2, "one for the loss and one for the next run");
    assert.ok(tookMs < 30_000, `${tookMs} ms of a lease of 60 s, ${free.output}`);
  });
});
