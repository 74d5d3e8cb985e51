/**
 * Random histories against a slow and plain model of the store: what it says of every answer must hold, and after
 * every step nothing is lost, counted twice, or under a lower epoch than before.
 */

import assert from "node:assert/strict";
import * as fc from "../../support/fast-check.ts";
import type { JobId } from "../../../src/core/ids.ts";
import {
  DEFAULT_BUDGETS,
  isFinal,
  JOB_STATUSES,
  type JobStatus,
  type Spent,
} from "../../../src/core/jobs/job.ts";
import type { Abandoned, ClaimedJob, Outcome, Recovered, Run, Verdict } from "../../../src/store/store.ts";
import { AUTHOR, lease, type Promises, settleRuns, type StoreWorld } from "../../support/store-world.ts";
import { type Command, COMMANDS } from "./model-commands.ts";

const LEASE_MS = 100;
/** Small, so that a short history reaches it. */
const BUDGETS = { ...DEFAULT_BUDGETS, crashesMax: 2 };
const GRACE_MS = 20;

interface Expected {
  readonly id: JobId;
  readonly arrival: number;
  readonly priority: number;
  readonly queue: string;
  readonly task: string;
  readonly timeoutMs: number | null;
  readonly maxAttempts: number;
  status: JobStatus;
  dueAt: number;
  startedAt: number;
  epoch: number;
  failures: number;
  interruptions: number;
  crashes: number;
  wish: boolean;
  lease: string | null;
}

/** How long a lease lasts. A claim that gives nothing may prolong it, as its keeper likes: in between either will do. */
interface Span {
  readonly surelyUntil: number;
  readonly perhapsUntil: number;
}

const UNSPENT = { failures: 0, interruptions: 0, crashes: 0 };
const LAPSED: Span = { surelyUntil: 0, perhapsUntil: 0 };

class Model {
  readonly #world: StoreWorld;
  readonly #jobs = new Map<JobId, Expected>();
  readonly #keys = new Map<string, JobId>();
  readonly #paused = new Set<string>();
  readonly #leases = new Map<string, Span>();
  readonly #ids: JobId[] = [];
  readonly #runs: ClaimedJob[] = [];
  #arrivals = 0;

  constructor(world: StoreWorld) {
    this.#world = world;
  }

  async step(command: Command): Promise<void> {
    const { store, clock } = this.#world;
    switch (command.do) {
      case "submit":
        return this.#submit(command);
      case "claim":
        return this.#claim(command);
      case "settle":
        return this.#settle(command);
      case "cancel":
        return this.#cancel(command.which);
      case "retry":
        return this.#retry(command.which);
      case "remove":
        return this.#remove(command.which);
      case "report":
        return this.#report(command.which);
      case "pause":
        if (command.paused) this.#paused.add(command.queue);
        else this.#paused.delete(command.queue);
        return store.queues.setPaused(command.queue, command.paused);
      case "renew":
        return this.#renew(command.lease);
      case "recover":
        return this.#recover({ by: "expiry" });
      case "crash":
        return this.#recover({ by: "incarnations", incarnations: command.lives });
      case "off":
        return this.#recover({ by: "holders", names: ["agent:x"] });
      case "overdue":
        return this.#overdue();
      case "advance":
        await clock.advance(command.ms);
        for (const job of this.#jobs.values()) {
          if (job.status === "scheduled" && job.dueAt <= clock.now()) job.status = "queued";
        }
    }
  }

