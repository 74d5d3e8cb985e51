import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { OwnerSettings } from "../../../../src/push/ownership/owner-context.ts";
import { OwnershipWorld, type OwnerNode } from "./world.ts";
import { column } from "../../../support/columns.ts";

const ON = { rebalance: true } as const;

/** Nodes with so many jobs each, in the order of their names. */
async function loaded(
  world: OwnershipWorld,
  jobs: Readonly<Record<string, number>>,
  settings: Partial<OwnerSettings>,
): Promise<OwnerNode[]> {
  for (const [name, count] of Object.entries(jobs)) {
    const node = await world.node(name, settings);
    // The others look away.
    for (const other of world.nodes) if (other !== node) other.deaf = true;
    await world.assign(count);
    await world.rest(200);
    assert.equal(node.jobs, count);
    for (const other of world.nodes) other.deaf = false;
  }
  return world.nodes;
}

describe("rebalancing", () => {
  it("makes 60 and 60 of 100 and 20", async (t) => {
    const world = await OwnershipWorld.open(t);
    const [a, b] = await loaded(world, { a: 100, b: 20 }, ON);
    await world.advance(9_000);
    assert.deepEqual([a!.jobs, b!.jobs], [100, 20], "not at once");
    await world.advance(4_000);
    assert.deepEqual([a!.jobs, b!.jobs], [60, 60]);
    await world.advance(60_000);
    assert.deepEqual([a!.jobs, b!.jobs], [60, 60]);
    assert.equal(a!.counts.offers, 40);
  });

  it("does nothing when it is switched off", async (t) => {
    const world = await OwnershipWorld.open(t);
    const [a, b] = await loaded(world, { a: 100, b: 20 }, { rebalance: false });
    await world.advance(60_000);
    assert.deepEqual([a!.jobs, b!.jobs], [100, 20]);
    assert.equal(a!.counts.offers, 0);
  });

  it("gives a node that joins its share, a move at a time", async (t) => {
    const world = await OwnershipWorld.open(t);
    const [a, b] = await loaded(world, { a: 80, b: 80 }, ON);
    const c = await world.node("c", ON);
    const moves = new Map([a!, b!].map((node) => [node, { seconds: [] as number[], offers: 0 }]));
    for (let second = 0; second < 60; second++) {
      await world.advance(1_000);
      for (const [node, move] of moves) {
        if (node.counts.offers !== move.offers) move.seconds.push(second);
        move.offers = node.counts.offers;
      }
    }
    assert.equal(a!.jobs + b!.jobs + c.jobs, 160);
    assert.ok(c.jobs >= 40, `${c.jobs}`);
    assert.ok(Math.max(a!.jobs, b!.jobs) < 2 * Math.min(a!.jobs, b!.jobs, c.jobs));
    for (const { seconds } of moves.values())
      for (let at = 1; at < seconds.length; at++)
        assert.ok(seconds[at]! - seconds[at - 1]! >= 10, seconds.join());
  });

  it("leaves what it gives to those who have less", async (t) => {
    const world = await OwnershipWorld.open(t);
    const nodes = await loaded(world, { a: 100, b: 90, c: 10 }, ON);
    await world.advance(13_000);
    assert.deepEqual(column(nodes, "jobs"), [55, 90, 55]);
  });

  it("keeps what nobody takes", async (t) => {
    const world = await OwnershipWorld.open(t);
    const [a, b] = await loaded(world, { a: 100, b: 20 }, ON);
    b!.deaf = true;
    await world.advance(30_000);
    assert.equal(a!.jobs, 100);
    assert.equal(b!.jobs, 20);
    b!.crash();
    await world.advance(30_000);
    assert.equal(a!.jobs, 100, "also when the other has died");
    const [assigned] = await world.assign(1);
    await world.finish(assigned!.id, assigned!.runs);
    await world.rest();
    assert.equal(a!.jobs, 100, "and it works as before");
  });

  it("gives way to a drain", async (t) => {
    const world = await OwnershipWorld.open(t);
    const [a, b] = await loaded(world, { a: 100, b: 20 }, ON);
    b!.deaf = true;
    await world.advance(13_000);
    b!.deaf = false;
    assert.equal(a!.counts.offers, 40);
    const outcome = a!.drain();
    await world.rest();
    assert.deepEqual(await outcome, { handedOver: 100, finished: 0, orphaned: 0, released: 0 });
    assert.equal(b!.jobs, 120);
  });
});
