/** Several nodes in one process, on one store: a leader that dispatches, workers that accept, and an owner that writes. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { Channels, Message } from "../../../../src/channels/channels.ts";
import type { Receipt } from "../../../../src/channels/messages.ts";
import { MemoryChannels } from "../../../../src/channels/memory/channels.ts";
import { topics } from "../../../../src/channels/channel-names.ts";
import type { JobId, LeaseId, NodeName } from "../../../../src/core/ids.ts";
import { DEFAULT_BUDGETS, type Job } from "../../../../src/core/jobs/job.ts";
import type { NodeIdentity } from "../../../../src/core/node.ts";
import { DEFAULT_RETRY } from "../../../../src/core/jobs/retry.ts";
import { Dispatcher } from "../../../../src/push/dispatch/dispatcher.ts";
import { DispatchInbox } from "../../../../src/push/dispatch/dispatch-inbox.ts";
import { Owner } from "../../../../src/push/ownership/owner.ts";
import { StatusSink } from "../../../../src/push/dispatch/status-sink.ts";
import type { Handler } from "../../../../src/jobs/tasks/task.ts";
import { TaskRegistry } from "../../../../src/jobs/tasks/task-registry.ts";
import { ThreadPool } from "../../../../src/jobs/run/thread-pool.ts";
import { Worker, type WorkerSettings } from "../../../../src/jobs/run/worker.ts";
import { storePorts } from "../../../../src/jobs/run/worker-ports.ts";
import type { Clock } from "../../../../src/platform/clock.ts";
import type { Platform } from "../../../../src/platform/platform.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { claimRequest, newJob } from "../../../support/job-builders.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { memoryStore } from "../../../support/memory-store.ts";
import type { NewJob } from "../../../../src/store/store.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { SETTINGS as OWNER } from "../ownership/owner-node.ts";
import { recordingLog } from "../../../support/node-log.ts";

export const TIMEOUT_MS = 300;
export const RECEIPT_MS = 300;
export const HEARTBEAT_MS = 50;
const UNLED_MS = 1_500;
const STEP_MS = 5;
export const LEADER = "leader" as NodeName;

const SETTINGS: WorkerSettings = {
  concurrency: 10,
  queues: null,
  exceptQueues: new Set(),
  leaseMs: 10_000,
  renewMs: 2_000,
  prefetchMax: 500,
  abortGraceMs: 5_000,
};

/** What becomes of messages that are sent: passed on, silently lost, or refused. */
export type Fate = "pass" | "drop" | "reject";

export class FaultyChannels implements Channels {
  readonly kind = "faulty";
  readonly shared = true;
  readonly notifiesOnSubmit = false;
  readonly limits = [];
  readonly inner: Channels;
  fate: (queue: string, messages: readonly Message[]) => Fate = () => "pass";

  constructor(inner: Channels) {
    this.inner = inner;
  }

  async send(queue: string, messages: readonly Message[]): Promise<void> {
    const fate = this.fate(queue, messages);
    if (fate === "reject") throw new Error("the channels are away");
    if (fate === "pass") await this.inner.send(queue, messages);
  }

  consume: Channels["consume"] = (...args) => this.inner.consume(...args);
  publish: Channels["publish"] = (...args) => this.inner.publish(...args);
  subscribe: Channels["subscribe"] = (...args) => this.inner.subscribe(...args);
  start = (): Promise<void> => this.inner.start();
  stop = (): Promise<void> => this.inner.stop();
  [Symbol.asyncDispose] = (): Promise<void> => this.inner.stop();
}

export interface NodeOptions {
  readonly tasks: Readonly<Record<string, Handler>>;
  readonly settings?: Partial<WorkerSettings>;
  /** How long it waits for the receipt of a result before it writes the result itself. */
  readonly receiptMs?: number;
}

export interface WorkerNode {
  readonly worker: Worker;
  readonly inbox: DispatchInbox;
  readonly sink: StatusSink;
  readonly channels: FaultyChannels;
}

export class DispatchWorld {
  /** Moved by the world while it waits for something. */
  readonly clock = new ManualClock();
  readonly store = memoryStore({ clock: this.clock });
  readonly log = recordingLog();
  readonly #channels = new MemoryChannels({ clock: this.clock });
  readonly #t: TestContext;
  #incarnations = 0;

  private constructor(t: TestContext) {
    this.#t = t;
  }

  static async open(t: TestContext): Promise<DispatchWorld> {
    const world = new DispatchWorld(t);
    await world.#channels.start();
    atEnd(t, async () => {
      await world.#channels.stop();
      await world.store.close();
    });
    return world;
  }

  get ownership() {
    return this.store.ownership;
  }

  /** Jobs that are marked and not accepted, by queue. */
  outstanding(): ReadonlyMap<string, number> {
    return this.ownership.outstanding();
  }

