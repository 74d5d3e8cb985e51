import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Dispatch, WorkerHeartbeat } from "../../../../src/channels/messages.ts";
import { queues, topics } from "../../../../src/channels/channel-names.ts";
import type { LeaseId } from "../../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../../src/core/jobs/job.ts";
import { DispatchInbox } from "../../../../src/push/dispatch/dispatch-inbox.ts";
import type { WorkerClaim } from "../../../../src/jobs/run/worker-ports.ts";
import type { Claimed } from "../../../../src/store/store.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { claimRequest, dispatchRequest } from "../../../support/job-builders.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { DispatchWorld, LEADER } from "./world.ts";

const CHANNEL = queues.dispatch("default");

const LEASE = { worker: "worker", lease: "worker/1/0" as LeaseId };
const CLAIM: WorkerClaim = { ...claimRequest({ ...LEASE, limit: 10 }), running: 0, pace: 0 };

class InboxWorld {
  readonly heartbeats: WorkerHeartbeat[] = [];
  readonly #world: DispatchWorld;
  readonly inbox: DispatchInbox;
  readonly #channels;
  woken = 0;
  pace = 0;

  private constructor(world: DispatchWorld, channels: ReturnType<DispatchWorld["channels"]>) {
    this.#world = world;
    this.#channels = channels;
    this.inbox = new DispatchInbox(fakePlatform({ clock: world.clock, log: world.log, name: "worker" }), {
      ownership: world.ownership,
      store: world.store,
      channels,
      budgets: DEFAULT_BUDGETS,
      tasks: { names: () => new Set(["work"]) },
      settings: {
        concurrency: 10,
        queues: new Set(["default"]),
        exceptQueues: new Set(),
        heartbeatMs: 1_000,
      },
      signal: { raise: () => this.woken++ },
    });
  }

  static async open(t: TestContext): Promise<InboxWorld> {
    const world = await DispatchWorld.open(t);
    const here = new InboxWorld(world, world.channels());
    here.#channels.subscribe(topics.workerHeartbeat, ({ body }) => {
      here.heartbeats.push(body as WorkerHeartbeat);
    });
    await here.inbox.start();
    atEnd(t, () => here.inbox.stop());
    return here;
  }

  /** Marked and sent in messages of so many, as a leader does it. */
  async dispatch(jobs: number, each: number, how: { crashes?: number; copies?: number } = {}): Promise<void> {
    const { crashes = 0, copies = 1 } = how;
    await this.#world.submit(jobs);
    const term = await this.#world.store.terms.grant("scheduler", { name: LEADER, incarnation: "1" });
    const { assignments } = await this.#world.ownership.dispatch(dispatchRequest({ size: each }), term);
    const messages = assignments.map(({ id, jobs: theirs }) => {
      const body: Dispatch = {
        assignment: id,
        leaderEpoch: term.epoch,
        jobs: theirs.map((job) => ({ ...job, crashes })),
      };
      return Array.from({ length: copies }, (_, copy) => ({ key: `${id}/${copy}`, body }));
    });
    await this.#channels.send(CHANNEL, messages.flat());
  }

  eventually(what: string, look: () => unknown): Promise<void> {
    return this.#world.eventually(what, look);
  }

  pass(ms: number): Promise<void> {
    return this.#world.pass(ms);
  }

  claim(limit: number, suspect = true): Promise<Claimed> {
    return this.inbox.claim({ ...CLAIM, limit, suspect, pace: this.pace });
  }

  /** What others find in the dispatch queue. */
  others(): Dispatch[] {
    const found: Dispatch[] = [];
    this.#channels.consume(CHANNEL, async (batch) => {
      found.push(...batch.map(({ body }) => body as Dispatch));
    });
    return found;
  }
}

const count = (dispatches: readonly Dispatch[]): number =>
  dispatches.reduce((sum, { jobs }) => sum + jobs.length, 0);

