import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { assertNothingLost, Callers } from "../../support/cluster.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { dataDirectory, NodeProcess } from "../../support/process-node.ts";

const ROUNDS = 20;
const SEED = Number(process.env["BATON_TEST_SEED"] ?? systemClock.now() % 1_000_000);

const random = seededRandom(SEED);
const upTo = (n: number): number => Math.floor(random.chance() * n);

it(`loses no acknowledged job and no epoch over ${ROUNDS} kills under load (seed ${SEED})`, async (t) => {
  const data = await dataDirectory(t);
  const nodes = new Map<string, NodeProcess>();
  const payload = () => ({ ms: upTo(31), flaky: upTo(8) === 0 });
  const callers = Callers.start(t, { nodes }, { count: 4, pauseMs: 0, payload });
  const seen = new Map<string, { epoch: number; status: string }>();
  const settings = {
    WORKER__CONCURRENCY: "20",
    RETRY__DELAY: "20ms",
    JOBS__CRASHES_MAX: "1000", // here the node is killed from outside, and no job is to blame
    LOG__LEVEL: "error",
  };

  for (let round = 0; round < ROUNDS; round++) {
    const node = await NodeProcess.start(t, { data, settings });
    const jobs = await node.allJobs();
    const stored = new Set(jobs.map(({ job_id }) => job_id));
    for (const id of callers.acknowledged) assert.ok(stored.has(id), `${id} was acknowledged and is gone`);
    for (const { job_id, job_epoch, status } of jobs) {
      const before = seen.get(job_id);
      assert.ok(job_epoch >= (before?.epoch ?? 0), `${job_id} went back to epoch ${job_epoch}`);
      if (before?.status === "completed") assert.equal(status, "completed", `${job_id} was completed`);
      seen.set(job_id, { epoch: job_epoch, status });
    }
    nodes.set("solo", node);
    await systemClock.sleep(50 + upTo(300));
    nodes.clear();
    await node.kill();
  }

  const node = await NodeProcess.start(t, { data, settings });
  nodes.set("solo", node);
  await callers.stop();
  await node.idle(30_000);
  const jobs = await node.allJobs();
  assert.ok(callers.acknowledged.size > 200, `only ${callers.acknowledged.size} jobs were submitted`);
  assertNothingLost(callers, jobs);
  assert.ok(jobs.every(({ status }) => status === "completed"));
  assert.ok(
    jobs.some(({ crashes }) => crashes > 0),
    "no kill hit a running job: the bursts are too short to prove anything",
  );
  const { queues } = await node.client.queues();
  assert.equal(queues[0]?.counts.completed, jobs.length, "the counts agree with the jobs");
  for (const { job_id, job_epoch } of jobs.slice(0, 200)) {
    const { result } = await node.client.result(job_id);
    assert.deepEqual(result, { epoch: job_epoch }, "the result is that of the last run");
  }
  assert.equal((await node.terminate()).code, 0);
});
