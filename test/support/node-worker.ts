/** A worker with everything that it needs, on the memory store and a clock that moves only when told. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { SubmitRequest } from "../../src/jobs/submit/submitter.ts";
import { MemoryChannels } from "../../src/channels/memory/channels.ts";
import type { Message } from "../../src/channels/channels.ts";
import type { JobId, NodeName } from "../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../src/core/jobs/job.ts";
import type { Budgets, Job, JobStatus } from "../../src/core/jobs/job.ts";
import { DEFAULT_RETRY } from "../../src/core/jobs/retry.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import { jobService, type Jobs } from "../../src/jobs/job-service.ts";
import { JobWatchers } from "../../src/jobs/follow/followers.ts";
import { Submitter } from "../../src/jobs/submit/submitter.ts";
import type { Handler, Task, TaskContext } from "../../src/jobs/tasks/task.ts";
import { TaskRegistry } from "../../src/jobs/tasks/task-registry.ts";
import type { RunJobs } from "../../src/jobs/run/run-jobs.ts";
import { ThreadPool } from "../../src/jobs/run/thread-pool.ts";
import { Worker } from "../../src/jobs/run/worker.ts";
import { storePorts } from "../../src/jobs/run/worker-ports.ts";
import type { WorkerSettings } from "../../src/jobs/run/worker.ts";
import { fakePlatform, type FakePlatform } from "./fake-platform.ts";
import type { ManualClock } from "./manual-clock.ts";
import { seededRandom } from "./seeded-random.ts";
import { memoryStore } from "./memory-store.ts";
import type { FakeSlots } from "./node-slots.ts";
import type { Abandoned, JobStore, Outcome, Recovered, Settlement, Store } from "../../src/store/store.ts";
import { atEnd } from "./node-cleanup.ts";
import { FailingJobs } from "./node-failing-jobs.ts";
import { recordingLog } from "./node-log.ts";

export const NODE = "node-a" as NodeName;

export interface WorkerWorldOptions {
  readonly tasks: readonly (Task | [name: string, run: Handler])[];
  readonly settings?: Partial<WorkerSettings>;
  readonly budgets?: Partial<Budgets>;
  readonly maxAttempts?: number;
  /** Of an earlier world, to start again on what it left. */
  readonly store?: Store;
  readonly clock?: ManualClock;
  readonly slots?: FakeSlots;
  /** A second life of the node has another. */
  readonly incarnation?: string;
}

export const GRACE_MS = 5_000;
const SETTINGS: WorkerSettings = {
  concurrency: 10,
  queues: null,
  exceptQueues: new Set(),
  leaseMs: 10_000,
  renewMs: 2_000,
  prefetchMax: 500,
  abortGraceMs: GRACE_MS,
};

export class WorkerWorld {
  readonly platform: FakePlatform;
  readonly store: Store;
  /** Between the worker and the store: fails what it is told to. */
  readonly faults: FailingJobs;
  readonly worker: Worker;
  readonly jobs: Jobs;
  /** Wakes no worker. */
  readonly submitter: Submitter;
  readonly watchers: JobWatchers;
  readonly log = recordingLog();
  /** Every settlement that reached the store, in order. */
  readonly settled: Settlement[] = [];
  readonly changes: { id: JobId; status: JobStatus | null }[] = [];
  readonly #channels;
  readonly #slots: FakeSlots | undefined;
  readonly #incarnation: string;
  #term: Term | null = null;

