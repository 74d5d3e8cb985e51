import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { queues } from "../../../../src/channels/channel-names.ts";
import type { Term } from "../../../../src/core/leadership/term.ts";
import { type Random } from "../../../../src/platform/random.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import type { Run } from "../../../../src/store/store.ts";
import { OwnershipWorld, type OwnerNode } from "./world.ts";

/**
 * Random histories: nodes die, drain, come back, lose acknowledgements and the store, while jobs are dispatched, talk and end. In
 * the end, when all is well again, every job has ended once, has all of its lines, the first of each in order, and nothing is left behind.
 */

const STEPS = 120;
const NAMES = ["a", "b", "c", "d"];

class History {
  readonly #world: OwnershipWorld;
  readonly #random: Random;
  /** Those that have not said their last word. */
  readonly #running: { readonly assignment: number; readonly run: Run; said: number }[] = [];
  readonly runs: (Run & { readonly assignment: number })[] = [];
  readonly said = new Map<string, number>();
  #leader: OwnerNode | null = null;
  #term: Term | null = null;
  readonly #buried = new Set<OwnerNode>();

  constructor(world: OwnershipWorld, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  get living(): OwnerNode[] {
    return this.#world.nodes.filter((node) => !node.dead);
  }

  async step(): Promise<void> {
    const steps = [
      () => this.#dispatch(),
      () => this.#dispatch(),
      () => this.#talk(),
      () => this.#talk(),
      () => this.#end(),
      () => this.#end(),
      () => this.#die(),
      () => this.#drain(),
      () => this.#join(),
      () => this.#fault(),
    ];
    await steps[this.#pick(steps.length)]!();
    await this.govern();
    if (this.#random.chance() < 0.5) await this.#world.advance(this.#pick(3_000));
    else await this.#world.rest(this.#pick(6));
  }

  /** As leader election and the leader's watch over the nodes do. */
  async govern(): Promise<void> {
    const able = (node: OwnerNode): boolean =>
      !node.dead && !node.faults.has("store") && !node.faults.has("answers");
    if (!this.#leader || !able(this.#leader)) {
      this.#leader = this.living.find(able) ?? null;
      if (!this.#leader) return;
      this.#term = await this.#world.term(this.#leader.identity);
      this.#leader.lead(this.#term);
    }
    for (const node of this.#world.nodes) {
      if (!node.dead || this.#buried.has(node)) continue;
      await this.#leader.owner.orphans.disown([node.identity], this.#term!);
      this.#buried.add(node);
    }
  }

  async heal(): Promise<void> {
    for (const node of this.living) {
      node.faults.clear();
      node.deaf = false;
      if (!node.draining) continue;
      node.draining = false;
      await this.#world.until(() => node.owner.progress()?.waiting === 0, 70_000).catch(() => {});
      await node.owner.resume();
    }
    if (this.living.length === 0) await this.#join();
    await this.govern();
    while (this.#running.length > 0) await this.#end();
  }

  async #dispatch(): Promise<void> {
    const size = 1 + this.#pick(4);
    const lost = this.#random.chance() < 0.1;
    const assigned = await (lost ? this.#world.dispatch(size * 2, size) : this.#world.assign(size * 2, size));
    for (const { id, runs } of assigned) {
      for (const run of runs) {
        this.runs.push({ ...run, assignment: id });
        this.#running.push({ assignment: id, run, said: 0 });
      }
    }
  }

  async #talk(): Promise<void> {
    const one = this.#running[this.#pick(this.#running.length)];
    if (one) await this.#world.say(one.assignment, one.run, `${++one.said}`);
  }

  async #end(): Promise<void> {
    const [one] = this.#running.splice(this.#pick(this.#running.length), 1);
    if (!one) return;
    this.said.set(one.run.id, ++one.said);
    await this.#world.finish(one.assignment, [one.run], `${one.said}`);
  }

  async #die(): Promise<void> {
    if (this.#random.chance() < 0.4) this.#any()?.crash();
  }

  async #drain(): Promise<void> {
    const node = this.#any();
    if (!node || node.draining) return;
    const hurry = new AbortController();
    void node.drain(hurry).catch(() => {});
    if (this.#random.chance() < 0.3) hurry.abort();
  }

  async #join(): Promise<void> {
    const tired = this.living.find((node) => node.draining);
    const free = NAMES.find((name) => !this.living.some((node) => node.identity.name === name));
    if (free !== undefined) await this.#world.node(free, { rebalance: true, rebalanceMs: 3_000 });
    else if (tired?.owner.progress()?.waiting === 0) {
      tired.draining = false;
      await tired.owner.resume();
    }
  }

  async #fault(): Promise<void> {
    const node = this.#any();
    if (!node) return;
    const faults = ["acks", "store", "answers"] as const;
    const fault = faults[this.#pick(faults.length)]!;
    if (node.faults.has(fault)) node.faults.delete(fault);
    else node.faults.add(fault);
    if (this.#random.chance() < 0.2) node.deaf = true;
    else if (this.#random.chance() < 0.5) node.deaf = false;
  }

  #any(): OwnerNode | undefined {
    return this.living[this.#pick(this.living.length)];
  }

  #pick(below: number): number {
    return Math.floor(this.#random.chance() * below);
  }
}

async function check(t: TestContext, seed: number): Promise<void> {
  const world = await OwnershipWorld.open(t);
  const history = new History(world, seededRandom(seed));
  for (let step = 0; step < STEPS; step++) await history.step();
  await history.heal();
  const running = new Set(history.runs);
  const ended = async (): Promise<boolean> => {
    for (const run of running) {
      if ((await world.statuses([run]))[0] !== "completed") return false;
      running.delete(run);
    }
    return true;
  };
  await world.until(ended, 60_000);
  const owning = (): number => history.living.reduce((sum, node) => sum + node.owner.assignments, 0);
  await world.until(() => owning() === 0, 90_000);
  assert.equal(
    history.living.reduce((sum, node) => sum + node.jobs, 0),
    0,
  );

  const kept = history.runs.filter((run) => !world.overtaken.has(queues.jobStatus(run.assignment)));
  assert.ok(kept.length * 2 > history.runs.length, "most are in order");
  for (const run of kept) {
    const count = history.said.get(run.id)!;
    const expected = Array.from({ length: count }, (_, at) => `${at + 1}`);
    // What was written by a node that died before it could say so is written again by the next.
    assert.deepEqual([...new Set(await world.lines(run))], expected);
  }
  const accepted = world.receipts.flatMap((receipt) => receipt.settled).filter((word) => word === "accepted");
  assert.ok(accepted.length <= history.runs.length, "no result is taken twice");
}

describe("whatever happens to the owners", () => {
  for (let seed = 1; seed <= 20; seed++)
    it(`every job ends once, with all that it said (history ${seed})`, (t) => check(t, seed));
});
