import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Caller } from "../../../src/controller/lease-waiters.ts";
import type { Issued } from "../../../src/controller/lease-waiters.ts";
import { LeaseService } from "../../../src/controller/lease-service.ts";
import { LeasedRuns } from "../../../src/controller/leased-runs.ts";
import { termGuard } from "../../../src/controller/term-guard.ts";
import type { JobId, NodeName } from "../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { claimedJob } from "../../support/job-builders.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { fakePlatform } from "../../support/fake-platform.ts";
import type { Claimed, ClaimedJob, ClaimRequest, Settlement } from "../../../src/store/store.ts";

const TERM: Term = { role: "scheduler", leader: "a" as NodeName, incarnation: "one", epoch: 3 };

class Someone implements Caller {
  gone = false;
  #leave: (() => void) | null = null;

  onGone(leave: () => void): () => void {
    this.#leave = leave;
    return () => (this.#leave = null);
  }

  leave(): void {
    this.gone = true;
    this.#leave?.();
  }
}

/** A line of waiting jobs in place of a store, which counts how often it is asked. */
class World {
  readonly clock = new ManualClock();
  readonly jobs: { task: string; crashes: number }[] = [];
  readonly claims: ClaimRequest[] = [];
  readonly released: Settlement[] = [];
  readonly desk: LeaseService;
  readonly book = new LeasedRuns(DEFAULT_BUDGETS);
  leading = true;
  nextDueInMs: number | null = null;
  hold: Promise<void> | null = null;
  trouble: Error | null = null;
  #count = 0;

  constructor() {
    const identity = { name: TERM.leader, incarnation: TERM.incarnation };
    const platform = fakePlatform({ clock: this.clock, identity });
    platform.state.forming = null;
    const leadership = { current: () => TERM, held: () => (this.leading ? TERM : null) };
    const guard = termGuard(platform, leadership, { nodes: () => [] });
    this.desk = new LeaseService(platform, {
      store: {
        jobs: {
          claim: (request) => this.#claim(request),
          record: async ({ settlements }) => {
            this.released.push(...settlements);
            return { reported: [], settled: settlements.map(() => "accepted" as const) };
          },
        },
      },
      guard,
      leasedRuns: this.book,
      leaseMs: 30_000,
      onLeased: () => {},
    });
  }

  add(count: number, task = "work", crashes = 0): void {
    for (let n = 0; n < count; n++) this.jobs.push({ task, crashes });
  }

  ask(
    agent: string,
    fields: { tasks?: string[]; limit?: number; timeoutMs?: number; caller?: Caller; request?: string } = {},
  ): Promise<Issued | null> {
    const { tasks = ["work"], limit = 1, timeoutMs = 25_000, caller = new Someone(), request } = fields;
    return this.desk.ask(
      { agent, requestId: request, tasks: new Set(tasks), queues: null, limit, timeoutMs },
      caller,
    );
  }

  async #claim(request: ClaimRequest): Promise<Claimed> {
    this.claims.push(request);
    if (this.hold) await this.hold;
    if (this.trouble) throw this.trouble;
    const jobs: ClaimedJob[] = [];
    for (let at = 0; at < this.jobs.length && jobs.length < request.limit;) {
      const { task, crashes } = this.jobs[at]!;
      const suspect = crashes >= 2;
      if (!request.tasks.has(task) || (suspect && !request.suspect)) at++;
      else {
        this.jobs.splice(at, 1);
        jobs.push(this.#job(task, crashes, request));
      }
    }
    return { jobs, held: true, nextDueInMs: this.nextDueInMs };
  }

  #job(task: string, crashes: number, { lease }: ClaimRequest): ClaimedJob {
    return claimedJob({ id: `a-${++this.#count}` as JobId, lease, task, crashes, leaderEpoch: 3 });
  }
}

