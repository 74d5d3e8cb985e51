/** A deploy of the leader's machine while many jobs run. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { atEnd } from "../../support/node-cleanup.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { jobWhen, submit, workingPair } from "./pair-world.ts";

describe("a takeover", () => {
  it("by SIGTERM, under load, ends every job once, with nothing burned that was not interrupted", async (t) => {
    const server = await PostgresServer.shared();
    atEnd(t, () => server.stop());
    const { leader, standby } = await workingPair(t, server);
    const urls = [leader, standby].map((node) => node.report()!.url!);
    for (const name of ["free-1", "free-2"]) AgentProcess.spawn(t, urls, { name });
    const jobs = Array.from({ length: 150 }, (_, n) => ({
      task: "work",
      payload: { ms: n % 10 === 0 ? 3_000 : 40 },
      max_attempts: 1,
    }));
    const ids = await submit(leader, jobs);
    await jobWhen(leader, ids[0]!, ({ status }) => status === "processing");
    leader.child.kill("SIGTERM");
    const [exit] = await Promise.all([leader.exited, standby.leading()]);
    assert.deepEqual(exit, { code: 0, signal: null });
    let interrupted = 0;
    for (const id of ids) {
      const job = await jobWhen(standby, id, ({ status }) => status === "completed");
      assert.deepEqual([job.crashes, job.failures], [0, 0], id);
      assert.equal(job.attempts, 1 + job.interruptions, id);
      interrupted += job.interruptions;
    }
    t.diagnostic(`${interrupted} of ${ids.length} were interrupted`);
    assert.ok(interrupted >= 1, "those of the agent that was in the way");
  });
});
