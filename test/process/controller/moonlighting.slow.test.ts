/** Two node-controllers with agents that work: jobs run on whoever stands by, and are not lost when the roles change. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BatonClient, type JobBody } from "../../../src/client/baton-client.ts";
import { QUICK } from "../../support/cluster.ts";
import { atEnd } from "../../support/node-cleanup.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { eventually } from "../../support/wait.ts";
import { agentOf, ControllerProcess } from "./world.ts";

describe("moonlighting", () => {
  it("jobs run on the standby's agent only; one that runs while the roles change runs again on the other", async (t) => {
    const server = await PostgresServer.shared();
    atEnd(t, () => server.stop());
    const settings = {
      ...QUICK,
      STORE: await server.createDatabase(),
      CONTROLLER__WEDGED_AFTER: "2s",
      AGENTS__LEASE: "2s",
      DRAIN__TIMEOUT: "1500ms",
      DRAIN__CLEANUP: "1s",
    };
    const start = (name: string) => ControllerProcess.start(t, { name, agent: "real", settings });
    const nodes = await Promise.all([start("ada"), start("bob")]);
    const [leader, standby] = await eventually("a leader and a standby", async () => {
      const leader = nodes.find((node) => node.report()?.role === "LEADER");
      const standby = nodes.find((node) => {
        const report = node.report();
        return report?.role === "STANDBY" && agentOf(report).state === "running";
      });
      return leader && standby ? ([leader, standby] as const) : null;
    });

    const jobWhen = async (at: ControllerProcess, id: string, holds: (job: JobBody) => boolean) => {
      await using client = new BatonClient({ url: at.report()!.url!, timeoutMs: 10_000 });
      return await eventually(`job ${id}`, async () => {
        const job = await client.job(id);
        return holds(job) ? job : null;
      });
    };
    /** Until the handler has begun so many times, by its own word. */
    const holding = async (at: ControllerProcess, id: string, times: number) => {
      await using client = new BatonClient({ url: at.report()!.url!, timeoutMs: 10_000 });
      await eventually(`run ${times} of job ${id}`, async () => {
        const { logs } = await client.logs(id);
        return logs.filter(({ message }) => message === "holding").length >= times || null;
      });
    };
    const submit = async (at: ControllerProcess, task: string): Promise<string> => {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ task, payload: {} });
      const answer = await fetch(`${at.report()!.url}/v1/jobs`, { method: "POST", headers, body });
      assert.equal(answer.status, 200);
      return ((await answer.json()) as { job_id: string }).job_id;
    };
    const first = await jobWhen(leader, await submit(leader, "tick"), ({ status }) => status === "completed");
    assert.equal(first.worker, `${standby.name}-worker`);

    const held = await submit(leader, "hold");
    await holding(leader, held, 1);
    process.kill(leader.report()!.controller.pid!, "SIGKILL");
    const report = await standby.leading();
    assert.equal(agentOf(report).state, "off");
    const [off] = standby.log("the agent is off; the controller may lead").slice(-1);
    t.diagnostic(`off after ${String(off!["tookMs"])} ms: ${agentOf(report).last_exit!.reason}`);
    assert.ok((off!["tookMs"] as number) < 2_000, "nobody could take its results, so it is not waited for");
    const again = await jobWhen(standby, held, ({ worker, status }) => {
      return status === "processing" && worker === `${leader.name}-worker`;
    });
    assert.deepEqual([again.attempts, again.interruptions, again.crashes], [2, 1, 0]);
    assert.equal(agentOf(leader.report()!).restarts, 0, "an agent that works is not taken for a wedged one");

    await holding(standby, held, 2);
    leader.child.kill("SIGTERM");
    assert.deepEqual(await leader.exited, { code: 0, signal: null });
    const back = await jobWhen(standby, held, ({ status }) => status === "queued");
    assert.equal(
      back.crashes,
      again.crashes,
      "with a leader at hand the agent gives back what it cannot finish",
    );
  });
});
