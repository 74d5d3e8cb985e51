/**
 * One store with a clock that moves only when told, and the short cuts that the promises of the store contract are
 * written in. A promise is a sentence with a function that throws when a keeper does not keep it; as plain values they
 * run under node:test on every keeper, and without it on the deliberately broken ones.
 */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JobId, LeaseId, NodeName } from "../../src/core/ids.ts";
import { jobId, uuidAt } from "../../src/core/ids.ts";
import type { Budgets, Job, JobError, JobStatus } from "../../src/core/jobs/job.ts";
import { DEFAULT_BUDGETS } from "../../src/core/jobs/job.ts";
import type { ScheduleDefinition } from "../../src/core/schedules/schedule.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { claimRequest, newJob, scheduleDefinition } from "./job-builders.ts";
import { ManualClock } from "./manual-clock.ts";
import { seededRandom } from "./seeded-random.ts";
import type {
  Abandoned,
  Author,
  ClaimedJob,
  ClaimRequest,
  JobStore,
  LogLine,
  NewJob,
  Outcome,
  Recovered,
  Report,
  Run,
  Settlement,
  Store,
  Verdict,
} from "../../src/store/store.ts";

/** Gives a started store. The same `dir` again must find what was there, for keepers that reopen. */
export type OpenStore = (options: { clock: Clock; dir: string }) => Promise<Store>;

export type Promises = Readonly<Record<string, (world: StoreWorld) => Promise<void>>>;

export const HOUR_MS = 3_600_000;
export const LEASE_MS = 30_000;
export const NODE = "node-a" as NodeName;
/** Numbers that no term of a test reaches, so that they are not mistaken for a fence's. */
export const AUTHOR: Author = { node: NODE, ownerEpoch: 501, leaderEpoch: 701 };
export const ERROR: JobError = { code: "ERROR", message: "it broke" };
export const STOPPED_ERROR: JobError = { code: "CANCELLED", message: "stopped by its caller" };

export const lease = (text: string): LeaseId => text as LeaseId;
export const node = (text: string): NodeName => text as NodeName;

type Jobs = { readonly jobs: Pick<JobStore, "record"> };

export async function settleRuns(
  { jobs }: Jobs,
  settlements: readonly Settlement[],
  fence?: Term,
): Promise<readonly Verdict[]> {
  return (await jobs.record({ reports: [], settlements }, fence)).settled;
}

export async function reportRuns(
  { jobs }: Jobs,
  reports: readonly Report[],
  fence?: Term,
): Promise<readonly Verdict[]> {
  return (await jobs.record({ reports, settlements: [] }, fence)).reported;
}

export class StoreWorld {
  readonly clock: ManualClock;
  readonly #open: OpenStore;
  readonly #dir: string;
  readonly #random = seededRandom(1);
  #store: Store;
  #term: Term | null = null;

  private constructor(open: OpenStore, dir: string, clock: ManualClock, store: Store) {
    this.#open = open;
    this.#dir = dir;
    this.clock = clock;
    this.#store = store;
  }