  /** What must be true at any time. */
  async check(): Promise<void> {
    const { store } = this.#world;
    const listed = (await store.jobs.list({ limit: 1_000 })).jobs;
    const newestFirst = [...this.#jobs.values()].sort((a, b) => b.arrival - a.arrival);
    assert.deepEqual(
      listed.map((job) => [job.id, job.status, job.jobEpoch, ...spentOf(job), job.runAt]),
      newestFirst.map((job) => [job.id, job.status, job.epoch, ...spentOf(job), job.dueAt]),
    );
    const results = await Promise.all(listed.map(({ id }) => store.jobs.result(id)));
    for (const [at, { id, status, attempts, finishedAt }] of listed.entries()) {
      assert.equal(finishedAt !== null, isFinal(status), `${id} is ${status} and finished at ${finishedAt}`);
      assert.ok(attempts >= 0);
      assert.equal(results[at] !== null, status === "completed");
    }
    const totals = Object.fromEntries(JOB_STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>;
    for (const { counts } of await store.queues.list()) {
      for (const status of JOB_STATUSES) totals[status] += counts[status];
    }
    for (const status of JOB_STATUSES) {
      assert.equal(
        totals[status],
        newestFirst.filter((job) => job.status === status).length,
        `count of ${status}`,
      );
    }
  }

  async #submit(command: Command & { do: "submit" }): Promise<void> {
    const { count, priority, queue, task, delayMs, timeoutMs, maxAttempts, key } = command;
    const fields = { priority, queue, task, delayMs, timeoutMs, maxAttempts, idempotencyKey: key };
    const wanted = this.#world.newBatch(key === null ? count : 1, fields);
    const answers = await this.#world.store.jobs.submit(wanted, AUTHOR);
    const there = key === null ? undefined : this.#jobs.get(this.#keys.get(key)!);
    if (there) return assert.deepEqual(answers, [{ id: there.id, status: there.status, existed: true }]);

    const status = delayMs > 0 ? "scheduled" : "queued";
    const dueAt = this.#world.clock.now() + delayMs;
    const fresh = { startedAt: 0, epoch: 0, ...UNSPENT, wish: false, lease: null };
    for (const [at, { id }] of wanted.entries()) {
      assert.deepEqual(answers[at], { id, status, existed: false });
      const job = {
        id,
        arrival: this.#arrivals++,
        priority,
        queue,
        task,
        timeoutMs,
        maxAttempts,
        status,
        dueAt,
      };
      this.#jobs.set(id, { ...job, ...fresh } as Expected);
      this.#ids.push(id);
      if (key !== null) this.#keys.set(key, id);
    }
  }

  async #claim(command: Command & { do: "claim" }): Promise<void> {
    const tasks = new Set(command.tasks);
    const line = [...this.#jobs.values()]
      .filter((job) => job.status === "queued" && tasks.has(job.task) && !this.#paused.has(job.queue))
      .filter((job) => job.queue !== command.except)
      .filter((job) => command.queue === null || job.queue === command.queue)
      .sort((a, b) => b.priority - a.priority || a.dueAt - b.dueAt || a.arrival - b.arrival);
    const fresh = line.filter((job) => job.crashes === 0).map((job) => job.id);
    const suspects = line.filter((job) => job.crashes > 0).map((job) => job.id);

    const now = this.#world.clock.now();
    const { jobs, held } = await this.#world.store.jobs.claim(
      this.#world.request({
        tasks,
        limit: command.limit,
        queues: command.queue === null ? null : new Set([command.queue]),
        exceptQueues: new Set(command.except === null ? [] : [command.except]),
        suspect: command.suspect,
        lease: lease(command.lease),
        leaseMs: LEASE_MS,
        opens: command.opens,
      }),
    );
    const mayOpen = command.opens && this.#held(command.lease).length === 0;
    if (this.#surelyHeld(command.lease) || mayOpen) assert.equal(held, true, "the lease is ours");
    else if (this.#surelyLapsed(command.lease)) assert.equal(held, false, "the lease is not ours");
    if (!held) return assert.deepEqual(jobs, []);

    const given = jobs.map((job) => job.id);
    const suspected = given.filter((id) => suspects.includes(id));
    const plain = given.filter((id) => !suspects.includes(id));
    assert.deepEqual(plain, fresh.slice(0, plain.length), "not in the order of the line");
    assert.deepEqual(suspected, suspects.slice(0, suspected.length));
    assert.ok(suspected.length <= (command.suspect ? 1 : 0), "more suspects than allowed");
    const available = fresh.length + (command.suspect ? Math.min(suspects.length, 1) : 0);
    assert.equal(given.length, Math.min(command.limit, available));

    if (given.length > 0) this.#hold(command.lease, now + LEASE_MS);
    else this.#mayHold(command.lease, now + LEASE_MS);
    for (const run of jobs) {
      const job = this.#jobs.get(run.id)!;
      assert.ok(run.jobEpoch > job.epoch, "the epoch did not grow");
      Object.assign(job, {
        status: "processing",
        epoch: run.jobEpoch,
        lease: command.lease,
        startedAt: now,
      });
      if (!command.lost) this.#runs.push(run);
    }
  }

  async #settle({ which, outcomes, foreign }: Command & { do: "settle" }): Promise<void> {
    const ended = outcomes.slice(0, this.#runs.length).map((outcome, at) => {
      const { ref, ...known } = pick(this.#runs, which + at)!;
      return { run: foreign ? known : { ...known, ref }, outcome };
    });
    const verdicts = await settleRuns(this.#world.store, ended);
    for (const [at, { run, outcome }] of ended.entries()) {
      const expected = this.#verdict(run);
      assert.equal(verdicts[at], expected);
      if (expected === "accepted") await this.#ended(this.#jobs.get(run.id)!, outcome);
    }
  }

  #verdict(run: Run): Verdict {
    const job = this.#jobs.get(run.id);
    if (!job) return "missing";
    if (job.epoch !== run.jobEpoch || job.lease !== run.lease) return "stale";
    return job.status === "processing" ? "accepted" : "replayed";
  }