  constructor(options: WorkerWorldOptions) {
    const { incarnation = "1" } = options;
    this.#incarnation = incarnation;
    this.#slots = options.slots;
    const platform = (this.platform = fakePlatform({
      clock: options.clock,
      log: this.log,
      identity: { name: NODE, incarnation },
      random: seededRandom(Number(incarnation)), // another life makes other ids
    }));
    const { clock } = platform;
    this.store = options.store ?? memoryStore({ clock });
    this.faults = new FailingJobs(() => this.store.jobs);
    const store = { jobs: this.#recorded(this.faults.jobs) };
    const author = () => ({ node: NODE, ownerEpoch: 1, leaderEpoch: 1 });
    const tasks = new TaskRegistry(
      options.tasks.map((task) => (Array.isArray(task) ? { name: task[0], run: task[1] } : task)),
    );
    const channels = (this.#channels = new MemoryChannels({ clock, log: this.log }));
    const settings = { ...SETTINGS, ...options.settings };
    const budgets = { ...DEFAULT_BUDGETS, ...options.budgets };
    this.watchers = new JobWatchers(clock);
    const { slots } = options;
    const ports = storePorts(platform, { store, ...settings });
    const worker = (this.worker = new Worker(platform, {
      ...ports,
      claims: { ...ports.claims, ...(slots && { slots }) },
      tasks,
      threads: new ThreadPool(platform, settings.abortGraceMs),
      channels: { subscribe: channels.subscribe.bind(channels), privateChannel: slots ? "own" : null },
      author,
      rules: { budgets, retry: DEFAULT_RETRY, chance: () => 0.5 }, // in the middle there is no jitter
      settings,
      jobs: this.#runJobs(),
      onChange: (id, status) => {
        this.changes.push({ id, status });
        this.watchers.changed(id);
      },
    }));
    const submitting = {
      store: this.store,
      tasks,
      author,
      defaults: { maxAttempts: options.maxAttempts ?? 3, timeoutMs: null },
      wakes: () => false,
    };
    const submitter = new Submitter(platform, { ...submitting, onStored: () => worker.wake() });
    this.submitter = new Submitter(platform, { ...submitting, onStored: () => {} });
    this.jobs = jobService({
      store: this.store,
      submitter,
      tasks,
      channels,
      watchers: this.watchers,
      worker: {
        draining: false,
        concurrency: settings.concurrency,
        budgets: { ...DEFAULT_BUDGETS, ...options.budgets },
        queues: settings.queues,
      },
      others: () => [],
      agents: async () => [],
      onReady: () => worker.wake(),
      onChange: (id) => this.watchers.changed(id),
    });
  }

  #runJobs(): RunJobs {
    const { clock } = this.platform;
    const jobs = (): Jobs => this.jobs;
    return {
      clock,
      get jobs() {
        return jobs();
      },
      submit: async (request, trace) => (await jobs().submit([request], { trace }))[0]!,
    };
  }

  get clock(): ManualClock {
    return this.platform.clock;
  }

  get events(): FakePlatform["events"] {
    return this.platform.events;
  }

  /** A started world that is stopped with the test. */
  static async open(t: TestContext, options: WorkerWorldOptions): Promise<WorkerWorld> {
    const world = new WorkerWorld(options);
    await world.startAround();
    await world.worker.start();
    atEnd(t, async () => {
      await world.stop();
      await world.store.close();
    });
    return world;
  }

  /** Everything but the worker itself. */
  async startAround(): Promise<void> {
    await this.#channels.start();
  }

  publish(topic: string, ...messages: readonly Message[]): Promise<void> {
    return this.#channels.publish(topic, messages);
  }

  async stop(): Promise<void> {
    this.faults.heal();
    let stopped = false;
    const stopping = this.worker.stop().finally(() => (stopped = true));
    while (!stopped) await this.advance(1_000);
    await stopping;
    await this.#channels.stop();
  }

  async submit(task: string, fields: Partial<SubmitRequest> = {}): Promise<JobId> {
    const [answer] = await this.jobs.submit([{ task, ...fields }]);
    return answer!.id;
  }

  async running(task: string, fields: Partial<SubmitRequest> = {}): Promise<JobId> {
    const id = await this.submit(task, fields);
    await this.until(id, "processing");
    return id;
  }

  async submitMany(count: number, task: string, fields: Partial<SubmitRequest> = {}): Promise<JobId[]> {
    const answers = await this.jobs.submit(Array.from({ length: count }, () => ({ task, ...fields })));
    return answers.map(({ id }) => id);
  }

  async job(id: JobId): Promise<Job> {
    const job = await this.store.jobs.get(id);
    assert.ok(job, `job ${id} is gone`);
    return job;
  }

  async statuses(ids: readonly JobId[]): Promise<JobStatus[]> {
    return Promise.all(ids.map(async (id) => (await this.job(id)).status));
  }

  async result(id: JobId): Promise<unknown> {
    return JSON.parse((await this.store.jobs.result(id)) ?? "undefined");
  }

  async logs(id: JobId): Promise<string[]> {
    return (await this.store.jobs.logs(id, 0, 20_000)).map((line) => line.message);
  }

  outcomes(id: JobId): Outcome["kind"][] {
    return this.settled.filter(({ run }) => run.id === id).map(({ outcome }) => outcome.kind);
  }

  /** Lets all that can happen without time happen. */
  rest(): Promise<void> {
    return this.advance(0);
  }

  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** The job once it has this status; everything but time moves on meanwhile. */
  async until(id: JobId, status: JobStatus): Promise<Job> {
    for (let turn = 0; turn < 100; turn++) {
      const job = await this.job(id);
      if (job.status === status) return job;
      await this.rest();
    }
    assert.fail(`job ${id} is ${(await this.job(id)).status} and does not become ${status}`);
  }

  /** Takes every lease of this life of the node away, as a leader does that takes it for dead. */
  takeLeases(): Promise<readonly Recovered[]> {
    return this.#recover({ by: "incarnations", incarnations: [this.#incarnation] });
  }

  reap(): Promise<readonly Recovered[]> {
    return this.#recover({ by: "expiry" });
  }

  async #recover(which: Abandoned): Promise<readonly Recovered[]> {
    this.#term ??= await this.store.terms.grant("scheduler", { name: NODE, incarnation: "leader" });
    return this.store.jobs.recover(which, DEFAULT_BUDGETS, this.#term);
  }

  #recorded(jobs: JobStore): JobStore {
    const record: JobStore["record"] = async (batch) => {
      const recorded = await jobs.record(batch);
      this.settled.push(...batch.settlements);
      for (const { run } of batch.settlements) this.#slots?.forget(run);
      return recorded;
    };
    return new Proxy(jobs, {
      get: (target, name) => (name === "record" ? record : Reflect.get(target, name)),
    });
  }
}

