/** Every write that carries a term or a run: refused by the store, it ends up in the journal and in the metric, whichever code wrote it. */

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { MemoryChannels } from "../../../src/channels/memory/channels.ts";
import type { WorkerHeartbeat } from "../../../src/channels/messages.ts";
import { topics } from "../../../src/channels/channel-names.ts";
import { metricsDuty } from "../../../src/observe/metrics/metrics-duty.ts";
import { deadNodeRecovery } from "../../../src/jobs/recover/dead-node-recovery.ts";
import { scheduleHandlers } from "../../../src/peers/schedules/schedule-handlers.ts";
import { Controller } from "../../../src/controller/controller.ts";
import { EventFeed } from "../../../src/controller/events/event-feed.ts";
import { termGuard } from "../../../src/controller/term-guard.ts";
import type { Membership } from "../../../src/leadership/coordination.ts";
import { BatonError } from "../../../src/core/errors.ts";
import type { JobId, NodeName } from "../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import {
  describeRefusal,
  LEADER_WRITES,
  staleWriter,
  type LeaderWrite,
  type Refusal,
} from "../../../src/core/leadership/refused-write.ts";
import { DEFAULT_RETRY } from "../../../src/core/jobs/retry.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { Dispatcher } from "../../../src/push/dispatch/dispatcher.ts";
import { StatusSink } from "../../../src/push/dispatch/status-sink.ts";
import { LeaseReaper } from "../../../src/jobs/recover/lease-reaper.ts";
import { retentionDuty } from "../../../src/jobs/retention-duty.ts";
import { scheduleDuty } from "../../../src/jobs/schedules/schedule-duty.ts";
import { Submitter } from "../../../src/jobs/submit/submitter.ts";
import { TaskRegistry } from "../../../src/jobs/tasks/task-registry.ts";
import { recordRuns } from "../../../src/jobs/run/run-writes.ts";
import { Instruments } from "../../../src/observe/metrics/instruments.ts";
import { LeaderMetrics } from "../../../src/observe/metrics/leader-metrics.ts";
import { observeNode } from "../../../src/observe/observe-node.ts";
import { JobEventWriter } from "../../../src/push/ownership/job-event-writer.ts";
import { OrphanJobDetector } from "../../../src/push/ownership/orphan-job-detector.ts";
import { StoreRetry, type HandoffContext } from "../../../src/push/ownership/owner-context.ts";
import { fakePlatform } from "../../support/fake-platform.ts";
import { definition } from "../../support/replica-world.ts";
import { dispatchRequest } from "../../support/job-builders.ts";
import { memoryStore, type MemoryStore } from "../../support/memory-store.ts";
import type { ClaimedJob, Store } from "../../../src/store/store.ts";
import { heldWorld } from "../../support/node-worker.ts";
import { columns } from "../../support/columns.ts";

const NODE = "node-a" as NodeName;
const identity = { name: NODE, incarnation: "1" };
const author = () => ({ node: NODE, ownerEpoch: 1, leaderEpoch: 1 });
const never = new AbortController().signal;
const caller = { gone: false, onGone: () => () => {} };

/** Methods of the store that take a term. A new one fails to compile here until it has a code and a case below. */
type Fenced<Part> = {
  [Method in keyof Part & string]: Part[Method] extends (...given: infer Given) => unknown
    ? [Term] extends [Exclude<Given[number], undefined>]
      ? Method
      : never
    : never;
}[keyof Part & string];
type Parts =
  | "jobs"
  | "queues"
  | "schedules"
  | "scheduleNotes"
  | "samples"
  | "agents"
  | "journal"
  | "ownership";
type FencedMethod = { [P in Parts]: `${P}.${Fenced<NonNullable<Store[P]>>}` }[Parts];

/** A node that leads in a term that is over as soon as another is granted, and does not know it. */
class World {
  readonly platform = fakePlatform({ identity });
  readonly clock = this.platform.clock;
  readonly store = memoryStore({ clock: this.clock });
  readonly channels = new MemoryChannels({ clock: this.clock });
  readonly random = this.platform.random;
  readonly events = this.platform.events;
  readonly refusals: Refusal[] = [];
  readonly instruments = new Instruments();
  readonly budgets = DEFAULT_BUDGETS;
  readonly log = this.platform.log;
  readonly observed;
  readonly reaper;
  readonly controller;
  term!: Term;