  async #report(which: number): Promise<void> {
    const run = pick(this.#runs, which);
    if (!run) return;
    const expected = this.#verdict(run);
    const said = await this.#world.log(run, `of epoch ${run.jobEpoch}`);
    assert.equal(said, expected === "replayed" ? "stale" : expected);
  }

  async #ended(job: Expected, outcome: Outcome): Promise<void> {
    const now = this.#world.clock.now();
    switch (outcome.kind) {
      case "retry":
        job.status = outcome.delayMs > 0 ? "scheduled" : "queued";
        job.failures++;
        if (!job.wish) job.dueAt = now + outcome.delayMs;
        break;
      case "interrupted":
      case "released":
        job.status = "queued";
        job.interruptions += outcome.kind === "interrupted" ? 1 : 0;
        break;
      case "completed":
      case "failed":
      case "cancelled":
        job.status = outcome.kind;
        job.failures += outcome.kind === "failed" ? 1 : 0;
    }
    if (!job.wish || isFinal(job.status)) return;
    job.status = "cancelled";
    // Whether a run that nobody wants to see again is charged is up to the keeper.
    const { failures, interruptions } = await this.#world.job(job.id);
    Object.assign(job, { failures, interruptions });
  }

  async #cancel(which: number): Promise<void> {
    const job = this.#pick(which);
    if (!job) return;
    const answer = await this.#world.store.jobs.cancel(job.id, null);
    if (isFinal(job.status)) assert.deepEqual(answer, { outcome: "finished", status: job.status });
    else if (job.status === "processing") {
      assert.deepEqual(answer, { outcome: "requested" });
      job.wish = true;
    } else {
      assert.deepEqual(answer, { outcome: "cancelled" });
      job.status = "cancelled";
    }
  }

  async #retry(which: number): Promise<void> {
    const job = this.#pick(which);
    if (!job) return;
    const answer = await this.#world.store.jobs.retry(job.id);
    if (job.status !== "failed" && job.status !== "cancelled") return assert.equal(answer, job.status);
    assert.equal(answer, "retried");
    const { jobEpoch } = await this.#world.job(job.id);
    assert.ok(jobEpoch > job.epoch, "the epoch did not grow");
    const dueAt = this.#world.clock.now();
    Object.assign(job, {
      status: "queued",
      epoch: jobEpoch,
      ...UNSPENT,
      wish: false,
      lease: null,
      dueAt,
    });
  }

  async #remove(which: number): Promise<void> {
    const job = this.#pick(which);
    if (!job) return;
    const answer = await this.#world.store.jobs.remove(job.id);
    assert.equal(answer, job.status === "processing" ? "running" : "removed");
    if (answer === "removed") this.#jobs.delete(job.id);
  }

  async #renew(name: string): Promise<void> {
    const under = this.#held(name);
    const { held, cancelled } = await this.#world.store.jobs.renew(lease(name), LEASE_MS);
    if (this.#surelyHeld(name)) assert.equal(held, true, "the lease is ours");
    if (this.#surelyLapsed(name)) assert.equal(held, false, "the lease is not ours");
    if (!held) return void this.#leases.set(name, LAPSED);
    const until = this.#world.clock.now() + LEASE_MS;
    this.#leases.set(name, { surelyUntil: until, perhapsUntil: until });
    assert.deepEqual(
      cancelled.map((run) => run.id).sort(),
      under
        .filter((job) => job.wish)
        .map((job) => job.id)
        .sort(),
    );
  }

  async #recover(which: Abandoned & { by: "expiry" | "incarnations" | "holders" }): Promise<void> {
    const names = [...this.#leases.keys()];
    const dead = names.filter((name) => {
      const [holder, life] = name.split("/") as [string, string];
      if (which.by === "holders") return which.names.includes(holder);
      return which.by === "incarnations" ? which.incarnations.includes(life) : this.#surelyLapsed(name);
    });
    const doubtful = names.filter(
      (name) => which.by === "expiry" && !this.#surelyLapsed(name) && !this.#surelyHeld(name),
    );
    const found = await this.#world.recover(which, BUDGETS);
    const ids = new Set(found.map((job) => job.id));
    for (const name of doubtful) if (this.#held(name).some((job) => ids.has(job.id))) dead.push(name);
    const lost = dead.flatMap((name) => this.#held(name));
    assert.deepEqual([...ids].sort(), lost.map((job) => job.id).sort());
    for (const recovered of found) {
      const job = this.#jobs.get(recovered.id)!;
      if (which.by === "holders") job.interruptions++;
      else job.crashes++;
      const failed = which.by !== "holders" && job.crashes >= BUDGETS.crashesMax;
      await this.#taken(job, recovered, failed ? "failed" : "queued");
    }
    for (const name of dead) this.#leases.delete(name);
  }

  async #overdue(): Promise<void> {
    const now = this.#world.clock.now();
    const late = [...this.#jobs.values()].filter(
      ({ status, startedAt, timeoutMs }) =>
        status === "processing" && timeoutMs !== null && startedAt + timeoutMs + GRACE_MS <= now,
    );
    const found = await this.#world.recover({ by: "overdue", graceMs: GRACE_MS }, BUDGETS);
    assert.deepEqual(found.map((job) => job.id).sort(), late.map((job) => job.id).sort());
    for (const recovered of found) {
      const job = this.#jobs.get(recovered.id)!;
      job.failures++;
      await this.#taken(job, recovered, job.failures >= job.maxAttempts ? "failed" : "queued");
      if (job.status === "queued") job.dueAt = now;
    }
  }

  /** A job was taken from its claimant. */
  async #taken(job: Expected, recovered: Recovered, status: "queued" | "failed"): Promise<void> {
    const { failures, interruptions, crashes } = job;
    const expected = { status: job.wish ? "cancelled" : status, failures, interruptions, crashes };
    assert.deepEqual({ ...recovered, id: null, worker: null }, { ...expected, id: null, worker: null });
    const { jobEpoch } = await this.#world.job(job.id);
    assert.ok(jobEpoch > job.epoch, "the epoch did not grow");
    Object.assign(job, { status: expected.status, epoch: jobEpoch, lease: null });
  }

  #held(name: string): Expected[] {
    return [...this.#jobs.values()].filter((job) => job.status === "processing" && job.lease === name);
  }

  #hold(name: string, until: number): void {
    const { surelyUntil, perhapsUntil } = this.#leases.get(name) ?? LAPSED;
    this.#leases.set(name, {
      surelyUntil: Math.max(surelyUntil, until),
      perhapsUntil: Math.max(perhapsUntil, until),
    });
  }

  #mayHold(name: string, until: number): void {
    const { surelyUntil, perhapsUntil } = this.#leases.get(name) ?? LAPSED;
    this.#leases.set(name, { surelyUntil, perhapsUntil: Math.max(perhapsUntil, until) });
  }

  #surelyHeld(name: string): boolean {
    return (this.#leases.get(name) ?? LAPSED).surelyUntil > this.#world.clock.now();
  }

  #surelyLapsed(name: string): boolean {
    return (this.#leases.get(name) ?? LAPSED).perhapsUntil <= this.#world.clock.now();
  }

  #pick(which: number): Expected | undefined {
    const id = pick(this.#ids, which);
    return id && this.#jobs.get(id);
  }
}

function spentOf({ failures, interruptions, crashes }: Omit<Spent, "maxAttempts">): number[] {
  return [failures, interruptions, crashes];
}

function pick<T>(from: readonly T[], which: number): T | undefined {
  return from.at(-1 - (which % Math.max(from.length, 1)));
}

/** `shrink` looks for the smallest history that fails, which takes its time. Without it the store is a broken one, and its mistake must be found. */
export async function randomHistories(
  world: StoreWorld,
  options: { shrink: boolean; runs?: number },
): Promise<void> {
  const history = fc.asyncProperty(COMMANDS, (commands) =>
    world.another(async (own) => {
      const model = new Model(own);
      for (const command of commands) {
        await model.step(command);
        await model.check();
      }
    }),
  );
  await fc.assert(history, {
    numRuns: options.runs ?? 60,
    ...(!options.shrink && { seed: fc.FIXED_SEED }),
    endOnFailure: !options.shrink,
    // A failure that does not come again would be shrunk until the test is cut off, and nobody would hear of it.
    interruptAfterTimeLimit: 120_000,
    markInterruptAsFailure: true,
  });
}

export const modelPromises: Promises = {
  "no history of commands breaks the ledger": (world) => randomHistories(world, { shrink: true }),
};