describe("the inbox of a worker", () => {
  it("listens only while the worker would take more, and takes no more than that", async (t) => {
    const world = await InboxWorld.open(t);
    await world.dispatch(5, 1);
    await world.pass(20);
    assert.equal(world.woken, 0, "nothing was claimed yet, so nothing is wanted");
    assert.deepEqual((await world.claim(2)).jobs, []);
    await world.eventually("messages come", () => world.woken > 0);
    const { jobs, held } = await world.claim(2);
    assert.deepEqual([jobs.length, held], [2, true]);
    assert.ok(jobs.every(({ assignment, lease }) => assignment !== undefined && lease === "worker/1/0"));
    const others = world.others();
    await world.eventually("the others find the rest", () => count(others) === 3);
    assert.ok(
      others.every(({ passed }) => passed === undefined),
      "it was never in the wrong hands",
    );
  });

  it("splits a message of which only a part fits", async (t) => {
    const world = await InboxWorld.open(t);
    await world.claim(3);
    await world.dispatch(10, 10);
    await world.eventually("messages come", () => world.woken > 0);
    const others = world.others();
    assert.equal((await world.claim(3)).jobs.length, 3);
    await world.eventually("others find the rest", () => count(others) === 7);
  });

  it("tells what it wants and has taken", async (t) => {
    const world = await InboxWorld.open(t);
    await world.claim(8);
    await world.eventually("its demand is sent", () => world.heartbeats.some(({ wants }) => wants === 8));
    await world.dispatch(3, 1);
    await world.eventually("messages come", () => world.woken > 0);
    assert.equal((await world.claim(8)).jobs.length, 3);
    await world.eventually("what is left of it is sent", () => world.heartbeats.at(-1)?.wants === 5);
    assert.deepEqual(world.heartbeats.at(-1)!.taken, { [CHANNEL]: 3 });
    assert.equal(world.heartbeats.at(-1)!.running, 3);
  });

  it("holds some more in hand while jobs are short, and sends them back when they turn out long", async (t) => {
    const world = await InboxWorld.open(t);
    world.pace = 50;
    await world.claim(10);
    await world.dispatch(40, 4);
    await world.eventually("messages come", () => world.woken > 0);
    assert.equal((await world.claim(10)).jobs.length, 10);
    const others = world.others();
    await world.pass(20);
    assert.equal(count(others), 0);
    // The worker claims no more, because its slots are busy.
    await world.eventually("they go back", () => count(others) === 30);
  });

  it("sends back what it has in hand when it is closed", async (t) => {
    const world = await InboxWorld.open(t);
    await world.claim(10);
    await world.dispatch(6, 2);
    await world.eventually("messages come", () => world.woken > 0);
    await world.inbox.close();
    const others = world.others();
    await world.eventually("others find them", () => count(others) === 6);
    assert.ok(others.every(({ passed }) => passed === 1));
    await world.eventually("the leader hears of it", () => world.heartbeats.at(-1)!.status === "draining");
    assert.equal(world.heartbeats.at(-1)!.wants, 0);
    assert.deepEqual((await world.claim(10)).jobs, []);
  });

  it("gives out one suspect at a time, and none beside another", async (t) => {
    const world = await InboxWorld.open(t);
    await world.claim(10);
    await world.dispatch(3, 1, { crashes: DEFAULT_BUDGETS.crashesMax - 1 });
    await world.eventually("messages come", () => world.woken > 0);
    assert.equal((await world.claim(10, true)).jobs.length, 1);
    assert.equal((await world.claim(10, false)).jobs.length, 0);
  });

  it("keeps what it has when the lease was lost, and claims it under the next", async (t) => {
    const world = await InboxWorld.open(t);
    await world.claim(10);
    await world.dispatch(2, 1);
    await world.eventually("messages come", () => world.woken > 0);
    const stale = await world.inbox.claim({ ...CLAIM, lease: "worker/1/lost" as LeaseId, opens: false });
    assert.deepEqual([stale.held, stale.jobs.length], [false, 0]);
    assert.equal((await world.claim(10)).jobs.length, 2);
  });
});
