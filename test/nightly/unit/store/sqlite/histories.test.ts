/**
 * Random histories on the embedded store: what its fast paths (the log, lanes, counts kept in memory) must never break.
 * The contract's model checks the same promises on every keeper; this one stops and starts the store, sets the wall clock
 * back, pauses queues and passes over tasks much more often.
 */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { JobId, LeaseId, NodeName } from "../../../../../src/core/ids.ts";
import { DEFAULT_BUDGETS, type Job, JOB_STATUSES, type JobStatus } from "../../../../../src/core/jobs/job.ts";
import { claimRequest, newJob } from "../../../../support/job-builders.ts";
import { ManualClock } from "../../../../support/manual-clock.ts";
import { seededRandom } from "../../../../support/seeded-random.ts";
import { openSqliteStore, type SqliteStore } from "../../../../../src/store/sqlite/store.ts";
import type { JobPage, ClaimedJob, NewJob, Outcome } from "../../../../../src/store/store.ts";
import { settleRuns } from "../../../../support/store-world.ts";

const NODE = "n" as NodeName;
const AUTHOR = { node: NODE, ownerEpoch: 1, leaderEpoch: 1 };
const STEPS = 250;
const ERROR = { code: "E", message: "m" };
const OUTCOMES: readonly Outcome[] = [
  { kind: "completed", result: "1" },
  { kind: "completed", result: "null" },
  { kind: "retry", error: ERROR, delayMs: 0 },
  { kind: "retry", error: ERROR, delayMs: 10 },
  { kind: "failed", error: ERROR, spends: "failure" },
  { kind: "interrupted" },
  { kind: "released" },
  { kind: "cancelled", error: ERROR },
];

class History {
  readonly #random;
  readonly #clock = new ManualClock();
  readonly #dir = mkdtempSync(join(tmpdir(), "baton-history-"));
  readonly #ids: JobId[] = [];
  readonly #runs: ClaimedJob[] = [];
  readonly #running = new Map<JobId, number>();
  #store!: SqliteStore;
  #life = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  async run(): Promise<void> {
    this.#store = await this.#open();
    try {
      for (let step = 0; step < STEPS; step++) await this.#step();
      await this.#everythingIsReachable();
    } finally {
      await this.#store.close();
      rmSync(this.#dir, { recursive: true, force: true });
    }
  }