describe("the desk at which agents wait", () => {
  it("gives out at once what is there, to one agent as much as it asked for", async () => {
    const world = new World();
    world.add(5);
    const issued = await world.ask("ada", { limit: 3 });
    assert.equal(issued?.jobs.length, 3);
    assert.match(issued.lease, /^agent:ada\/[0-9a-f-]{36}$/);
    assert.deepEqual(world.claims[0]!.fence, TERM);
    assert.equal(world.claims[0]!.author.leaderEpoch, 3);
  });

  it("answers nothing when the wait is over, and at once to whoever does not wait", async () => {
    const world = new World();
    assert.equal(await world.ask("ada", { timeoutMs: 0 }), null);
    const waiting = world.ask("ada", { timeoutMs: 700 });
    let ended = false;
    void waiting.then(() => (ended = true));
    await world.clock.advance(690);
    assert.equal(ended, false);
    await world.clock.advance(20);
    assert.equal(await waiting, null);
  });

  it("ends waits together that would end about the same time, and none long before", async () => {
    const world = new World();
    const endedAt: number[] = [];
    for (let n = 0; n < 100; n++) {
      void world.ask(`agent-${n}`, { timeoutMs: 40_000 }).then(() => endedAt.push(world.clock.monotonic()));
      await world.clock.advance(100);
    }
    const startedAt = world.clock.monotonic() - 10_000;
    await world.clock.advance(41_000);
    assert.equal(endedAt.length, 100);
    const moments = new Set(endedAt);
    assert.ok(moments.size <= 6, `${moments.size} moments for what ended within 10 s`);
    endedAt.forEach((at, n) => {
      const waitedMs = at - startedAt - n * 100;
      assert.ok(waitedMs >= 38_000 - 1 && waitedMs <= 40_000 + 1, `agent ${n} waited ${waitedMs} ms`);
    });
  });

  it("asks the store for 500 idle agents no oftener than for one", async () => {
    const world = new World();
    const waits = Array.from({ length: 500 }, (_, n) => world.ask(`agent-${n}`));
    await world.clock.advance(20_000);
    assert.ok(world.claims.length <= 25, `${world.claims.length} looks in 20 s`);
    assert.ok(world.claims.length >= 19, "the slow tick looks every second");
    assert.equal(new Set(world.claims.map(({ lease }) => lease)).size, 1, "each look under another lease");
    assert.ok(world.clock.waiting <= 1, `${world.clock.waiting} timers`);
    await world.clock.advance(6_000);
    assert.deepEqual(new Set(await Promise.all(waits)), new Set([null]));
  });

  it("wakes whoever has waited longest first, and only as many as there is work for", async () => {
    const world = new World();
    const served: string[] = [];
    for (const agent of ["one", "two", "three"])
      void world.ask(agent).then((issued) => issued && served.push(agent));
    await world.clock.advance(10);
    world.add(2);
    world.desk.wake([{ task: "work" }]);
    await world.clock.advance(0);
    assert.deepEqual(served, ["one", "two"]);
    world.add(1);
    world.desk.wake([{ task: "work" }]);
    await world.clock.advance(0);
    assert.deepEqual(served, ["one", "two", "three"]);
  });

  it("lets go of requests whose answers nobody waits for, and gives back what a look under way finds for them", async () => {
    const world = new World();
    const waits = [
      world.ask("ada", { request: "r1" }),
      world.ask("ada", { request: "r2" }),
      world.ask("bob", { request: "r2" }),
    ];
    const other = world.ask("ada");
    await world.clock.advance(10);
    const release = Promise.withResolvers<void>();
    world.hold = release.promise;
    world.add(2);
    world.desk.wake([{ task: "work" }]);
    await world.clock.advance(0);
    assert.match(world.claims.at(-1)!.lease, /^agent:ada\/r1\/[0-9a-f-]{36}$/);
    world.desk.forsake("ada", ["r1", "r2", "r3"]);
    assert.equal(await waits[1], null);
    world.hold = null;
    release.resolve();
    assert.equal(await waits[0], null);
    const found = world.released.map(({ run, outcome }) => [run.lease.split("/")[1], outcome.kind]);
    assert.deepEqual(found, [["r1", "released"]]);
    assert.ok(await waits[2], "another agent's request of that name is another one");
    assert.equal(world.book.size, 1, "what was given back is nobody's run");
    world.add(1);
    world.desk.wake([{ task: "work" }]);
    await world.clock.advance(0);
    assert.ok(await other);
  });

  it("does not look for tasks that nobody here can run", async () => {
    const world = new World();
    void world.ask("ada");
    await world.clock.advance(10);
    const looks = world.claims.length;
    for (let n = 0; n < 100; n++) world.desk.wake([{ task: "other" }]);
    await world.clock.advance(10);
    assert.equal(world.claims.length, looks);
  });

  it("looks less and less often when told of work that is never for its agents, but soon when it may be", async () => {
    const world = new World();
    const asked = world.ask("ada");
    await world.clock.advance(10);
    const before = world.claims.length;
    for (let n = 0; n < 900; n++) {
      world.desk.wake();
      await world.clock.advance(1);
    }
    assert.ok(world.claims.length - before <= 12, `${world.claims.length - before} looks in 900 ms`);
    world.add(1);
    world.desk.wake([{ task: "work" }]);
    await world.clock.advance(0);
    assert.ok(await asked);
  });

  it("looks when a scheduled job is due", async () => {
    const world = new World();
    world.nextDueInMs = 400;
    let issued: Issued | null = null;
    void world.ask("ada").then((found) => (issued = found));
    await world.clock.advance(10);
    world.nextDueInMs = null;
    world.add(1);
    await world.clock.advance(380);
    assert.equal(issued, null);
    await world.clock.advance(20);
    assert.notEqual(issued, null);
  });

  it("finds what no hint told of within a second", async () => {
    const world = new World();
    const asked = world.ask("ada");
    await world.clock.advance(10);
    world.add(1);
    await world.clock.advance(1_000);
    assert.ok(await asked);
  });

  it("gives back what was claimed for an agent that left meanwhile, and gives it to the next", async () => {
    const world = new World();
    const held = Promise.withResolvers<void>();
    world.hold = held.promise;
    world.add(1);
    const caller = new Someone();
    const first = world.ask("gone", { caller });
    await world.clock.advance(0);
    caller.leave();
    held.resolve();
    world.hold = null;
    assert.equal(await first, null);
    await world.clock.advance(0);
    const found = world.released.map(({ outcome }) => outcome.kind);
    assert.deepEqual(found, ["released"]);
    assert.equal(world.book.size, 0);
  });

  it("claims nothing for an agent that left while it waited", async () => {
    const world = new World();
    const caller = new Someone();
    const first = world.ask("gone", { caller });
    const second = world.ask("here");
    await world.clock.advance(10);
    caller.leave();
    assert.equal(await first, null);
    world.add(1);
    world.desk.wake([{ task: "work" }]);
    await world.clock.advance(0);
    assert.equal((await second)?.jobs.length, 1);
    assert.equal(world.claims.at(-1)!.worker, "here");
  });

  it("sends everybody away as soon as it finds that it does not lead", async () => {
    const world = new World();
    const waits = ["one", "two", "three"].map((agent, n) =>
      world.ask(agent, { tasks: ["work", `w${n % 2}`] }),
    );
    const ends = Promise.allSettled(waits);
    await world.clock.advance(10);
    world.leading = false;
    await world.clock.advance(1_000);
    for (const end of await ends) {
      assert.equal(end.status, "rejected");
      assert.equal((end.reason as { code: string }).code, "NOT_LEADER");
    }
  });

  it("tells one agent that the store is away, and the others wait on", async () => {
    const world = new World();
    world.trouble = new Error("away");
    const first = assert.rejects(world.ask("one"), /away/);
    const second = world.ask("two");
    await first;
    world.trouble = null;
    world.add(1);
    await world.clock.advance(1_100);
    assert.equal((await second)?.jobs.length, 1);
  });

  it("lets an agent have one suspect at a time", async () => {
    const world = new World();
    world.add(1, "work", 2);
    assert.equal((await world.ask("ada"))?.jobs.length, 1);
    world.add(1, "work", 2);
    assert.equal(await world.ask("ada", { timeoutMs: 0 }), null);
    assert.equal((await world.ask("bob", { timeoutMs: 0 }))?.jobs.length, 1);
  });

  it("serves a flood to many agents in several claims at a time, each job once", async () => {
    const world = new World();
    world.add(1_000);
    const waits = Array.from({ length: 20 }, (_, n) =>
      world.ask(`agent-${n}`, { limit: 64, timeoutMs: 1_000 }),
    );
    await world.clock.advance(1_100);
    const issued = await Promise.all(waits);
    const ids = issued.flatMap((each) => each?.jobs.map(({ id }) => id) ?? []);
    assert.equal(ids.length, 1_000);
    assert.equal(new Set(ids).size, 1_000);
  });
});
