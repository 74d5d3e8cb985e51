/** Agents that live and leave work lying (S96). */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { atEnd, suiteScope } from "../../../support/node-cleanup.ts";
import { PostgresServer, type SharedPostgres } from "../../../support/postgres-server.ts";
import { jobWhen, submit, workingPair } from "../../../process/controller/pair-world.ts";
import { agentOf, isAlive } from "../../../process/controller/world.ts";

/** Nobody dies here but agents, so that a leader may be one that a busy machine keeps. */
const STEADY = { LEADER__LEASE: "20s", LEADER__RENEW: "2s", CONTROLLER__WEDGED_AFTER: "4s" };

describe("an agent that leaves work lying", () => {
  const suite = suiteScope();
  let server: SharedPostgres;

  before(async () => {
    server = await PostgresServer.shared();
    atEnd(suite, () => server.stop());
  });

  it("because it stands still is killed, and the one in its place does the work", async (t) => {
    const settings = { ...STEADY, AGENTS__LEASE: "2s" };
    const { leader, standby } = await workingPair(t, server, { settings });
    const [first] = await submit(leader, [{ task: "tick" }]);
    await jobWhen(leader, first!, ({ status }) => status === "completed");
    const { pid } = agentOf(standby.report()!);
    process.kill(pid!, "SIGSTOP");
    // Leased to its poll, which is still open, and comes back when that lease is over.
    const [id] = await submit(leader, [{ task: "tick" }]);
    const report = await standby.when("another agent", (now) => agentOf(now).restarts === 1, 30_000);
    assert.match(
      agentOf(report).last_exit!.reason,
      /^wedged: it (?:is silent|runs nothing) though there is work/,
    );
    assert.equal(isAlive(pid!), false);
    const done = await jobWhen(leader, id!, ({ status }) => status === "completed");
    assert.equal(done.worker, `${standby.name}-worker`);
    assert.equal(standby.report()!.role, "STANDBY", "its controller was not disturbed");
  });

  it("because it does not ask for any is killed too, though it says that it lives; without work it is left alone", async (t) => {
    const settings = { ...STEADY, AGENTS__STALE_AFTER: "2s" };
    const { leader, standby } = await workingPair(t, server, { agent: "lazy", settings });
    await standby.moonlighting();
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    const { pid, restarts } = agentOf(standby.report()!);
    assert.equal(restarts, 0, "there was nothing to do");
    await submit(leader, [{ task: "tick" }]);
    const report = await standby.when("another agent", (now) => agentOf(now).restarts === 1, 30_000);
    assert.equal(agentOf(report).last_exit!.reason, "wedged: it runs nothing though there is work for it");
    assert.equal(isAlive(pid!), false);
  });
});
