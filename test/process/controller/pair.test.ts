/** Two node-controllers on one PostgreSQL: who leads has no agent, from before its first write on (S95, S97, S98). */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { BatonClient } from "../../../src/client/baton-client.ts";
import { LONG_LEASES, QUICK } from "../../support/cluster.ts";
import { atEnd, type Scope, suiteScope } from "../../support/node-cleanup.ts";
import { PostgresServer, type SharedPostgres } from "../../support/postgres-server.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { eventually } from "../../support/wait.ts";
import { holding, jobWhen, submit, workingPair } from "./pair-world.ts";
import { agentOf, ControllerProcess, isAlive, untilGone, type WorldOptions } from "./world.ts";

/** Everything that was stored by a leader of that epoch, with its time: what a leader writes first. */
const FIRST_WRITE = "SELECT min(noted_at)::text AS at FROM baton.occurrence WHERE leader_epoch = ";

describe("two node-controllers", () => {
  const suite = suiteScope();
  let server: SharedPostgres;

  before(async () => {
    server = await PostgresServer.shared();
    atEnd(suite, () => server.stop());
  });

  /** A leader, and a standby whose agent works; a schedule makes whoever leads write often. */
  async function pair(t: Scope, options: Pick<WorldOptions, "agent" | "settings"> = {}) {
    const url = await server.createDatabase();
    const settings = {
      ...QUICK,
      ...LONG_LEASES,
      STORE: url,
      CONTROLLER__AGENT_OFF: "1s",
      ...options.settings,
    };
    const start = (name: string) => ControllerProcess.start(t, { name, agent: options.agent, settings });
    // One after the other: a standby that led in another role would look for this one only now and then.
    const leader = await start("ada");
    await leader.leading();
    const standby = await start("bob");
    await eventually("a standby", () => standby.beats().length > 0);
    await using client = new BatonClient({ url: leader.report()!.url!, timeoutMs: 10_000 });
    await client.putSchedule({ name: "often", task: "tick", every_ms: 1_000, missed: "run_all" });
    const firstWrite = async (epoch: number): Promise<number> =>
      eventually("a write of the new leader", async () => {
        const [row] = await server.query(`${FIRST_WRITE}${epoch}`, url);
        return row!["at"] === null ? null : Number(row!["at"]);
      });
    return { leader, standby, firstWrite };
  }

  /** The agent's last sign of life, its end as its node-controller saw it, the begin of duties, the first write: in that order. */
  async function assertOrder(node: ControllerProcess, writtenAt: number): Promise<number> {
    const last = node.beats().at(-1)!;
    const [off] = node.log("the agent is off; the controller may lead").slice(-1);
    const [begun] = node.log("the gate is open").slice(-1);
    const [offAt, begunAt] = [Date.parse(off!.time), Date.parse(begun!.time)];
    assert.ok(last.at <= offAt, `agent alive at ${last.at}, said to be off at ${offAt}`);
    assert.ok(offAt <= begunAt, `off at ${offAt}, duties at ${begunAt}`);
    assert.ok(begunAt <= writtenAt, `duties at ${begunAt}, first write at ${writtenAt}`);
    assert.equal(isAlive(last.pid), false);
    return offAt - last.at;
  }

  it("swap their roles when the controller that leads is killed: the agent of the one is off before its first write, the other's begins", async (t) => {
    const { leader, standby, firstWrite } = await pair(t);
    assert.equal(agentOf(leader.report()!).state, "off");
    assert.deepEqual(leader.beats(), [], "a leader never had one");
    await standby.moonlighting();

    process.kill(leader.report()!.controller.pid!, "SIGKILL");
    const { leader_epoch } = await standby.leading();
    const idleMs = await assertOrder(standby, await firstWrite(leader_epoch!));
    t.diagnostic(`${idleMs} ms from the agent's last sign of life to its end being known`);
    assert.equal(agentOf(standby.report()!).last_exit!.reason, "asked to make way for a term");
    await leader.moonlighting();
    assert.equal(standby.report()!.role, "LEADER", "it was not disturbed");

    // And back, by the end of the whole of it.
    const { controller } = standby.report()!;
    standby.child.kill("SIGKILL");
    await untilGone([controller.pid!]);
    const next = await leader.leading();
    await assertOrder(leader, await firstWrite(next.leader_epoch!));
  });

  it("an agent that ignores SIGTERM is killed with all that it started, and then its controller leads", async (t) => {
    const { leader, standby, firstWrite } = await pair(t, { agent: "deaf" });
    process.kill(leader.report()!.controller.pid!, "SIGKILL");
    const { leader_epoch } = await standby.leading();
    await assertOrder(standby, await firstWrite(leader_epoch!));
    const [off] = standby.log("the agent is off; the controller may lead").slice(-1);
    assert.ok((off!["tookMs"] as number) >= 1_000, `${String(off!["tookMs"])} ms`);
    const { last_exit } = agentOf(standby.report()!);
    assert.equal(last_exit!.signal, "SIGKILL");
    assert.match(last_exit!.reason, /killed, because it did not end within 1000 ms/);
    standby.child.kill("SIGTERM");
    assert.deepEqual(await standby.exited, { code: 0, signal: null }, "its own end is another matter");
  });

  it("killed with -9, a standby leaves neither its controller nor its agent nor what that has started", async (t) => {
    const { standby } = await pair(t, { agent: "parent" });
    const report = await standby.moonlighting();
    const grandchild = Number(readFileSync(join(standby.data, "grandchild"), "utf8"));
    assert.ok(isAlive(grandchild));
    standby.child.kill("SIGKILL");
    const tookMs = await untilGone([report.controller.pid!, agentOf(report).pid!, grandchild]);
    t.diagnostic(`gone after ${tookMs.toFixed(0)} ms`);
  });

  it("an agent that keeps crashing makes its node-controller degraded and leaves the controller alone", async (t) => {
    const { standby } = await pair(t, { agent: "crashing" });
    const report = await standby.when("to be degraded", ({ status }) => status === "degraded");
    assert.equal(report.role, "STANDBY");
    assert.equal(report.controller.restarts, 0);
    assert.equal(agentOf(report).last_exit!.code, 3);
    standby.child.kill("SIGTERM");
    assert.deepEqual(await standby.exited, { code: 0, signal: null });
  });

  it("a takeover gives the job of the new leader's own agent back at once, as an interruption, to whoever asks", async (t) => {
    const { leader, standby } = await workingPair(t, server);
    const [id] = await submit(leader, [{ task: "hold", max_attempts: 1 }]);
    await holding(leader, id!);
    const before = await jobWhen(leader, id!, ({ status }) => status === "processing");
    assert.equal(before.worker, `${standby.name}-worker`);
    const free = AgentProcess.spawn(t, [leader.report()!.url!, standby.report()!.url!], { name: "free" });
    await eventually("the other agent", async () => {
      const answer = await fetch(`${leader.report()!.url}/v1/agents`);
      const { agents } = (await answer.json()) as { agents: { name: string }[] };
      return agents.some(({ name }) => name === "free");
    });

    // Or the controller that it starts anew may lead again: the standby leaves the line now and then to look around.
    leader.signal("SIGSTOP");
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
