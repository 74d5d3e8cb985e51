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
  type Job,
  JOB_STATUSES,
  type JobStatus,
} from "../../../src/core/jobs/job.ts";
import type {
  Abandoned,
  ClaimedJob,
  NewLogLine,
  Outcome,
  Recovered,
  Run,
  Verdict,
} from "../../../src/store/store.ts";
import {
  AUTHOR,
  lease,
  type Promises,
  reportRuns,
  settleRuns,
  type StoreWorld,
} from "../../support/store-world.ts";
import { columns } from "../../support/columns.ts";
import { IN_HISTORIES } from "./broken-row.ts";
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
  /** Its idempotency key has made another job since. */
  superseded: boolean;
  status: JobStatus;
  dueAt: number;
  startedAt: number;
  epoch: number;
  attempts: number;
  failures: number;
  interruptions: number;
  crashes: number;
  wish: boolean;
  lease: string | null;
  result: string | null;
  progress: number | null;
  /** Of each line its number and the epoch of its run. */
  readonly lines: [seq: number, jobEpoch: number][];
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
  #reports = 0;

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

  /** What must be true at any time: of all jobs as they are listed, and of one of them as it is told alone. */
  async check(step: number): Promise<void> {
    const { store } = this.#world;
    const listed = (await store.jobs.list({ limit: 1_000 })).jobs;
    const newestFirst = [...this.#jobs.values()].sort((a, b) => b.arrival - a.arrival);
    assert.deepEqual(
      listed.map((job) => [job.id, job.status, job.jobEpoch, ...spentOf(job), job.runAt]),
      newestFirst.map((job) => [job.id, job.status, job.epoch, ...spentOf(job), job.dueAt]),
    );
    for (const { id, status, finishedAt, progress } of listed) {
      assert.equal(finishedAt !== null, isFinal(status), `${id} is ${status} and finished at ${finishedAt}`);
      if (status === "processing") assert.equal(progress, this.#jobs.get(id)!.progress);
    }
    const one = listed[step % Math.max(listed.length, 1)];
    if (one) await this.#checkOne(one);
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

  async #checkOne(listed: Job): Promise<void> {
    const { jobs } = this.#world.store;
    assert.deepEqual(await jobs.get(listed.id), listed);
    assert.equal(await jobs.result(listed.id), this.#jobs.get(listed.id)!.result);
  }

  async #submit(command: Command & { do: "submit" }): Promise<void> {
    const { count, priority, queue, task, delayMs, timeoutMs, maxAttempts, key } = command;
    const fields = { priority, queue, task, delayMs, timeoutMs, maxAttempts, idempotencyKey: key };
    const wanted = this.#world.newBatch(key === null ? count : 1, fields);
    const answers = await this.#world.store.jobs.submit(wanted, AUTHOR);
    const name = `${task} ${key}`;
    const there = key === null ? undefined : this.#jobs.get(this.#keys.get(name)!);
    if (there && there.status !== "failed")
      return assert.deepEqual(answers, [{ id: there.id, status: there.status, existed: true }]);
    if (there) there.superseded = true;

    const status = delayMs > 0 ? "scheduled" : "queued";
    const dueAt = this.#world.clock.now() + delayMs;
    const unbegun = {
      superseded: false,
      startedAt: 0,
      epoch: 0,
      attempts: 0,
      ...UNSPENT,
      wish: false,
      lease: null,
    };
    for (const [at, { id }] of wanted.entries()) {
      assert.deepEqual(answers[at], { id, status, existed: false });
      const asked = { id, priority, queue, task, timeoutMs, maxAttempts };
      const job = { ...asked, arrival: this.#arrivals++, status, dueAt } as const;
      this.#jobs.set(id, { ...job, ...unbegun, result: null, progress: null, lines: [] });
      this.#ids.push(id);
      if (key !== null) this.#keys.set(name, id);
    }
  }

  async #claim(command: Command & { do: "claim" }): Promise<void> {
    const tasks = new Set(command.tasks);
    const line = [...this.#jobs.values()]
      .filter((job) => job.status === "queued" && tasks.has(job.task) && !this.#paused.has(job.queue))
      .filter((job) => job.queue !== command.except)
      .filter((job) => command.queues?.includes(job.queue) ?? true)
      .sort((a, b) => b.priority - a.priority || a.dueAt - b.dueAt || a.arrival - b.arrival);
    const fresh = line.filter((job) => job.crashes === 0).map((job) => job.id);
    const suspects = line.filter((job) => job.crashes > 0).map((job) => job.id);

    const now = this.#world.clock.now();
    const { jobs, held } = await this.#world.store.jobs.claim(
      this.#world.request({
        tasks,
        limit: command.limit,
        queues: command.queues && new Set(command.queues),
        exceptQueues: new Set(command.except === null ? [] : [command.except]),
        suspect: command.suspect,
        lease: lease(command.lease),
        leaseMs: LEASE_MS,
        opens: command.opens,
      }),
    );
    const mayOpen = command.opens && this.#held(command.lease).length === 0;
    if (this.#surelyHeld(command.lease) || mayOpen) assert.equal(held, true, "the lease is ours");
    // Who believes to hold nothing and finds nothing may be told anything.
    else if (this.#surelyLapsed(command.lease) && (line.length > 0 || !command.opens))
      assert.equal(held, false, "the lease is not ours");
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
      const { attempts, jobEpoch: epoch } = run;
      assert.equal(attempts, job.attempts + 1);
      const { lease: name } = command;
      Object.assign(job, {
        status: "processing",
        epoch,
        attempts,
        lease: name,
        startedAt: now,
        progress: null,
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
    const value = ++this.#reports / 1_000;
    const logs: NewLogLine[] = which % 2 === 0 ? [] : [{ at: 1, level: "info", message: "a line" }];
    const progress = logs.length === 0 ? { value, message: null } : null;
    const { store } = this.#world;
    const [said] = await reportRuns(store, [{ run, logs, progress }]);
    assert.equal(said, expected === "replayed" ? "stale" : expected);
    const job = this.#jobs.get(run.id);
    if (!job) return;
    if (said === "accepted") {
      job.progress = progress?.value ?? job.progress;
      for (const _ of logs) job.lines.push([job.lines.length + 1, run.jobEpoch]);
    }
    assert.deepEqual(columns(await store.jobs.logs(run.id, 0, 1_000), "seq", "jobEpoch"), job.lines);
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
        if (outcome.kind === "interrupted") job.interruptions++;
        else job.attempts--;
        break;
      case "failed":
        job.status = "failed";
        if (outcome.spends === "failure") job.failures++;
        else job.interruptions++;
        break;
      case "completed":
        job.result = outcome.result;
        job.status = "completed";
        break;
      case "cancelled":
        job.status = "cancelled";
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
    if (job.superseded) return assert.equal(answer, "superseded");
    assert.equal(answer, "retried");
    const { jobEpoch: epoch } = await this.#world.job(job.id);
    assert.ok(epoch > job.epoch, "the epoch did not grow");
    const dueAt = this.#world.clock.now();
    Object.assign(job, { status: "queued", epoch, ...UNSPENT, wish: false, lease: null, dueAt });
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

function spentOf({ attempts, failures, interruptions, crashes }: Expected | Job): number[] {
  return [attempts, failures, interruptions, crashes];
}

function pick<T>(from: readonly T[], which: number): T | undefined {
  return from.at(-1 - (which % Math.max(from.length, 1)));
}

/** `shrink` looks for the smallest history that fails, which takes its time. Without it the store is a broken one, and its mistake must be found. */
export async function randomHistories(
  world: StoreWorld,
  { shrink }: { readonly shrink: boolean },
): Promise<void> {
  const history = fc.asyncProperty(COMMANDS, (commands) =>
    world.another(async (own) => {
      const model = new Model(own);
      for (const [at, command] of commands.entries()) {
        await model.step(command);
        await model.check(at);
      }
    }),
  );
  await fc.assert(history, {
    numRuns: 60,
    ...(!shrink && { seed: fc.FIXED_SEED }),
    endOnFailure: !shrink,
    // A failure that does not come again would be shrunk until the test is cut off, and nobody would hear of it.
    interruptAfterTimeLimit: 120_000,
    markInterruptAsFailure: true,
  });
}

export const modelPromises: Promises = {
  [IN_HISTORIES]: (world) => randomHistories(world, { shrink: true }),
};