/** A handler that a test holds in its hands: it runs until it is let go, and tells what its signal said. */
export class HeldRuns {
  readonly started: TaskContext[] = [];
  readonly aborts: unknown[] = [];
  readonly #ends: ((end: () => unknown) => void)[] = [];

  /** Ends only when it is told to, whatever its signal says. */
  readonly stubborn: Handler = (_payload, context) => {
    this.started.push(context);
    context.signal.addEventListener("abort", () => this.aborts.push(context.signal.reason));
    return new Promise<() => unknown>((resolve) => this.#ends.push(resolve)).then((end) => end());
  };

  /** Rejects with its signal's reason. */
  readonly polite: Handler = (payload, context) =>
    Promise.race([
      this.stubborn(payload, context),
      new Promise((_resolve, reject) =>
        context.signal.addEventListener("abort", () => reject(context.signal.reason as Error)),
      ),
    ]);

  /** Ends the n-th run that was started. */
  finish(index: number, result: unknown = null): void {
    this.#ends[index]!(() => result);
  }

  fail(index: number, error: unknown): void {
    this.#ends[index]!(() => {
      throw error;
    });
  }

  get reasons(): (string | undefined)[] {
    return this.aborts.map((reason) => (reason as { why?: string }).why);
  }
}

/** A task whose runs are so short that a worker claims ahead. */
export const QUICK: WorkerWorldOptions["tasks"] = [["quick", () => {}]];

/** A world with a task whose runs end when the test says so: at an abort too (`polite`), or not (`stubborn`). */
export async function heldWorld(
  t: TestContext,
  task: string,
  how: "polite" | "stubborn",
  { tasks = [], ...options }: Partial<WorkerWorldOptions> = {},
): Promise<{ readonly held: HeldRuns; readonly world: WorkerWorld }> {
  const held = new HeldRuns();
  return { held, world: await WorkerWorld.open(t, { tasks: [[task, held[how]], ...tasks], ...options }) };
}

/** One run of this handler, to its end, in a world that knows only the task `work`. */
export async function ran(
  t: TestContext,
  run: Handler,
  status: JobStatus = "completed",
  { submitted = {}, ...options }: Partial<WorkerWorldOptions> & { submitted?: Partial<SubmitRequest> } = {},
): Promise<{ readonly world: WorkerWorld; readonly id: JobId; readonly job: Job }> {
  const world = await WorkerWorld.open(t, { tasks: [["work", run]], ...options });
  const id = await world.submit("work", submitted);
  return { world, id, job: await world.until(id, status) };
}