  /** Runs a proof in a world of its own and cleans up behind it, also when it throws. */
  static async with(open: OpenStore, proof: (world: StoreWorld) => Promise<void>): Promise<void> {
    const dir = await mkdtemp(join(tmpdir(), "baton-store-"));
    try {
      const clock = new ManualClock();
      const world = new StoreWorld(open, dir, clock, await open({ clock, dir }));
      try {
        await proof(world);
      } finally {
        await world.store.close();
      }
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  }

  get store(): Store {
    return this.#store;
  }

  /** Closes the store and opens what is in its directory. */
  async reopen(): Promise<void> {
    await this.#store.close();
    this.#store = await this.#open({ clock: this.clock, dir: this.#dir });
  }

  /** A world beside this one, on a store of its own. */
  another(proof: (world: StoreWorld) => Promise<void>): Promise<void> {
    return StoreWorld.with(this.#open, proof);
  }

  // ------------------------------------------------------------ jobs

  newId(): JobId {
    return jobId(NODE, this.#random.timedUuid());
  }

  newJob(fields: Partial<NewJob> = {}): NewJob {
    return newJob({ id: this.newId(), maxAttempts: 5, ...fields });
  }

  /** With the ids of one batch, which a store may keep as a range. */
  newBatch(count: number, fields: Partial<NewJob> = {}): NewJob[] {
    const first = this.#random.timedUuid();
    return Array.from({ length: count }, (_, at) =>
      this.newJob({ id: jobId(NODE, uuidAt(first, at)), ...fields }),
    );
  }

  async submit(fields: Partial<NewJob> = {}): Promise<JobId> {
    const [answer] = await this.store.jobs.submit([this.newJob(fields)], AUTHOR);
    return answer!.id;
  }

  async submitMany(count: number, fields: Partial<NewJob> = {}): Promise<JobId[]> {
    const jobs = this.newBatch(count, fields);
    await this.store.jobs.submit(jobs, AUTHOR);
    return jobs.map((job) => job.id);
  }

  request(fields: Partial<ClaimRequest> = {}): ClaimRequest {
    const own = { author: AUTHOR, lease: lease("node-a/1"), leaseMs: LEASE_MS, suspect: false };
    return claimRequest({ ...own, ...fields });
  }

  async claim(fields: Partial<ClaimRequest> = {}): Promise<readonly ClaimedJob[]> {
    return (await this.store.jobs.claim(this.request(fields))).jobs;
  }

  async claimIds(fields: Partial<ClaimRequest> = {}): Promise<JobId[]> {
    return (await this.claim(fields)).map((job) => job.id);
  }

  async nextDueInMs(): Promise<number | null> {
    return (await this.store.jobs.claim(this.request())).nextDueInMs;
  }

  /** A job that runs, with its run. */
  async running(fields: Partial<NewJob> = {}, claim: Partial<ClaimRequest> = {}): Promise<ClaimedJob> {
    const id = await this.submit(fields);
    const claimed = await this.claim({ suspect: true, ...claim });
    const job = claimed.find((candidate) => candidate.id === id);
    assert.ok(job, `job ${id} was submitted and is due, but a claim did not give it out`);
    return job;
  }

  /** Claims one job that is known to be in line. */
  async again(id: JobId, claim: Partial<ClaimRequest> = {}): Promise<ClaimedJob> {
    const claimed = await this.claim({ suspect: true, ...claim });
    const job = claimed.find((candidate) => candidate.id === id);
    assert.ok(job, `job ${id} should be in line again, but a claim did not give it out`);
    return job;
  }

  async settle(run: Run, outcome: Outcome): Promise<Verdict> {
    const verdicts = await settleRuns(this.store, [{ run, outcome }]);
    assert.equal(verdicts.length, 1);
    return verdicts[0]!;
  }

  async finish(run: Run, result = "null"): Promise<void> {
    assert.equal(await this.settle(run, { kind: "completed", result }), "accepted");
  }

  async fail(run: Run): Promise<void> {
    assert.equal(await this.settle(run, { kind: "failed", error: ERROR, spends: "failure" }), "accepted");
  }

  async log(run: Run, ...messages: string[]): Promise<Verdict> {
    const logs = messages.map((message) => ({ at: this.clock.now(), level: "info" as const, message }));
    return (await reportRuns(this.store, [{ run, logs, progress: null }]))[0]!;
  }

  async progress(run: Run, value: number, message: string | null = null): Promise<Verdict> {
    return (await reportRuns(this.store, [{ run, logs: [], progress: { value, message } }]))[0]!;
  }

  logs(id: JobId, after = 0, limit = 1_000): Promise<readonly LogLine[]> {
    return this.store.jobs.logs(id, after, limit);
  }

  /** The job as stored; it must be there. */
  async job(id: JobId): Promise<Job> {
    const job = await this.store.jobs.get(id);
    assert.ok(job, `job ${id} is gone`);
    return job;
  }

  async status(id: JobId): Promise<JobStatus> {
    return (await this.job(id)).status;
  }

  async counts(queue = "default"): Promise<Partial<Record<JobStatus, number>>> {
    const info = (await this.store.queues.list()).find((candidate) => candidate.name === queue);
    return Object.fromEntries(Object.entries(info?.counts ?? {}).filter(([, count]) => count !== 0));
  }

  // ------------------------------------------------------------ leader

  /** The newest term of the scheduler; granted at the first call. */
  async term(): Promise<Term> {
    this.#term ??= await this.nextTerm();
    return this.#term;
  }

  async nextTerm(incarnation = "1"): Promise<Term> {
    this.#term = await this.store.terms.grant("scheduler", { name: NODE, incarnation });
    return this.#term;
  }

  async recover(
    which: Abandoned = { by: "expiry" },
    budgets: Budgets = DEFAULT_BUDGETS,
  ): Promise<readonly Recovered[]> {
    return this.store.jobs.recover(which, budgets, await this.term());
  }

  /** The lives that the promises are written with have ended. */
  crash(budgets: Budgets = DEFAULT_BUDGETS): Promise<readonly Recovered[]> {
    return this.recover({ by: "incarnations", incarnations: ["1", "2"] }, budgets);
  }

  /** Removes jobs that have ended so long ago. */
  async purgeJobs(limit = 10, ageMs = 1): Promise<number> {
    const retention = { completedMs: ageMs, failedMs: ageMs, cancelledMs: ageMs };
    return this.store.purge({ of: "jobs", retention, limit }, await this.term());
  }

  definition(fields: Partial<ScheduleDefinition> = {}): ScheduleDefinition {
    return scheduleDefinition(fields);
  }
}
