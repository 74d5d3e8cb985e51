import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentSnapshot } from "../../../src/core/supervision.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { HangDetector } from "../../../src/supervisor/hang-detector.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";

const WEDGED_MS = 10_000;

class World {
  readonly clock = new ManualClock();
  readonly found: string[] = [];
  wrong: { fatal: boolean; reason: string } | null = null;
  agent: AgentSnapshot | undefined | null = null;
  jobs = 0;
  known = true;
  works: boolean | null = false;
  readonly #startedAt = this.clock.now();
  readonly watch = new HangDetector(this, {
    controller: () => this.controller,
    wedgedAfterMs: WEDGED_MS,
    agent: () => ({ name: "ada-worker", startedAt: this.#startedAt, queues: null, known: this.known }),
    onWedged: (child, reason) => void this.found.push(`${child}: ${reason}`),
  });
  readonly controller = {
    livez: async () => this.wrong,
    agent: async () => this.agent,
    works: async () => this.works,
    waiting: async () => {
      const job = { task: "mail", queue: "default", readyAt: this.#startedAt };
      return { jobs: Array.from({ length: this.jobs }, () => job), paused: new Set<string>() };
    },
  };

  static async with(body: (world: World) => Promise<void>): Promise<void> {
    const world = new World();
    await world.watch.start();
    try {
      await body(world);
    } finally {
      await world.watch.stop();
    }
  }
}

describe("HangDetector", () => {
  it("finds a controller that is silent for so long, and not one that answers in between", () =>
    World.with(async (it) => {
      const silent = { fatal: false, reason: "/livez does not answer" };
      it.wrong = silent;
      await it.clock.advance(WEDGED_MS - 1_000);
      it.wrong = null;
      await it.clock.advance(3_000);
      it.wrong = silent;
      await it.clock.advance(WEDGED_MS - 1_000);
      assert.deepEqual(it.found, []);
      await it.clock.advance(4_000);
      assert.deepEqual(it.found, ["controller: /livez does not answer"]);
    }));

  it("does not wait when only a restart will help", () =>
    World.with(async (it) => {
      it.wrong = { fatal: true, reason: "/livez says: the disk is broken" };
      await it.clock.advance(3_000);
      assert.equal(it.found[0], "controller: /livez says: the disk is broken");
    }));

  it("finds an agent that runs nothing though there is work, not one that is idle", () =>
    World.with(async (it) => {
      it.agent = { capabilities: ["mail"], running: 0, lastSeenAt: Number.POSITIVE_INFINITY };
      await it.clock.advance(10 * WEDGED_MS);
      assert.deepEqual(it.found, []);
      it.jobs = 3;
      for (const works of [true, null]) {
        it.works = works;
        await it.clock.advance(4 * WEDGED_MS);
        assert.deepEqual(it.found, [], "its jobs are shorter than a look");
      }
      it.works = false;
      await it.clock.advance(1.5 * WEDGED_MS);
      assert.deepEqual(it.found, ["agent: it runs nothing though there is work for it"]);
    }));

  it("says nothing of an agent that nobody can tell of, or that goes by another name", () =>
    World.with(async (it) => {
      it.jobs = 3;
      it.agent = null;
      await it.clock.advance(4 * WEDGED_MS);
      it.agent = undefined;
      it.known = false;
      await it.clock.advance(4 * WEDGED_MS);
      assert.deepEqual(it.found, []);
      it.known = true;
      await it.clock.advance(2 * WEDGED_MS);
      assert.match(it.found[0]!, /^agent: no controller has heard of it/);
    }));
});

lifecycleStress("a hang detector", async () => {
  const { watch, clock } = new World();
  return { service: watch, nudge: () => clock.advance(1_000) };
});
