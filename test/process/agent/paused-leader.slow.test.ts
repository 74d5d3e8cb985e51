/** Agents of two real controllers whose leader stands still for longer than its lease (S03, S63). */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { QUICK, roleOf, type TestCluster } from "../../support/cluster.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { eventually } from "../../support/wait.ts";
import { openControllers, submitTo, urlsOf } from "../../support/real-controllers.ts";

const python = spawnSync("python3", ["--version"]).status === 0;
const work = (ms: number) => ({ task: "work", payload: { ms } });

/** Everything that is known of jobs and of what they said. */
function stored(cluster: TestCluster): Promise<unknown> {
  const tables = ["job", "live", "done", "log"].map(
    (table) => `SELECT '${table}' AS "table", to_jsonb(t) AS row FROM baton.${table} t`,
  );
  return cluster.sql(
    `SELECT "table", row FROM (${tables.join(" UNION ALL ")}) all_rows ORDER BY 1, row::text`,
  );
}

describe("agents whose leader stands still for longer than its lease", () => {
  it("go on under the next one with what they hold, each job once, and the one that goes on again changes nothing", async (t) => {
    const cluster = await openControllers(t, QUICK);
    const { name, node: old, epoch } = await cluster.leader();
    const agents = [AgentProcess.spawn(t, urlsOf(cluster), { args: ["--concurrency", "30"] })];
    if (python) agents.push(AgentProcess.python(t, urlsOf(cluster)));
    const long = await submitTo(
      old,
      Array.from({ length: 5 }, () => work(6_000)),
    );
    if (python) {
      const square = { task: "slow-square", payload: { number: 7, seconds: 6 } };
      long.push(...(await submitTo(old, [square])));
    }
    // Some of these end while nobody leads, and the leader that stands still is told of it first.
    const short = await submitTo(
      old,
      Array.from({ length: 20 }, (_, n) => work(800 + n * 60)),
    );
    for (const id of [...long, ...short]) await old.processing(id);
    await systemClock.sleep(500); // the store knows of a lease before the agent does

    old.signal("SIGSTOP");
    const stoppedAt = systemClock.monotonic();
    cluster.forget(name);
    const { node: next, name: successor } = await cluster.leader();
    t.diagnostic(`another leads after ${(systemClock.monotonic() - stoppedAt).toFixed(0)} ms`);
    const ran = async (ids: readonly string[]): Promise<void> => {
      for (const id of ids) {
        const job = await next.jobWhen(id, ({ status }) => status === "completed");
        const { attempts, crashes, failures, leader_epoch } = job;
        assert.deepEqual([attempts, crashes, failures], [1, 0, 0], `${id}: ${agents[0]!.output}`);
        if (long.includes(id)) assert.ok(leader_epoch > epoch, "its result was accepted by the next leader");
      }
    };
    await ran(short);
    t.diagnostic(`all short jobs ended after ${(systemClock.monotonic() - stoppedAt).toFixed(0)} ms`);
    await ran(long);

    const before = await stored(cluster);
    old.signal("SIGCONT");
    await eventually("the old leader to follow", async () => {
      const role = await roleOf(old);
      assert.notEqual(role?.role, "LEADER", "it believes in its old term");
      return (role?.role === "STANDBY" && role.leader_id === successor) || null;
    });
    await systemClock.sleep(2_000); // for whatever it would still write
    assert.deepEqual(await stored(cluster), before, "the one that went on has changed nothing");
    const [last] = await submitTo(next, [work(0)]);
    await next.jobWhen(last!, ({ status }) => status === "completed");
    for (const agent of agents) assert.equal((await agent.terminate()).code, 0, agent.output);
  });
});