  constructor() {
    const { store, clock, channels, events, log, budgets } = this;
    this.events.on("write.refused", (refusal) => this.refusals.push(refusal));
    const leadership = { held: () => this.term, current: () => this.term };
    const ignored = { submitted() {}, finished() {}, fired() {}, changed() {}, recovered() {} };
    const leaders = new LeaderMetrics();
    leaders.describe(this.instruments, () => leadership as never);
    this.observed = observeNode(events, {
      identity,
      version: "1.2.3",
      store,
      membership: { nodes: () => [] },
      clock,
      log,
      traffic: ignored,
      news: ignored,
      metrics: {
        jobs: { ...ignored, submitFailed() {} },
        leaders,
        node: { takenOver() {} },
      },
    });
    const tasks = new TaskRegistry([{ name: "work", run: () => {} }]);
    const submitter = new Submitter(this.platform, {
      store,
      tasks,
      author,
      defaults: { maxAttempts: 3, timeoutMs: null },
      wakes: () => false,
      onStored: () => {},
    });
    this.reaper = new LeaseReaper(this.platform, { store, budgets, intervalMs: 1_000 });
    this.platform.state.forming = null;
    const guard = termGuard(this.platform, leadership, { nodes: () => [] });
    const standing = () => ({ role: "LEADER", epoch: 1, leader: NODE }) as const;
    const feed = new EventFeed(this.platform, { wire: null, leads: () => 1, standing });
    this.controller = new Controller(this.platform, {
      store,
      channels,
      guard,
      feed,
      submitter,
      tasks,
      rules: { budgets, retry: DEFAULT_RETRY, chance: () => 0.5 },
      settings: { leaseMs: 10_000, staleAfterMs: 15_000, forgetAfterMs: 60_000 },
      sharedStore: false,
      onChange: () => {},
      onReady: () => {},
      reaper: this.reaper,
    });
  }

  static async open(t: TestContext): Promise<World> {
    const world = new World();
    const services = [world.channels, ...world.observed.services];
    for (const service of services) await service.start();
    t.after(async () => {
      for (const service of services.toReversed()) await service.stop();
    });
    world.term = await world.store.terms.grant("scheduler", identity);
    return world;
  }

  async supersede(): Promise<void> {
    await this.store.terms.grant("scheduler", { name: "node-b" as NodeName, incarnation: "2" });
  }

  /** The answer of the store, after which another node leads. */
  async lastAnswer<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const value = await answer;
    await this.supersede();
    return value;
  }

  request = { task: "work", payload: {} };
  seen = { name: "ada", capabilities: ["work"] };
  asks = { ...this.seen, limit: 1, timeoutMs: 0 };

  /** A job that an agent has leased in the term that is over by now. */
  async leased() {
    await this.controller.submit([this.request]);
    const lease = (await this.controller.lease(this.asks, caller))!;
    await this.supersede();
    const { id, jobEpoch } = lease.jobs[0]!;
    return { agent: "ada", lease: lease.lease, job: id, jobEpoch, leaderEpoch: lease.term.epoch };
  }

  /** A run whose job has been taken back. */
  async staleRun(): Promise<ClaimedJob> {
    await this.controller.submit([this.request]);
    const run = (await this.controller.lease(this.asks, caller))!.jobs[0]!;
    await this.reaper.recover({ by: "holders", names: [`agent:ada`] }, this.term);
    await this.clock.advance(60_000);
    await this.reaper.recover({ by: "expiry" }, this.term);
    return run;
  }

  async entries() {
    await this.clock.advance(100);
    await this.observed.journal.flush();
    return this.observed.journal.list({ kinds: ["write.refused"], limit: 10 });
  }

  get parts() {
    const { store, clock, channels, random, events, log, reaper } = this;
    return { store, clock, channels, random, events, log, reaper };
  }

  get scheduleHandlers() {
    const { store, events } = this;
    return scheduleHandlers({ identity, events }, { store, accepts: () => true, onReady: () => {} });
  }

  get orphans(): OrphanJobDetector {
    const { platform, store, channels } = this;
    platform.state.forming = null;
    const context = {
      ...platform,
      ownership: store.ownership,
      membership: { nodes: () => [] },
      channels,
      health: { peers: () => [] },
      settings: { orphanCheckMs: 1_000 },
    } as unknown as HandoffContext;
    return new OrphanJobDetector(context, { isOpen: true });
  }
}

