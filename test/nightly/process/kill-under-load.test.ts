import assert from "node:assert/strict";
import { it } from "node:test";
import type { JobRequestBody } from "../../../src/client/baton-client.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { dataDirectory, NodeProcess } from "../../support/process-node.ts";

const ROUNDS = 20;
const SUBMITTERS = 4;
const SEED = Number(process.env["BATON_TEST_SEED"] ?? systemClock.now() % 1_000_000);

const random = seededRandom(SEED);
const upTo = (n: number): number => Math.floor(random.chance() * n);

/** What the callers know: what was acknowledged, and which keys may or may not have arrived. */
class Callers {
  readonly acknowledged = new Set<string>();
  readonly byKey = new Map<string, string>();
  /** Sent and never answered. */
  readonly unanswered: string[] = [];
  #keys = 0;

  /** Submits until the node dies under it. */
  async burst(node: NodeProcess): Promise<void> {
    for (;;) {
      const kind = upTo(10);
      try {
        if (kind < 5) this.acknowledged.add((await node.client.submit(this.#job())).job_id);
        else if (kind < 8) {
          const jobs = Array.from({ length: 1 + upTo(20) }, () => this.#job());
          for (const { job_id } of await node.client.submitMany(jobs)) this.acknowledged.add(job_id);
        } else await this.#withKey(node);
      } catch {
        return;
      }
    }
  }

  /** A key that got no answer is sent again, as a careful caller does. */
  async #withKey(node: NodeProcess): Promise<void> {
    const key = this.unanswered.shift() ?? `key-${++this.#keys}`;
    try {
      const { job_id } = await node.client.submit({ ...this.#job(), idempotency_key: key });
      assert.equal(this.byKey.get(key) ?? job_id, job_id, "one key, one job");
      this.byKey.set(key, job_id);
      this.acknowledged.add(job_id);
    } catch (error) {
      this.unanswered.push(key);
      throw error;
    }
  }

  #job(): JobRequestBody {
    const payload = { ms: upTo(31), flaky: upTo(8) === 0 };
    const priority = upTo(5) === 0 ? upTo(10) : 0;
    return { task: "work", payload, priority, ...(upTo(10) === 0 ? { delay_ms: upTo(50) } : {}) };
  }
}

it(`loses no acknowledged job and no epoch over ${ROUNDS} kills under load (seed ${SEED})`, async (t) => {
  const data = await dataDirectory(t);
  const callers = new Callers();
  const seen = new Map<string, { epoch: number; status: string }>();
  const settings = {
    WORKER__CONCURRENCY: "20",
    RETRY__FIRST_DELAY: "20ms",
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
    const bursts = Array.from({ length: SUBMITTERS }, () => callers.burst(node));
    await systemClock.sleep(50 + upTo(300));
    await node.kill();
    await Promise.all(bursts);
  }

  const node = await NodeProcess.start(t, { data, settings });
  await node.idle(30_000);
  const jobs = await node.allJobs();
  const byId = new Map(jobs.map((job) => [job.job_id, job]));
  assert.ok(callers.acknowledged.size > 200, `only ${callers.acknowledged.size} jobs were submitted`);
  for (const id of callers.acknowledged) assert.equal(byId.get(id)?.status, "completed", id);
  assert.ok(jobs.every(({ status }) => status === "completed"));
  assert.ok(
    jobs.some(({ crashes }) => crashes > 0),
    "no kill hit a running job: the bursts are too short to prove anything",
  );

  const keys = jobs.flatMap(({ idempotency_key }) => idempotency_key ?? []);
  assert.equal(new Set(keys).size, keys.length, "an idempotency key made two jobs");
  for (const [key, id] of callers.byKey) assert.equal(byId.get(id)?.idempotency_key, key);

  const { queues } = await node.client.queues();
  assert.equal(queues[0]?.counts.completed, jobs.length, "the counts agree with the jobs");
  for (const { job_id, job_epoch } of jobs.slice(0, 200)) {
    const { result } = await node.client.result(job_id);
    assert.deepEqual(result, { epoch: job_epoch }, "the result is that of the last run");
  }
  assert.equal((await node.terminate()).code, 0);
});
