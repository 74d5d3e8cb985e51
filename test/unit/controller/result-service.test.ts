import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentResult } from "../../../src/controller/result-service.ts";
import { ResultService } from "../../../src/controller/result-service.ts";
import { LeasedRuns } from "../../../src/controller/leased-runs.ts";
import { NotLeader, termGuard } from "../../../src/controller/term-guard.ts";
import { BatonError } from "../../../src/core/errors.ts";
import type { JobId, NodeName } from "../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { DEFAULT_RETRY } from "../../../src/core/jobs/retry.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { fakePlatform, type FakePlatform } from "../../support/fake-platform.ts";
import type { Settlement } from "../../../src/store/store.ts";

const TERM: Term = { role: "scheduler", leader: "a" as NodeName, incarnation: "one", epoch: 3 };

function formedPlatform(): FakePlatform {
  const platform = fakePlatform({ identity: { name: TERM.leader, incarnation: TERM.incarnation } });
  platform.state.forming = null;
  return platform;
}

class World {
  held: Term | null = TERM;
  current: Term = TERM;
  readonly platform = formedPlatform();
  fenced = false;
  readonly settles: { settlements: readonly Settlement[]; fence: Term | undefined }[] = [];
  readonly guard = termGuard(
    this.platform,
    { current: () => this.current, held: () => this.held },
    { nodes: () => [] },
  );
  readonly desk = new ResultService(this.platform, {
    store: {
      jobs: {
        record: async ({ reports, settlements }, fence) => {
          if (this.fenced || reports.length > 0) throw new BatonError("STALE_EPOCH", "not the newest term");
          this.settles.push({ settlements, fence });
          return { reported: [], settled: settlements.map(() => "accepted" as const) };
        },
        get: async () => null,
      },
    },
    guard: this.guard,
    leasedRuns: new LeasedRuns(DEFAULT_BUDGETS),
    tasks: { get: () => undefined },
    rules: { budgets: DEFAULT_BUDGETS, retry: DEFAULT_RETRY, chance: () => 0.5 },
    onSettled: () => {},
    onReported: () => {},
  });

  result(n: number, fields: Partial<AgentResult> = {}): AgentResult {
    const named = { job: `a-${n}` as JobId, lease: "agent:ada/1", jobEpoch: 1, leaderEpoch: 3 };
    return { ...named, status: "succeeded", ...fields };
  }
}

describe("the desk that takes results", () => {
  it("writes results that come at the same time together, under the term", async () => {
    const world = new World();
    const answers = await Promise.all([1, 2, 3].map((n) => world.desk.settle([world.result(n)])));
    const found = answers.map(([answer]) => answer!.accepted);
    assert.deepEqual(found, [true, true, true]);
    const listed = world.settles.map(({ settlements, fence }) => [settlements.length, fence]);
    assert.deepEqual(listed, [[3, TERM]]);
  });

  it("writes an array in one step, and leaves out what is refused", async () => {
    const world = new World();
    const results = [world.result(1), world.result(2, { jobEpoch: null }), world.result(3)];
    const answers = await world.desk.settle(results);
    assert.deepEqual(
      answers.map(({ accepted, job }) => [job, accepted]),
      [
        ["a-1", true],
        ["a-2", false],
        ["a-3", true],
      ],
    );
    const found = world.settles.map(({ settlements }) => settlements.map(({ run }) => run.id));
    assert.deepEqual(found, [["a-1", "a-3"]]);
  });

  it("answers STALE_EPOCH with the field when the store says that the term is over", async () => {
    const world = new World();
    world.fenced = true;
    world.current = { ...TERM, epoch: 4, incarnation: "two" };
    for (const results of [[world.result(1)], [world.result(1), world.result(2)]]) {
      for (const answer of await world.desk.settle(results)) {
        assert.equal(answer.accepted, false);
        const { code, field, leaderEpoch } = answer.refusal;
        assert.deepEqual([code, field, leaderEpoch], ["STALE_EPOCH", "leader_epoch", 4]);
      }
    }
    const { status: _, ...named } = world.result(1);
    await assert.rejects(world.desk.report({ ...named, lines: [], progress: null }), { code: "STALE_EPOCH" });
  });

  it("takes results while the node drains and its term lasts, and refuses them after that", async () => {
    const world = new World();
    world.platform.state.draining = true;
    assert.equal((await world.desk.settle([world.result(1)]))[0]!.accepted, true);
    assert.throws(() => world.guard.require("lead"), { code: "NOT_LEADER" });
    world.held = null;
    await assert.rejects(world.desk.settle([world.result(2)]), { code: "NOT_LEADER" });
  });

  it("fails a job for good whose result is too large to be kept", async () => {
    const world = new World();
    const [answer] = await world.desk.settle([world.result(1, { result: "x".repeat(9 * 1_048_576) })]);
    assert.ok(answer!.accepted);
    assert.equal(answer!.status, "failed");
  });
});

describe("a refusal of a node that does not lead", () => {
  it("never sends anybody back to the node itself", () => {
    const world = new World();
    const leadership = { current: () => TERM, held: () => null };
    const { details } = termGuard(world.platform, leadership, { nodes: () => [] }).refusal();
    assert.deepEqual(details, {
      leader_id: null,
      leader_url: null,
      leader_epoch: 3,
      node_id: "a",
      role: "STANDBY",
    });
    assert.ok(world.guard.refusal() instanceof NotLeader);
  });

  it("turns a write that the store has fenced off into NOT_LEADER, and no other failure", async () => {
    const { guard } = new World();
    const stale = Promise.reject(new BatonError("STALE_EPOCH", "x"));
    await assert.rejects(guard.fenced(stale), { code: "NOT_LEADER" });
    const away = Promise.reject(new BatonError("STORE_UNAVAILABLE", "x"));
    await assert.rejects(guard.fenced(away), { code: "STORE_UNAVAILABLE" });
  });
});