const HEARTBEAT: WorkerHeartbeat = {
  node: NODE,
  incarnation: "1",
  status: "active",
  queues: null,
  exceptQueues: [],
  tasks: ["work"],
  running: 0,
  runningMax: 10,
  wants: 10,
  taken: {},
  at: "2026-01-01T00:00:00.000Z",
};

const retention = { completedMs: 0, failedMs: 0, cancelledMs: 0, journalMs: 0 };

type Case = (world: World) => Promise<unknown>;

/** What the real caller of each write does in a term that was over before. */
const AFTER_THE_TERM = {
  "jobs.submit": (world) => world.controller.submit([world.request]),
  "jobs.recover": (world) => world.reaper.duty(world.term, never),
  "jobs.purge": (world) => retentionDuty(world.platform, world.store, retention)(world.term, never),
  "scheduleNotes.write": ({ scheduleHandlers, term }) =>
    scheduleHandlers.note({ term, notes: [], occurrences: [], complete: false, entry: "" }),
  "scheduleNotes.read": ({ scheduleHandlers, term }) => scheduleHandlers.digest({ term, after: null }),
  "scheduleNotes.place": ({ scheduleHandlers, term }) => scheduleHandlers.place({ term, runs: [] }),
  "scheduleNotes.forget": ({ scheduleHandlers, term }) => scheduleHandlers.forget({ term, names: [] }),
  "samples.note": (world) => metricsDuty(world, world.store, () => [])(world.term, never),
  "agents.seen": (world) => world.controller.heartbeat(world.seen),
  "agents.purge": async (world) => {
    const ending = new AbortController();
    const duty = world.controller.duty(world.term, ending.signal);
    await world.clock.advance(10);
    ending.abort();
    return duty;
  },
  "ownership.undispatch": (world) => dispatcher(world, world.store.ownership).duty(world.term, never),
  "ownership.disown": (world) =>
    world.orphans.disown([{ name: "node-c" as NodeName, incarnation: "3" }], world.term),
  "ownership.orphans": (world) => world.orphans.duty(world.term, never),
} satisfies Partial<Record<LeaderWrite, (world: World) => unknown>>;

/** The same, where something has to happen while the term lasts. */
const DURING_THE_TERM = {
  "jobs.claim": async (world) => {
    await world.controller.heartbeat(world.seen);
    await world.supersede();
    return world.controller.lease(world.asks, caller);
  },
  "jobs.record": async (world) =>
    world.controller.results([{ ...(await world.leased()), status: "succeeded" }]),
  "jobs.renew": async (world) => world.controller.renew("ada", (await world.leased()).lease),
  "journal.purge": async (world) => {
    const { store, platform, term } = world;
    const purge: Store["purge"] = (what, fence) =>
      what.of === "jobs" ? world.lastAnswer(store.purge(what, fence)) : store.purge(what, fence);
    return retentionDuty(platform, { purge }, retention)(term, never);
  },
  "schedules.fire": async (world) => {
    const { store, clock, term } = world;
    const timing = { kind: "every", everyMs: 60_000, anchor: 0 } as const;
    await store.schedules.put(
      definition({ name: "often", timing, missed: "skip", missedMax: 1 }),
      clock.now(),
    );
    await world.supersede();
    return scheduleDuty(world.platform, { ...world.parts, author })(term, never);
  },
  "samples.purge": async (world) => {
    const { store, clock, events } = world;
    const samples = {
      note: (sample: string, term: Term) => world.lastAnswer(store.samples.note(sample, term)),
      list: (limit: number) => store.samples.list(limit),
    };
    const written = { queues: store.queues, samples, purge: store.purge };
    return metricsDuty({ clock, events }, written, () => [])(world.term, never);
  },
  "agents.remove": async (world) => {
    await world.controller.heartbeat(world.seen);
    await world.supersede();
    return world.controller.removeAgent("ada");
  },
  "ownership.dispatch": async (world) => {
    const { ownership } = world.store;
    const duty = dispatcher(world, {
      dispatch: (...given) => ownership.dispatch(...given),
      undispatch: (...given) => world.lastAnswer(ownership.undispatch(...given)),
    }).duty(world.term, never);
    duty.catch(() => {});
    await world.clock.advance(10);
    await world.channels.publish(topics.workerHeartbeat, [{ key: "1", body: HEARTBEAT }]);
    await world.clock.advance(10);
    return duty;
  },
  "nodes.dead": async (world) => {
    const findDead = async () => {
      throw new BatonError("STALE_EPOCH", "over", { epoch: 1, newest: 2 });
    };
    const membership = { findDead } as unknown as Membership;
    return deadNodeRecovery(world.platform, membership, world.reaper)(world.term, never);
  },
} satisfies Partial<Record<LeaderWrite, Case>>;

