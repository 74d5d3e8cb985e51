/** Who said of itself that it leads, and when: asked of every node again and again, for as long as a test runs. */

import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { Asking } from "./asking.ts";
import { roleOf } from "./cluster.ts";
import type { Scope } from "./node-cleanup.ts";

/** A node said of itself that it leads, at some time between these two. */
interface Sighting {
  readonly name: string;
  readonly epoch: number;
  readonly asked: number;
  readonly told: number;
}

const LOOK_MS = 15;

export class LeaderClaims {
  readonly #sightings: Sighting[] = [];

  constructor(t: Scope, nodes: () => ReadonlyMap<string, { readonly url: string }>) {
    void new Asking(t, LOOK_MS, nodes, async (name, node) => {
      const asked = systemClock.monotonic();
      const role = await roleOf(node);
      if (role?.role !== "LEADER") return;
      this.#sightings.push({ name, epoch: role.leader_epoch!, asked, told: systemClock.monotonic() });
    });
  }

  get terms(): ReadonlyMap<number, string> {
    return new Map(this.#sightings.map(({ epoch, name }) => [epoch, name]));
  }

  /** Those that were asked after that time, on the monotonic clock, and had answered before the other. */
  between(from: number, to: number): readonly Sighting[] {
    return this.#sightings.filter(({ asked, told }) => asked >= from && told <= to);
  }

  /** No epoch had two leaders, and no two nodes believed at the same time that they lead. */
  assertOneAtATime(): void {
    // What it said first and what it said last bound the time in which it certainly believed so, however late the answers came.
    const terms = [...Map.groupBy(this.#sightings, ({ name, epoch }) => `${name} ${epoch}`).values()];
    const claims = terms.map((said) => ({
      ...said[0]!,
      from: said[0]!.told,
      until: Math.max(...said.map(({ asked }) => asked)),
    }));
    for (const [n, a] of claims.entries()) {
      for (const b of claims.slice(0, n).filter(({ name }) => name !== a.name)) {
        assert.notEqual(a.epoch, b.epoch, `${a.name} and ${b.name} both led under epoch ${a.epoch}`);
        const bothMs = Math.min(a.until, b.until) - Math.max(a.from, b.from);
        assert.ok(
          bothMs <= 0,
          `${a.name} and ${b.name} both led for ${bothMs} ms: ${JSON.stringify([a, b])}`,
        );
      }
    }
  }
}
