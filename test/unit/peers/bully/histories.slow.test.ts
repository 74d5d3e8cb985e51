/**
 * Random histories of a cluster of peers: whatever is lost, late, doubled, stopped, killed or forgotten, no epoch comes twice,
 * epochs only grow, nobody leads beside another, and one leads soon after the trouble has ended. The first three are
 * checked by PeerSim at every step. A history that fails is repeated by its seed.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Random } from "../../../../src/platform/random.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { PeerSim } from "../../../support/peer-sim.ts";

/** More by hand: `SEEDS=5000 node --test …`, or one of them: `SEED=17`. */
const SEEDS = Number(process.env["SEEDS"] ?? 40);
const ONLY = process.env["SEED"];
const CHAOS_MS = 25_000;
/** A lease that nobody ends, a voter that has to recollect, and a few attempts. */
const SETTLED_MS = 15_000;
/** And the longest pauses of those that ask to join, who were refused for as long as nobody led. */
const JOINED_MS = 40_000;

interface Tally {
  grants: number;
  kills: number;
  lost: number;
  pauses: number;
  splits: number;
  changes: number;
}

class History {
  readonly sim: PeerSim;
  readonly #random: Random;
  readonly #names: readonly string[];
  readonly #tally: Tally;
  /** Each kind of trouble is there or not for a whole history: all of it always would hide what one alone does. */
  readonly #kinds: string[];
  readonly #joined: boolean;

  constructor(seed: number, tally: Tally, joined: boolean) {
    this.#random = seededRandom(seed);
    const count = this.#one([3, 3, 5]);
    this.#names = Array.from({ length: count }, (_, i) => `node-${i}`);
    this.#tally = tally;
    const kinds = ["kill", "machine", "disk", "pause", "split", "one way", "messages"];
    this.#kinds = kinds.filter(() => this.#random.chance() < 0.5);
    if (joined) this.#kinds.push("remove", "join");
    this.#joined = joined;
    this.sim = new PeerSim({ names: this.#names, seed, joined, writeMs: this.#one([0, 5, 40]) });
  }

  async run(): Promise<void> {
    const { sim } = this;
    for (const name of this.#names) await sim.start(name, this.#rate());
    const everybody = (): boolean => this.#names.every((name) => sim.takesPart(sim.node(name)));
    await sim.until("a leader at the beginning", () => sim.agreed() && everybody(), 20_000, 50);
    for (const until = sim.world.monotonic() + CHAOS_MS; sim.world.monotonic() < until;) {
      await this.#trouble(this.#one([...this.#kinds, "rest"]));
      await sim.pass(100 + 1_400 * this.#random.chance());
    }
    await this.#mend();
    // A removal that was asked for before may still come about.
    const settled = (): boolean =>
      this.#names.every((name) => {
        const node = sim.node(name);
        return sim.takesPart(node) || /was removed/.test(node.coordination.notes().join());
      });
    const limitMs = this.#joined ? JOINED_MS : SETTLED_MS;
    await sim.until("agreement after the heal", () => sim.agreed() && settled(), limitMs, 50);
    this.#tally.grants += sim.grants.length;
  }

  async #trouble(kind: string): Promise<void> {
    const { sim } = this;
    const name = this.#one(this.#names);
    const node = sim.node(name);
    switch (kind) {
      case "kill":
      case "machine":
      case "disk":
        if (node.dead) return void (await sim.start(name, this.#rate()));
        sim.kill(name, { machine: kind === "machine" });
        this.#tally.kills += 1;
        // What one voter has forgotten the others remember; no promise is made for several at once.
        if (kind === "disk" && this.#everybodyElseRemembers(name) && !(this.#joined && name === "node-0")) {
          sim.disk(name).lose();
          this.#tally.lost += 1;
        }
        return;
      case "pause":
        if (node.dead) return;
        this.#tally.pauses += 1;
        node.clock.stop();
        sim.world.after(500 + 8_000 * this.#random.chance(), () => {
          if (!node.dead) node.clock.resume();
        });
        return;
      case "split": {
        this.#tally.splits += 1;
        const parts: string[][] = [[], []];
        for (const each of this.#names) parts[this.#random.chance() < 0.5 ? 0 : 1]!.push(each);
        if (this.#random.chance() < 0.4) sim.network.heal();
        else sim.split(...parts);
        return;
      }
      case "remove": {
        const [leader] = sim.leaders();
        if (!leader) return;
        this.#tally.changes += 1;
        leader.coordination.remove(node.identity.name).catch(() => {});
        return;
      }
      case "join":
        if (!node.dead && !sim.takesPart(node)) {
          sim.kill(name);
          await sim.start(name, this.#rate());
        }
        return;
      case "one way":
        sim.network.cut(name, this.#one(this.#names));
        return;
      case "messages":
        sim.network.faults = {
          delayMs: [0, this.#one([1, 100, 600])],
          loss: this.#one([0, 0.1, 0.3]),
          duplicates: this.#one([0, 0.2]),
        };
    }
  }

  async #mend(): Promise<void> {
    const { sim } = this;
    sim.network.faults = { delayMs: [0, 5], loss: 0, duplicates: 0 };
    sim.network.heal();
    for (const name of this.#names) {
      const node = sim.node(name);
      if (!node.dead) node.clock.resume();
      if (!node.dead && !sim.takesPart(node)) sim.kill(name);
      if (node.dead) await sim.start(name, this.#rate());
    }
  }

  #everybodyElseRemembers(name: string): boolean {
    // Of one or two members the loss of one disk is the loss of a majority.
    if (this.sim.node(name).coordination.voters().length < 3) return false;
    return this.#names.every((each) => {
      const text = this.sim.disk(each).text;
      return each === name || (text !== null && (JSON.parse(text) as { votes: boolean }).votes);
    });
  }

  /** Clocks of machines differ by far less; the margin of a lease allows for a third. */
  #rate(): number {
    return 0.95 + 0.1 * this.#random.chance();
  }

  #one<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random.chance() * values.length)]!;
  }
}

describe("random histories of peers", () => {
  const holds = async (joined: boolean): Promise<void> => {
    const tally: Tally = { grants: 0, kills: 0, lost: 0, pauses: 0, splits: 0, changes: 0 };
    const seeds = ONLY === undefined ? Array.from({ length: SEEDS }, (_, i) => i + 1) : [Number(ONLY)];
    for (const seed of seeds) {
      const history = new History(seed, tally, joined);
      try {
        await history.run();
      } catch (error) {
        throw new Error(`SEED=${seed}: ${(error as Error).message}`, { cause: error });
      } finally {
        await history.sim[Symbol.asyncDispose]();
      }
    }
    // Otherwise nothing was tried.
    if (seeds.length >= 40) {
      assert.ok(tally.grants > 2 * seeds.length, `${tally.grants} terms`);
      for (const kind of ["kills", "lost", "pauses", "splits"] as const)
        assert.ok(tally[kind] > seeds.length / 10, `${tally[kind]} ${kind}`);
      if (joined) assert.ok(tally.changes > seeds.length, `${tally.changes} changes`);
    }
  };

  test("have one leader at most, epochs that only grow, and a leader soon after they end", () =>
    holds(false));
  test("the same while nodes are removed and join again", () => holds(true));
});
