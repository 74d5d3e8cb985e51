import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  judge,
  NOTHING_SEEN,
  SESSION_GONE_MS,
  type Snapshot,
  type NodeSign,
  type Watch,
} from "../../../../src/core/leadership/failure-detector.ts";

const SETTINGS = { deadAfterMs: 5_000 };
const LOOK_MS = 100;

/** A leader that looks every 100 ms at one node, and the server it asks. */
class Scene {
  #at = 1_000_000;
  #watch: Watch | null = NOTHING_SEEN;
  server = "started once";
  serverUpMs = 3_600_000;
  sign: NodeSign = { incarnation: "bob/1", status: "active", heartbeat: 1, locked: true, held: true };

  set(fields: Partial<NodeSign>): void {
    this.sign = { ...this.sign, ...fields };
  }

  skip(ms: number): void {
    this.#at += ms;
  }

  newTerm(): void {
    this.#watch = NOTHING_SEEN;
  }

  look(nodes: readonly NodeSign[] = [this.sign]): boolean {
    const look: Snapshot = { at: this.#at, server: this.server, serverUpMs: this.serverUpMs, nodes };
    const { watch, dead } = judge(this.#watch, look, SETTINGS);
    this.#watch = watch;
    return dead.length > 0;
  }

  /** Looks for so long; after how many ms the node was found dead, or null. */
  watch(ms: number): number | null {
    for (let passed = 0; passed <= ms; passed += LOOK_MS) {
      if (this.look()) return passed;
      this.skip(LOOK_MS);
    }
    return null;
  }
}

describe("the failure detector", () => {
  test("takes a node for dead whose session was missing in every look for 300 ms", () => {
    const scene = new Scene();
    scene.look();
    scene.set({ held: false });
    assert.equal(scene.watch(2_000), SESSION_GONE_MS);
  });

  test("starts to count anew when the session is seen in between", () => {
    const scene = new Scene();
    for (let round = 0; round < 10; round++) {
      scene.set({ held: false });
      assert.equal(scene.watch(SESSION_GONE_MS - LOOK_MS), null);
      scene.set({ held: true });
      assert.equal(scene.look(), false);
      scene.skip(LOOK_MS);
    }
  });

  test("draws no conclusion from one look, however long ago the last one was", () => {
    const scene = new Scene();
    scene.set({ held: false });
    scene.look();
    scene.skip(60_000);
    assert.equal(scene.look(), false);
  });

  test("expects no session of a node that keeps none", () => {
    const scene = new Scene();
    scene.set({ locked: false, held: false });
    assert.equal(scene.watch(SETTINGS.deadAfterMs - LOOK_MS), null);
  });

  test("takes missing sessions for no evidence on a server that has only just started", () => {
    const scene = new Scene();
    scene.look();
    scene.server = "started again";
    scene.set({ held: false });
    for (scene.serverUpMs = 0; scene.serverUpMs < SETTINGS.deadAfterMs; scene.serverUpMs += LOOK_MS) {
      scene.set({ heartbeat: scene.serverUpMs });
      assert.equal(scene.look(), false);
      scene.skip(LOOK_MS);
    }
    assert.equal(scene.watch(2_000), SESSION_GONE_MS, "but later it is");
  });

  test("takes a node for dead whose heartbeat did not change for the whole time, session or not", () => {
    for (const locked of [true, false]) {
      const scene = new Scene();
      scene.set({ locked, held: locked });
      assert.equal(scene.watch(10_000), SETTINGS.deadAfterMs);
    }
  });

  test("watches for the whole time in each term, whatever the heartbeat's age", () => {
    const scene = new Scene();
    assert.equal(scene.watch(SETTINGS.deadAfterMs - LOOK_MS), null);
    scene.newTerm();
    assert.equal(scene.watch(10_000), SETTINGS.deadAfterMs);
  });

  test("does not care for the clock that wrote the heartbeat: a change is a sign of life, backwards too", () => {
    const scene = new Scene();
    for (const heartbeat of [5, 3_600_000, 7, -1, 6]) {
      scene.set({ heartbeat });
      assert.equal(scene.watch(SETTINGS.deadAfterMs - LOOK_MS), null);
    }
  });

  test("begins its watch anew after a time without looks, when nobody's heartbeat may have got through", () => {
    const scene = new Scene();
    assert.equal(scene.watch(SETTINGS.deadAfterMs - LOOK_MS), null);
    scene.skip(SETTINGS.deadAfterMs);
    assert.equal(scene.watch(10_000), SETTINGS.deadAfterMs);
  });

  test("judges joining and draining nodes like active ones, and nobody else", () => {
    for (const status of ["joining", "active", "draining", "dead", "hibernating"]) {
      const scene = new Scene();
      scene.set({ status, held: false });
      const mortal = ["joining", "active", "draining"].includes(status);
      assert.equal(scene.watch(10_000), mortal ? SESSION_GONE_MS : null, status);
    }
  });

  test("forgets a node that is not in the list any more", () => {
    const scene = new Scene();
    scene.set({ held: false });
    scene.look();
    scene.skip(SESSION_GONE_MS);
    assert.equal(scene.look([]), false);
    assert.equal(scene.look(), false, "what was seen before it left does not count");
  });

  test("never takes a node for dead whose heartbeats and session go on, however looks come", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ gapMs: fc.nat(20_000), restart: fc.boolean(), blink: fc.boolean() }), {
          maxLength: 50,
        }),
        (plan) => {
          const scene = new Scene();
          let blinked = false;
          for (const [n, { gapMs, restart, blink }] of plan.entries()) {
            scene.skip(gapMs);
            if (restart) scene.server = `started ${n}`;
            // One look may fall into the moment in which it connects anew; two in a row do not.
            blinked = blink && !blinked;
            scene.set({ heartbeat: n, held: !blinked });
            assert.equal(scene.look(), false);
          }
        },
      ),
    );
  });
});