const afterTheTerm = Object.entries<(world: World) => unknown>(AFTER_THE_TERM).map(
  ([write, run]): [string, Case] => [
    write,
    async (world) => {
      await world.supersede();
      return run(world);
    },
  ],
);
const LEADER_CASES = Object.fromEntries([...afterTheTerm, ...Object.entries(DURING_THE_TERM)]) as Readonly<
  Record<LeaderWrite, Case>
>;

function dispatcher(world: World, ownership: Pick<MemoryStore["ownership"], "dispatch" | "undispatch">) {
  const { platform, channels, budgets } = world;
  const times = { timeoutMs: 5_000, heartbeatMs: 1_000 };
  return new Dispatcher(platform, { ownership, channels, budgets, isGone: () => false, ...times });
}

describe("a write of a leader whose term is over", () => {
  it("has a code and a case, whatever part of the store it goes to", () => {
    const complete: [Exclude<FencedMethod, LeaderWrite>] extends [never] ? true : never = true;
    assert.ok(complete);
    assert.deepEqual(Object.keys(LEADER_CASES).sort(), Object.keys(LEADER_WRITES).sort());
  });

  for (const write of Object.keys(LEADER_CASES) as LeaderWrite[]) {
    it(`is in the journal and in the metrics: ${write}`, async (t) => {
      const world = await World.open(t);
      await LEADER_CASES[write](world).catch((error: unknown) => {
        if (!(error instanceof BatonError)) throw error;
        assert.ok(["STALE_EPOCH", "NOT_LEADER"].includes(error.code), error.message);
      });
      assert.deepEqual(columns(world.refusals, "write", "carried"), [[write, 1]]);
      const [entry, ...more] = await world.entries();
      assert.deepEqual(more, []);
      const { carried_epoch, count, what } = entry!.detail;
      assert.deepEqual([entry!.detail["write"], carried_epoch, count], [write, 1, 1]);
      assert.equal(what, `${LEADER_WRITES[write]} by an earlier leader`);
      assert.match(await world.instruments.text(), /baton_stale_writes_total\{what="leader"\} 1/);
    });
  }
});

