import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import {
  agentWanted,
  beforeLeading,
  exitCodeOf,
  isDegraded,
  restartDelayMs,
  steadyAfterMs,
  hangOf,
  type AgentWork,
} from "../../../src/core/supervision.ts";

const POLICY = { firstDelayMs: 1_000, delayMsMax: 30_000, degradedAfter: 3 };

describe("which agent is wanted", () => {
  it("none while the node leads or drains, whoever else is seen", () => {
    for (const role of ["LEADER", "DRAINING"] as const)
      for (const leader of [null, "bob"]) assert.equal(agentWanted({ role, epoch: 1, leader }), false);
  });

  it("one while it stands by for another; as it was while nobody is known to lead, or nothing is known at all", () => {
    assert.equal(agentWanted({ role: "STANDBY", epoch: 1, leader: "bob" }), true);
    assert.equal(agentWanted({ role: "STANDBY", epoch: null, leader: null }), null);
    assert.equal(agentWanted(null), null);
  });
});

describe("the exit code of a node-controller", () => {
  const asked = { code: 0, signal: null };

  it("is that of the child that did worse, and 0 when nobody had to be ended", () => {
    assert.equal(exitCodeOf([]), 0);
    assert.equal(exitCodeOf([asked, asked]), 0);
    assert.equal(exitCodeOf([asked, { code: 6, signal: null }]), 6);
  });

  it("is 1 when a child had to be killed, but not when it was asked before it could listen", () => {
    assert.equal(exitCodeOf([asked, { code: null, signal: "SIGKILL" }]), 1);
    assert.equal(exitCodeOf([asked, { code: null, signal: "SIGTERM" }]), 0);
  });
});

describe("restarts", () => {
  it("wait 1, 2, 4, 8, 16 and then 30 s", () => {
    const delays = [1, 2, 3, 4, 5, 6, 7].map((crashes) => restartDelayMs(crashes, POLICY));
    assert.deepEqual(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  it("never wait less than at first, never longer than the longest, and never less after one more crash", () => {
    fc.assert(
      fc.property(
        fc.nat(5_000),
        fc.integer({ min: 10, max: 1e6 }),
        fc.integer({ min: 10, max: 1e6 }),
        (n, first, max) => {
          const policy = { ...POLICY, firstDelayMs: first, delayMsMax: max };
          const delay = restartDelayMs(n, policy);
          assert.ok(delay >= first && delay <= Math.max(first, max));
          assert.ok(restartDelayMs(n + 1, policy) >= delay);
        },
      ),
    );
  });

  it("are degraded after so many crashes, and over after a life of two longest waits", () => {
    assert.deepEqual(
      [2, 3, 4].map((crashes) => isDegraded(crashes, POLICY)),
      [false, true, true],
    );
    assert.equal(steadyAfterMs(POLICY), 60_000);
    assert.deepEqual(beforeLeading(3_000), { hurryMs: 300, killMs: 3_000 });
    assert.deepEqual(beforeLeading(400), { hurryMs: 200, killMs: 400 });
  });
});

describe("an agent that leaves work lying", () => {
  const job = { task: "mail", queue: "default", readyAt: 0 };
  const work: AgentWork = {
    agent: { capabilities: ["mail"], running: 0, lastSeenAt: 99_000 },
    waiting: [job],
    pausedQueues: new Set(),
    queues: null,
    now: 100_000,
    wedgedAfterMs: 15_000,
  };
  const agent = work.agent!;

  it("is wedged: it runs nothing, is silent, or was never heard of", () => {
    assert.match(hangOf(work)!, /runs nothing/);
    assert.match(hangOf({ ...work, agent: { ...agent, running: 1, lastSeenAt: 80_000 } })!, /silent/);
    assert.match(hangOf({ ...work, agent: null })!, /heard of/);
  });

  it("is not while it works, has no such task or queue, or the work is new or paused", () => {
    const fine: Partial<AgentWork>[] = [
      { agent: { ...agent, running: 2 } },
      { agent: { ...agent, capabilities: ["other"] } },
      { waiting: [] },
      { waiting: [{ ...job, readyAt: 90_000 }] },
      { pausedQueues: new Set(["default"]) },
      { queues: new Set(["night"]) },
    ];
    for (const part of fine) assert.equal(hangOf({ ...work, ...part }), null, JSON.stringify(part));
    assert.notEqual(hangOf({ ...work, queues: new Set(["default"]) }), null);
  });
});
