import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Duty, Term } from "../../../src/core/leadership/term.ts";
import { LeaderDuties } from "../../../src/leadership/leader-duties.ts";
import { Feed } from "../../../src/platform/feed.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { column } from "../../support/columns.ts";

const GRACE_MS = 5_000;

const term = (epoch: number): Term => ({
  role: "scheduler",
  leader: "node-a" as NodeName,
  incarnation: "1",
  epoch,
});

const ended = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) =>
    signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true }),
  );

class World {
  readonly clock = new ManualClock();
  readonly feed = new Feed<Term | null>();
  readonly events: string[] = [];
  readonly errors: { fields: Record<string, unknown>; message: string }[] = [];
  readonly duties: LeaderDuties;
  held: Term | null = null;

  constructor(duties: Record<string, Duty>, changes?: (signal: AbortSignal) => AsyncIterable<Term | null>) {
    this.duties = new LeaderDuties({
      leadership: {
        changes: changes ?? ((signal) => this.feed.follow(signal, this.held ? [this.held] : [])),
      },
      duties,
      clock: this.clock,
      graceMs: GRACE_MS,
      log: { error: (fields, message) => void this.errors.push({ fields, message }) },
    });
  }

  async change(held: Term | null): Promise<void> {
    this.held = held;
    this.feed.push(held);
    await this.clock.advance(0);
  }

  static async with(
    duties: (world: World) => Record<string, Duty>,
    body: (world: World) => Promise<void>,
    changes?: (signal: AbortSignal) => AsyncIterable<Term | null>,
  ): Promise<void> {
    const kept: Record<string, Duty> = {};
    const world = new World(kept, changes);
    Object.assign(kept, duties(world));
    await world.duties.start();
    try {
      await body(world);
    } finally {
      const stopped = world.duties.stop();
      await world.clock.advance(2 * GRACE_MS);
      await stopped;
    }
  }

  /** Notes its starts and ends. */
  noted(name: string): Duty {
    return async ({ epoch }, signal) => {
      this.events.push(`${name} starts ${epoch}`);
      await ended(signal);
      this.events.push(`${name} ends ${epoch}`);
    };
  }
}