describe("a write about a run, a lease or an assignment that is another's by now", () => {
  /** The writes that were refused, as the journal and the metrics have them. */
  async function recorded(world: World) {
    const entries = (await world.entries()).toReversed();
    for (const [at, { write, id, job, carried }] of world.refusals.entries()) {
      const { detail } = entries[at]!;
      const what = describeRefusal({ write, ...(id !== undefined && { id }) });
      assert.deepEqual(
        [detail["write"], detail["what"], detail["job_id"], detail["carried_epoch"]],
        [write, what, job, carried],
      );
    }
    assert.equal(entries.length, world.refusals.length);
    const metrics = await world.instruments.text();
    for (const [writer, { length }] of Map.groupBy(world.refusals, ({ write }) => staleWriter(write)))
      assert.match(metrics, new RegExp(`baton_stale_writes_total\\{what="${writer}"\\} ${length}\\b`));
    return world.refusals.map(({ write }) => write);
  }
  const completed = { kind: "completed", result: "1" } as const;
  const report = (run: ClaimedJob) => ({ run, logs: [], progress: { value: 1, message: null } });

  it("of a worker that writes to the store", async (t) => {
    const world = await World.open(t);
    const run = await world.staleRun();
    const batch = { reports: [report(run)], settlements: [{ run, outcome: completed }] };
    assert.deepEqual(await recordRuns(world, batch), { reported: ["stale"], settled: ["stale"] });
    assert.deepEqual(await recorded(world), ["run.report", "run.result"]);
    assert.equal((await world.entries())[0]!.detail["current_epoch"], run.jobEpoch + 1);
  });

  it("of a worker that writes past an owner", async (t) => {
    const world = await World.open(t);
    const run = await world.staleRun();
    const sink = new StatusSink(world.platform, { ...world.parts, receiptMs: 5_000 });
    await sink.start();
    const batch = { reports: [report(run)], settlements: [{ run, outcome: completed }] };
    assert.deepEqual(await sink.record(batch), { reported: ["stale"], settled: ["stale"] });
    await sink.stop();
    assert.deepEqual(await recorded(world), ["run.report", "run.result"]);
  });

  it("of an owner, and of one that does not own the assignment", async (t) => {
    const world = await World.open(t);
    await world.controller.submit([world.request]);
    const { ownership } = world.store;
    const { assignments } = await ownership.dispatch(dispatchRequest({ limit: 1 }), world.term);
    const { id: assignment, jobs } = assignments[0]!;
    const [ownerEpoch] = await ownership.own([{ assignment, ownerEpoch: 0 }], identity);
    const run = { ...jobs[0]!, lease: "node-a/1" as ClaimedJob["lease"], leaderEpoch: 1 };
    const writer = new JobEventWriter({ ...world.platform, ownership, retry: new StoreRetry(world) });
    const told = { assignment, reports: [report(run)], settlements: [{ run, outcome: completed }] };
    const answer = await writer.write({ ...told, ownerEpoch: ownerEpoch! });
    assert.deepEqual(answer, { reported: ["stale"], settled: ["stale"] });
    assert.equal(await writer.write({ ...told, ownerEpoch: ownerEpoch! + 7 }), null);
    assert.deepEqual(await recorded(world), ["run.report", "run.result", "ownership.write"]);
  });

  it("of an agent", async (t) => {
    const world = await World.open(t);
    const { id, jobEpoch, lease } = await world.staleRun();
    const named = { agent: "ada", lease, job: id, jobEpoch, leaderEpoch: world.term.epoch };
    const status = "succeeded";
    await world.controller.results([{ ...named, status }]);
    await assert.rejects(world.controller.report({ ...named, lines: [], progress: null }));
    await assert.rejects(world.controller.renew("ada", lease));
    await world.clock.advance(2_000);
    await world.controller.results([{ ...named, status, leaderEpoch: 0 }]);
    assert.deepEqual(await recorded(world), ["run.result", "run.report", "lease.renew", "agent.result"]);
  });

  it("of a worker that renews its lease", async (t) => {
    const { world } = await heldWorld(t, "held", "stubborn");
    const refused: Refusal[] = [];
    world.events.on("write.refused", (refusal) => refused.push(refusal));
    const id: JobId = await world.submit("held");
    await world.until(id, "processing");
    world.faults.fail("claim");
    const term = await world.store.terms.grant("scheduler", identity);
    await world.store.jobs.recover({ by: "incarnations", incarnations: ["1"] }, DEFAULT_BUDGETS, term);
    await world.advance(5_000);
    assert.deepEqual(columns(refused, "write", "job"), [["lease.renew", null]]);
    assert.match(describeRefusal(refused[0]!), /^the renewal of lease node-a\/1\/\d+$/);
  });
});
