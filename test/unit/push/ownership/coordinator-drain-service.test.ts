import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { queues } from "../../../../src/channels/channel-names.ts";
import type { DrainProgress } from "../../../../src/core/node.ts";
import { OwnershipWorld, owners } from "./world.ts";

/** One who owns so many jobs, and another who comes afterwards. */
async function pair(t: Parameters<typeof OwnershipWorld.open>[0], jobs: number, size = 1) {
  const { world, a } = await owners(t, "a");
  const assigned = await world.assign(jobs, size);
  await world.until(() => a.jobs === jobs, 0);
  const b = await world.node("b");
  return { world, a, b, assigned };
}

describe("a drain", () => {
  it("hands everything over, at once", async (t) => {
    const { world, a, b, assigned } = await pair(t, 30, 3);
    const told: DrainProgress[] = [];
    a.draining = true;
    const draining = a.owner.drain({
      hurry: new AbortController().signal,
      onProgress: (progress) => told.push(progress),
    });
    assert.deepEqual(await draining, { handedOver: 30, finished: 0, orphaned: 0, released: 0 });
    assert.equal(world.clock.monotonic(), 0, "no time went by");
    assert.deepEqual([a.jobs, a.owner.assignments, b.jobs], [0, 0, 30]);
    assert.deepEqual(new Set(await world.owners(assigned)), new Set(["b"]));
    assert.deepEqual(a.owner.progress(), {
      owned: 30,
      handedOver: 30,
      finished: 0,
      waiting: 0,
      orphaned: 0,
      released: 0,
    });
    assert.deepEqual([told[0]!.waiting, told.at(-1)!.waiting], [30, 0]);
    for (const { owned, handedOver, finished, waiting } of told)
      assert.equal(handedOver + finished + waiting, owned);
    for (const { id, runs } of assigned) await world.finish(id, runs);
    await world.rest();
    assert.equal(b.owner.assignments, 0);
  });

  it("takes nothing meanwhile, and does again after a resume", async (t) => {
    const { world, a, b } = await pair(t, 3);
    await a.drain();
    b.crash();
    await world.assign(5);
    assert.equal(a.jobs, 0);
    a.draining = false;
    await a.owner.resume();
    assert.equal(a.owner.progress(), null);
    await world.rest();
    assert.equal(a.jobs, 5);
  });

  it("with nothing owned is over at once", async (t) => {
    const { a } = await owners(t, "a");
    assert.deepEqual(await a.drain(), { handedOver: 0, finished: 0, orphaned: 0, released: 0 });
  });

  it("S68: reads the store when an acknowledgement is lost, and offers nothing twice", async (t) => {
    const { world, a, b, assigned } = await pair(t, 10);
    b.faults.add("acks");
    const draining = a.drain();
    await world.advance(5_000);
    assert.deepEqual(await draining, { handedOver: 10, finished: 0, orphaned: 0, released: 0 });
    assert.equal(a.counts.offers, 10);
    assert.deepEqual(
      (await world.read(assigned)).map((row) => [row!.owner!.name, row!.ownerEpoch]),
      assigned.map(() => ["b", 2]),
    );
  });

  it("S66: one that dies between its offers and their takers is found by the leader, once", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(6);
    const b = await world.node("b");
    b.deaf = true;
    void a.drain().catch(() => {});
    await world.rest();
    a.crash();
    const term = await world.term(b.identity);
    b.lead(term);
    assert.equal(await b.owner.orphans.disown([a.identity], term), 6);
    b.deaf = false;
    await world.rest();
    const rows = await world.read(assigned);
    assert.deepEqual(
      rows.map((row) => [row!.owner!.name, row!.ownerEpoch]),
      assigned.map(() => ["b", 2]),
    );
    assert.equal(b.owner.assignments, 6);
  });

  it("S71: with nobody left, releases everything at once", async (t) => {
    const { world, a, b, assigned } = await pair(t, 5);
    b.crash();
    assert.deepEqual(await a.drain(), { handedOver: 0, finished: 0, orphaned: 0, released: 5 });
    assert.deepEqual(
      (await world.read(assigned)).map((row) => row!.state),
      assigned.map(() => "unowned"),
    );
    assert.equal(world.clock.monotonic(), 0);
  });

  it("S71: notices also when the last one dies meanwhile", async (t) => {
    const { world, a, b } = await pair(t, 5);
    b.deaf = true;
    const draining = a.drain();
    await world.advance(2_000);
    b.crash();
    await world.advance(300);
    assert.deepEqual(await draining, { handedOver: 0, finished: 0, orphaned: 0, released: 5 });
  });

  it("offers three times five seconds, then orphans, and waits for takers", async (t) => {
    const { world, a, b, assigned } = await pair(t, 5);
    b.deaf = true;
    const draining = a.drain();
    await world.advance(14_900);
    assert.equal(a.counts.offers, 15);
    assert.equal(a.jobs, 5);
    await world.advance(200);
    assert.deepEqual(
      (await world.read(assigned)).map((row) => row!.state),
      assigned.map(() => "orphan_pending"),
    );
    assert.equal(a.owner.progress()!.orphaned, 5);
    await world.advance(10_000);
    b.deaf = false; // the offers are still there
    await world.advance(600);
    assert.deepEqual(await draining, { handedOver: 5, finished: 0, orphaned: 0, released: 0 });
    assert.deepEqual(new Set(await world.owners(assigned)), new Set(["b"]));
  });

  it("leaves orphans behind after half a minute more", async (t) => {
    const { world, a, b } = await pair(t, 5);
    b.deaf = true;
    let over = false;
    const draining = a.drain();
    void draining.then(() => (over = true));
    await world.advance(44_500);
    assert.equal(over, false);
    await world.advance(1_500);
    assert.equal(over, true);
    assert.deepEqual(await draining, { handedOver: 0, finished: 0, orphaned: 5, released: 0 });
  });

  it("S75: is hurried by a second signal: what is left is released and offered", async (t) => {
    const { world, a, b, assigned } = await pair(t, 5);
    b.deaf = true;
    const hurry = new AbortController();
    const draining = a.drain(hurry);
    await world.advance(1_000);
    hurry.abort();
    assert.deepEqual(await draining, { handedOver: 0, finished: 0, orphaned: 0, released: 5 });
    assert.deepEqual(await world.owners(assigned), [null, null, null, null, null]);
    b.deaf = false;
    await world.rest();
    assert.equal(b.owner.assignments, 5);
  });

  it("joins a drain that is under way, and hurries it", async (t) => {
    const { world, a, b } = await pair(t, 2);
    b.deaf = true;
    const first = a.drain();
    await world.advance(1_000);
    const second = a.owner.drain({ hurry: AbortSignal.abort() });
    assert.deepEqual(await first, await second);
    assert.equal((await first).released, 2);
  });

  it("ends with a resume, and keeps what is not handed over", async (t) => {
    const { world, a, b, assigned } = await pair(t, 5);
    b.deaf = true;
    const draining = a.drain();
    await world.advance(1_000);
    await world.finish(assigned[0]!.id, assigned[0]!.runs);
    await world.rest();
    a.draining = false;
    await a.owner.resume();
    assert.deepEqual(await draining, { handedOver: 0, finished: 1, orphaned: 0, released: 0 });
    assert.equal(a.jobs, 4);
    await world.finish(assigned[1]!.id, assigned[1]!.runs);
    await world.assign(1);
    await world.rest();
    assert.equal(a.jobs, 4);
  });

  it("S72: two that drain at once hand nothing to each other", async (t) => {
    const { world, a, b } = await owners(t, "a", "b");
    const assigned = await world.assign(200);
    await world.until(() => a.jobs + b.jobs === 200, 30_000);
    const c = await world.node("c");
    a.draining = b.draining = true;
    const outcomes = await Promise.all([a.drain(), b.drain()]);
    assert.equal(outcomes[0].handedOver + outcomes[1].handedOver, 200);
    assert.equal(c.jobs, 200);
    assert.ok(
      (await world.read(assigned)).every((row) => row!.ownerEpoch === 2),
      "one hop each",
    );
  });

  it("goes on handling events while nobody answers, and counts what finished", async (t) => {
    const { world, a, b, assigned } = await pair(t, 5);
    b.deaf = true;
    const draining = a.drain();
    await world.advance(1_000);
    for (const { id, runs } of assigned.slice(0, 3)) await world.finish(id, runs);
    await world.rest();
    assert.deepEqual(a.owner.progress(), {
      owned: 5,
      handedOver: 0,
      finished: 3,
      waiting: 2,
      orphaned: 0,
      released: 0,
    });
    b.deaf = false;
    assert.deepEqual(await draining, { handedOver: 2, finished: 3, orphaned: 0, released: 0 });
  });

  it("survives a store that is away, and gives up at the limit", async (t) => {
    const world = await OwnershipWorld.open(t);
    const a = await world.node("a", { hardMs: 20_000 });
    await world.assign(5);
    const b = await world.node("b");
    b.deaf = true;
    a.faults.add("store");
    const draining = a.drain();
    await world.advance(20_000);
    await world.advance(2_500);
    assert.deepEqual(await draining, { handedOver: 0, finished: 0, orphaned: 0, released: 5 });
    assert.equal(a.jobs, 5, "the store says that they are ours");
    a.faults.clear();
    b.deaf = false;
    await a.owner.stop();
    await world.rest();
    assert.equal(b.owner.assignments, 5, "they go with the stop");
  });

  it("drops an offer of its own that it has thought better of", async (t) => {
    const { world, a, assigned } = await pair(t, 1);
    const body = { assignment: assigned[0]!.id, from: "a", ownerEpoch: 1, reason: "rebalance", at: "" };
    world.nodes[1]!.crash();
    await world.bus.send(queues.handoff, [{ key: "", body }]);
    await world.advance(1_000);
    assert.equal(a.owner.assignments, 1);
    assert.equal(a.counts.offers, 0);
    assert.equal((await world.read(assigned))[0]!.ownerEpoch, 1);
  });

  it("hands 3,000 jobs to two others in batches, none to both", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(3_000, 5);
    await world.until(() => a.jobs === 3_000, 60_000);
    const [b, c] = [await world.node("b"), await world.node("c")];
    assert.deepEqual(await a.drain(), { handedOver: 3_000, finished: 0, orphaned: 0, released: 0 });
    assert.equal(b.jobs + c.jobs, 3_000);
    assert.ok(b.jobs > 300 && c.jobs > 300, `${b.jobs} and ${c.jobs}`);
    assert.ok((await world.read(assigned)).every((row) => row!.ownerEpoch === 2));
    assert.ok(a.counts.largestSend <= 200);
    assert.ok(b.counts.own + c.counts.own <= 20, "taken in batches");
    assert.ok(b.counts.ackPublishes + c.counts.ackPublishes <= 20, "acknowledged in batches");
  });
});