  channels(): FaultyChannels {
    return new FaultyChannels(this.#channels);
  }

  async node(name: string, { tasks, settings, receiptMs = RECEIPT_MS }: NodeOptions): Promise<WorkerNode> {
    const { store } = this;
    const channels = this.channels();
    const platform = this.#platform(name);
    const { identity } = platform;
    const registry = new TaskRegistry(Object.entries(tasks).map(([task, run]) => ({ name: task, run })));
    const all = { ...SETTINGS, ...settings };
    const inbox = new DispatchInbox(platform, {
      channels,
      ownership: this.ownership,
      store,
      budgets: DEFAULT_BUDGETS,
      tasks: registry,
      settings: { ...all, heartbeatMs: HEARTBEAT_MS, unledMs: UNLED_MS },
      signal: { raise: () => worker.wake() },
    });
    const sink = new StatusSink(platform, { channels, store, receiptMs });
    const worker: Worker = new Worker(platform, {
      channels,
      ...storePorts(platform, { ...all, store }),
      claims: inbox,
      results: sink,
      tasks: registry,
      threads: new ThreadPool(platform, 1_000),
      author: () => ({ node: identity.name, ownerEpoch: 1, leaderEpoch: 1 }),
      rules: { budgets: DEFAULT_BUDGETS, retry: DEFAULT_RETRY, chance: () => 0.5 },
      settings: all,
      onChange: () => {},
    });
    await sink.start();
    await inbox.start();
    await worker.start();
    const stop = async (): Promise<void> => {
      await worker.stop();
      await inbox.stop();
      await sink.stop();
    };
    atEnd(this.#t, () => this.during(stop()));
    return { worker, inbox, sink, channels };
  }

  async lead(
    timeoutMs = TIMEOUT_MS,
  ): Promise<{ dispatcher: Dispatcher; channels: FaultyChannels; end(): Promise<void> }> {
    const channels = this.channels();
    const term = await this.store.terms.grant("scheduler", this.#identity(LEADER));
    const dispatcher = new Dispatcher(this.#platform(LEADER), {
      ownership: this.ownership,
      channels,
      budgets: DEFAULT_BUDGETS,
      isGone: () => false,
      timeoutMs,
      heartbeatMs: HEARTBEAT_MS,
    });
    const ending = new AbortController();
    const duty = dispatcher.duty(term, ending.signal);
    const end = async (): Promise<void> => {
      ending.abort();
      await duty;
    };
    atEnd(this.#t, end);
    return { dispatcher, channels, end };
  }

  /** Takes every assignment and writes what is reported. Tells how many results it has confirmed, if it may. */
  async owner(): Promise<{ written: number; confirms: boolean }> {
    const told = { written: 0, confirms: true };
    const channels = this.channels();
    channels.publish = async (topic, messages) => {
      if (topic.startsWith("job.receipt.")) {
        if (!told.confirms) return;
        for (const { body } of messages) told.written += (body as Receipt).settled.length;
      }
      await channels.inner.publish(topic, messages);
    };
    const owner = new Owner(this.#platform("owner"), {
      ownership: this.ownership,
      channels,
      membership: { nodes: () => [] },
      leadership: { held: () => null },
      dispatcher: { channels: () => [] },
      settings: OWNER,
    });
    await owner.start();
    atEnd(this.#t, () => this.during(owner.stop()));
    return told;
  }

  async submit(count: number, fields: Partial<NewJob> = {}): Promise<JobId[]> {
    const jobs = Array.from({ length: count }, () => newJob(fields));
    await this.store.jobs.submit(jobs, { node: LEADER, ownerEpoch: 1, leaderEpoch: 1 });
    await this.#channels.publish(topics.jobsReady, [{ key: "", body: null }]);
    return jobs.map(({ id }) => id);
  }

  /** By pull, whatever is there. */
  async claim(lease: string): Promise<void> {
    await this.store.jobs.claim(claimRequest({ lease: lease as LeaseId }));
  }

  async job(id: JobId): Promise<Job> {
    const job = await this.store.jobs.get(id);
    assert.ok(job, `job ${id} is gone`);
    return job;
  }

  async until(ids: readonly JobId[], status: Job["status"]): Promise<void> {
    const left = new Set(ids);
    await this.eventually(`${ids.length} jobs are ${status}`, async () => {
      for (const id of left) {
        if ((await this.job(id)).status !== status) return false;
        left.delete(id);
      }
      return true;
    });
  }

  /** Lets everybody work until it is so, and time pass only when they have nothing else to do. */
  async eventually(what: string, look: () => unknown): Promise<void> {
    const { clock } = this;
    for (const until = clock.monotonic() + 30_000; clock.monotonic() < until; await clock.advance(STEP_MS)) {
      for (let turn = 0; turn < 20; turn++) {
        if (await look()) return;
        await clock.turn();
      }
    }
    assert.fail(`waited 30 s for ${what}`);
  }

  /** For what may wait for time to pass. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    let over = false;
    const ending = work.finally(() => (over = true));
    ending.catch(() => {});
    await this.eventually("it to end", () => over);
    return ending;
  }

  pass(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  #platform(name: string): Platform {
    return fakePlatform({ clock: this.clock, log: this.log, identity: this.#identity(name) });
  }

  #identity(name: string): NodeIdentity {
    return { name: name as NodeName, incarnation: `life${++this.#incarnations}` };
  }
}

export class CountedRuns {
  readonly runs = new Map<string, number>();
  readonly order: string[] = [];
  readonly #clock: Clock;

  constructor({ clock }: Pick<DispatchWorld, "clock">) {
    this.#clock = clock;
  }

  readonly quick: Handler = (_payload, { job }) => {
    this.#count(job.id);
  };

  slow(ms: number): Handler {
    return async (_payload, { job, signal }) => {
      this.#count(job.id);
      await this.#clock.sleep(ms, signal);
      signal.throwIfAborted();
    };
  }

  assertOnce(ids: readonly JobId[]): void {
    const wrong = ids.filter((id) => this.runs.get(id) !== 1);
    assert.deepEqual(
      wrong.map((id) => [id, this.runs.get(id) ?? 0]),
      [],
    );
  }

  #count(id: string): void {
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
    this.order.push(id);
  }
}

export async function dispatching(t: TestContext, { timeoutMs = TIMEOUT_MS } = {}) {
  const world = await DispatchWorld.open(t);
  const runs = new CountedRuns(world);
  const leader = await world.lead(timeoutMs);
  return { world, runs, leader, owner: await world.owner() };
}
