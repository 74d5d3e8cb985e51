import assert from "node:assert/strict";
import { it } from "node:test";
import { workerHealthCheck } from "../../../src/observe/worker-health-check.ts";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { fakePlatform } from "../../support/fake-platform.ts";

function check(unansweredMs: number, ageMs: number) {
  const claims = { unansweredMs, underWayMs: unansweredMs, failure: null, idleMs: 0, resultsFailingMs: null };
  const platform = fakePlatform();
  platform.state.forming = null;
  return workerHealthCheck(platform, {
    watch: { claims: () => ({ ...claims, sentAgoMs: unansweredMs }) },
    watchdog: { stuck: () => [] },
    backlog: { get: async () => ({ queues: [], agents: [], deadRows: null }), ageMs },
    jobs: { list: async () => ({ jobs: [], nextCursor: null }) } as never,
    tasks: { names: () => new Set(["work"]) },
    served: { queues: null, exceptQueues: new Set() },
    slots: 10,
    worker: { active: 0, running: true },
    budgets: DEFAULT_BUDGETS,
  }).check();
}

it("a claim that hangs is excused by an empty backlog only if that was read since", async () => {
  assert.equal((await check(6_000, 3_000)).code, "working");
  assert.equal((await check(6_000, 7_000)).code, "claims_unanswered");
  assert.equal((await check(2_000, 7_000)).code, "working", "it does not hang yet");
});