  #open(): Promise<SqliteStore> {
    return openSqliteStore({ dir: this.#dir, clock: this.#clock });
  }

  #below(n: number): number {
    return Math.floor(this.#random.chance() * n);
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#below(values.length)]!;
  }

  async #step(): Promise<void> {
    this.#clock.setWall(this.#clock.now() + (this.#below(20) === 0 ? -20 : this.#below(5)));
    const { jobs, queues } = this.#store;
    const chance = this.#below(100);
    if (chance < 25)
      await jobs.submit(
        Array.from({ length: 1 + this.#below(6) }, () => this.#newJob()),
        AUTHOR,
      );
    else if (chance < 50)
      await this.#claim(1 + this.#below(4), this.#pick([["t"], ["t", "u"], ["v"], ["t", "u", "v"]]));
    else if (chance < 75) await this.#settle();
    else if (chance < 80 && this.#ids.length > 0) await jobs.cancel(this.#pick(this.#ids), null);
    else if (chance < 85 && this.#ids.length > 0) await jobs.retry(this.#pick(this.#ids));
    else if (chance < 88 && this.#ids.length > 0) await this.#remove(this.#pick(this.#ids));
    else if (chance < 92) await queues.setPaused(this.#pick(["a", "b"]), this.#below(10) < 4);
    else if (chance < 95) await this.#restart();
    else await this.#agrees();
  }

  #newJob(): NewJob {
    const id = `n-${this.#random.timedUuid()}` as JobId;
    this.#ids.push(id);
    return newJob({
      id,
      task: this.#pick(["t", "t", "u", "v"]),
      queue: this.#pick(["a", "b"]),
      priority: this.#below(10) < 7 ? 0 : this.#pick([-5, 5]),
      payload: "1",
      delayMs: this.#below(10) < 8 ? 0 : this.#below(50),
      idempotencyKey: this.#below(10) < 9 ? null : `k${this.#below(5)}`,
    });
  }

  async #claim(limit: number, tasks: readonly string[]): Promise<number> {
    const lease = `n/${this.#life}/0` as LeaseId;
    const under = { author: AUTHOR, worker: NODE, lease, leaseMs: 1e12 };
    const request = claimRequest({ ...under, limit, tasks: new Set(tasks) });
    const { jobs } = await this.#store.jobs.claim(request);
    for (const job of jobs) {
      assert.ok(!this.#running.has(job.id), `${job.id} is given out while it runs`);
      this.#running.set(job.id, job.jobEpoch);
      this.#runs.push(job);
    }
    return jobs.length;
  }

  async #settle(): Promise<void> {
    if (this.#runs.length === 0) return;
    const run = this.#pick(this.#runs);
    const held = this.#running.get(run.id) === run.jobEpoch;
    const [verdict] = await settleRuns(this.#store, [{ run, outcome: this.#pick(OUTCOMES) }]);
    assert.equal(verdict === "accepted", held, `${run.id}: ${verdict}`);
    if (held) this.#running.delete(run.id);
  }

  async #remove(id: JobId): Promise<void> {
    const answer = await this.#store.jobs.remove(id);
    assert.equal(answer === "running", this.#running.has(id), `${id}: ${answer}`);
  }

  async #restart(): Promise<void> {
    await this.#store.close();
    this.#store = await this.#open();
    const incarnation = String(++this.#life);
    const term = await this.#store.terms.grant("scheduler", { name: NODE, incarnation });
    const recovered = await this.#store.jobs.recover(
      { by: "everybody", except: incarnation },
      DEFAULT_BUDGETS,
      term,
    );
    assert.deepEqual(recovered.map(({ id }) => id).sort(), [...this.#running.keys()].sort());
    this.#running.clear();
  }

  async #all(status?: JobStatus): Promise<Job[]> {
    const found: Job[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const page: JobPage = await this.#store.jobs.list({ status, limit: 7, ...(cursor ? { cursor } : {}) });
      found.push(...page.jobs);
      ({ cursor } = page);
    }
    return found;
  }

  /** Lists, counts and what we know of runs tell the same story. */
  async #agrees(): Promise<void> {
    const jobs = await this.#all();
    for (const { id, status } of jobs)
      assert.equal(status === "processing", this.#running.has(id), `${id} is ${status}`);
    for (const status of JOB_STATUSES) {
      const expected = jobs.filter((job) => job.status === status).map(({ id }) => id);
      assert.deepEqual((await this.#all(status)).map(({ id }) => id).sort(), expected.sort(), status);
    }
    for (const { name, counts } of await this.#store.queues.list()) {
      for (const status of JOB_STATUSES) {
        const expected = jobs.filter((job) => job.queue === name && job.status === status).length;
        assert.equal(counts[status], expected, `${status} in ${name}`);
      }
    }
  }

  async #everythingIsReachable(): Promise<void> {
    await this.#store.queues.setPaused("a", false);
    await this.#store.queues.setPaused("b", false);
    this.#clock.setWall(this.#clock.now() + 1_000);
    while ((await this.#claim(5, ["t", "u", "v"])) > 0);
    for (const { id, status } of await this.#all()) {
      assert.ok(status !== "queued" && status !== "scheduled", `${id} is ${status} and nobody can get it`);
    }
    await this.#agrees();
  }
}

for (let seed = 1; seed <= 40; seed++) {
  test(`history ${seed} keeps the embedded store consistent`, () => new History(seed).run());
}