describe("LeaderDuties", () => {
  it("runs every duty for as long as a term lasts, and none without one", () =>
    World.with(
      (world) => ({ a: world.noted("a"), b: world.noted("b") }),
      async (world) => {
        await world.clock.advance(1_000);
        assert.deepEqual(world.events, []);
        await world.change(term(3));
        assert.deepEqual(world.events, ["a starts 3", "b starts 3"]);
        assert.deepEqual(world.duties.current, { term: term(3), busy: ["a", "b"] });
        await world.change(null);
        assert.deepEqual(world.events.slice(2), ["a ends 3", "b ends 3"]);
        assert.equal(world.duties.current, null);
        await world.change(term(5));
        assert.deepEqual(world.events.slice(4), ["a starts 5", "b starts 5"]);
      },
    ));

  it("takes up a term that began before it was started, and ends with a stop", async () => {
    const world = new World({});
    const duties = new LeaderDuties({
      leadership: { changes: (signal) => world.feed.follow(signal, [term(1)]) },
      duties: { a: world.noted("a") },
      clock: world.clock,
    });
    await duties.start();
    await world.clock.advance(0);
    assert.deepEqual(world.events, ["a starts 1"]);
    await duties.stop();
    assert.deepEqual(world.events, ["a starts 1", "a ends 1"]);
  });

  it("waits for a slow duty before it starts the next term", () =>
    World.with(
      (world) => ({
        slow: async ({ epoch }, signal) => {
          world.events.push(`starts ${epoch}`);
          await ended(signal);
          await world.clock.sleep(3_000);
          world.events.push(`ends ${epoch}`);
        },
      }),
      async (world) => {
        await world.change(term(1));
        await world.change(null);
        await world.change(term(2));
        await world.clock.advance(2_999);
        assert.deepEqual(world.events, ["starts 1"]);
        await world.clock.advance(1);
        assert.deepEqual(world.events, ["starts 1", "ends 1", "starts 2"]);
        assert.deepEqual(world.errors, []);
      },
    ));

  it("does not wait for ever for a duty that ignores its end, and names it", () =>
    World.with(
      (world) => ({
        deaf: ({ epoch }) => {
          world.events.push(`starts ${epoch}`);
          return new Promise<void>(() => {});
        },
        good: world.noted("good"),
      }),
      async (world) => {
        await world.change(term(1));
        await world.change(null);
        await world.change(term(2));
        await world.clock.advance(GRACE_MS);
        assert.ok(world.events.includes("starts 2"));
        assert.deepEqual(column(world.errors, "fields"), [{ duties: ["deaf"], epoch: 1 }]);
      },
    ));

  it("waits no longer than a second for such a duty when it is stopped", () =>
    World.with(
      () => ({ deaf: () => new Promise(() => {}) }),
      async (world) => {
        await world.change(term(1));
        let over = false;
        const stopped = world.duties.stop().then(() => (over = true));
        await world.clock.advance(900);
        assert.equal(over, false);
        await world.clock.advance(100);
        await stopped;
      },
    ));

  it("starts a duty that throws again, later and later, and leaves the others alone", () =>
    World.with(
      (world) => ({
        bad: async () => {
          world.events.push(`bad at ${world.clock.monotonic()}`);
          throw new Error("it broke");
        },
        good: world.noted("good"),
      }),
      async (world) => {
        await world.change(term(1));
        await world.clock.advance(1_000);
        assert.deepEqual(world.events, [
          "bad at 0",
          "good starts 1",
          "bad at 100",
          "bad at 300",
          "bad at 700",
        ]);
        assert.equal((world.errors[0]!.fields["err"] as Error).message, "it broke");
        const before = world.events.length;
        await world.clock.advance(100_000);
        const more = world.events.length - before;
        assert.ok(more >= 10 && more <= 15, `${more} starts in 100 seconds`);
        await world.change(null);
        await world.clock.advance(100_000);
        assert.equal(world.events.at(-1), "good ends 1");
        await world.change(term(2));
        assert.equal(
          world.events.at(-2),
          `bad at ${world.clock.monotonic()}`,
          "a new term starts without delay",
        );
      },
    ));

  it("forgets the delay of a duty that had run well for a while", () =>
    World.with(
      (world) => ({
        steady: async (_term, signal) => {
          world.events.push(`at ${world.clock.monotonic()}`);
          await world.clock.sleep(60_000, signal);
          throw new Error("after a minute");
        },
      }),
      async (world) => {
        await world.change(term(1));
        await world.clock.advance(181_000);
        assert.deepEqual(world.events, ["at 0", "at 60100", "at 120200", "at 180300"]);
      },
    ));

  it("takes a duty that throws before its first await like any other", () =>
    World.with(
      () => ({
        rash: () => {
          throw new Error("at once");
        },
      }),
      async (world) => {
        await world.change(term(1));
        assert.equal(world.errors.length, 1);
        await world.change(null);
        assert.equal(world.duties.current, null);
      },
    ));

  it("lets a duty that returns be done for its term", () =>
    World.with(
      (world) => ({
        brief: async ({ epoch }) => {
          world.events.push(`brief ${epoch}`);
        },
      }),
      async (world) => {
        await world.change(term(1));
        await world.clock.advance(100_000);
        assert.deepEqual(world.events, ["brief 1"]);
        assert.deepEqual(world.duties.current, { term: term(1), busy: [] });
        await world.change(null);
        await world.change(term(2));
        assert.deepEqual(world.events, ["brief 1", "brief 2"]);
      },
    ));

  it("runs terms one after the other, none left out, however fast they change", () =>
    World.with(
      (world) => ({ a: world.noted("a") }),
      async (world) => {
        for (const held of [term(1), null, term(2), term(3), null]) world.feed.push(held);
        await world.clock.advance(0);
        assert.deepEqual(world.events, [
          "a starts 1",
          "a ends 1",
          "a starts 2",
          "a ends 2",
          "a starts 3",
          "a ends 3",
        ]);
      },
    ));

  it("ends its duties when leadership can no longer be followed, and follows again", () => {
    let calls = 0;
    async function* broken(signal: AbortSignal): AsyncIterable<Term | null> {
      yield term(++calls);
      if (calls === 1) throw new Error("the stream broke");
      await ended(signal);
    }
    return World.with(
      (world) => ({ a: world.noted("a") }),
      async (world) => {
        await world.clock.advance(0);
        assert.deepEqual(world.events, ["a starts 1", "a ends 1"]);
        await world.clock.advance(1_000);
        assert.deepEqual(world.events, ["a starts 1", "a ends 1", "a starts 2"]);
        assert.match(world.errors[0]!.message, /cannot be followed/);
      },
      broken,
    );
  });
});

lifecycleStress("LeaderDuties", async () => {
  const clock = new ManualClock();
  const feed = new Feed<Term | null>();
  let runs = 0;
  const service = new LeaderDuties({
    leadership: { changes: (signal) => feed.follow(signal, [term(1)]) },
    duties: {
      a: async (_term, signal) => {
        runs++;
        await ended(signal);
        runs--;
      },
    },
    clock,
  });
  return {
    service,
    nudge: () => clock.advance(1_000),
    works: async () => {
      await clock.advance(0);
      assert.equal(runs, 1);
    },
    close: async () => assert.equal(runs, 0),
  };
});
