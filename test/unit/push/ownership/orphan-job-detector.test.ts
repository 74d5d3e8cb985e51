import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Term } from "../../../../src/core/leadership/term.ts";
import { OwnershipWorld, owners, type Assigned, type OwnerNode } from "./world.ts";

/** As the leader's watch over the nodes does when one has died. */
async function bury(world: OwnershipWorld, dead: OwnerNode, leader: OwnerNode, term: Term): Promise<number> {
  dead.crash();
  await world.rest();
  return leader.owner.orphans.disown([dead.identity], term);
}

async function ownedBy(world: OwnershipWorld, assigned: readonly Assigned[], names: string[]): Promise<void> {
  await world.until(async () => {
    const owners = await world.owners(assigned);
    return owners.every((owner) => owner !== null && names.includes(owner));
  }, 10_000);
}

describe("assignments of a node that died", () => {
  it("are offered and owned again at once, with all that was reported meanwhile", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(20, 2);
    const [b, c] = [await world.node("b"), await world.node("c")];
    const term = await world.term(b.identity);
    b.lead(term);
    a.crash();
    for (const { id, runs } of assigned) await world.say(id, runs[0]!, "into the void");
    assert.equal(await bury(world, a, b, term), 10);
    await world.rest();
    assert.ok((await world.owners(assigned)).every((owner) => owner === "b" || owner === "c"));
    for (const { runs } of assigned) assert.deepEqual(await world.lines(runs[0]!), ["into the void"]);
    await world.until(() => b.jobs + c.jobs === 20, 2_000);
    assert.ok((await world.read(assigned)).every((row) => row!.ownerEpoch === 2));
  });

  it("are offered again when the offers were lost", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(5);
    a.crash();
    await world.rest();
    await world.store.ownership.disown([a.identity.incarnation], await world.term());
    // A leader found them, and died before it could send anything.
    const look = { unownedForMs: 0, offeredBeforeMs: 0, limit: 100 };
    assert.equal((await world.store.ownership.orphans(look, await world.term())).length, 5);
    const b = await world.node("b");
    b.lead(await world.term(b.identity));
    await world.rest();
    assert.equal(b.owner.assignments, 0, "they may be on their way to somebody");
    await ownedBy(world, assigned, ["b"]);
  });

  it("are taken when all owners have died and come back", async (t) => {
    const { world, a, b } = await owners(t, "a", "b");
    const assigned = await world.assign(60);
    await world.until(() => a.jobs + b.jobs === 60, 10_000);
    const term = await world.term();
    a.crash();
    b.crash();
    await world.rest();
    for (const { id, runs } of assigned) await world.finish(id, runs, "while nobody was there");
    const lives = [a.identity.incarnation, b.identity.incarnation];
    await world.store.ownership.disown(lives, term);
    const again = await world.node("a");
    again.lead(await world.term(again.identity));
    await world.until(async () => (await world.read(assigned)).every((row) => row === null), 10_000);
    const runs = assigned.flatMap((one) => one.runs);
    assert.ok((await world.statuses(runs)).every((status) => status === "completed"));
    assert.equal(again.owner.assignments, 0);
  });

  it("are counted anew by who takes them", async (t) => {
    const { world, a } = await owners(t, "a");
    const [assigned] = await world.assign(10, 10);
    await world.finish(assigned!.id, assigned!.runs.slice(0, 4));
    await world.rest();
    const b = await world.node("b");
    const term = await world.term(b.identity);
    b.lead(term);
    await bury(world, a, b, term);
    await world.rest();
    // Before the new owner knows how many there are, one of them ends: the others are not forgotten with it.
    await world.finish(assigned!.id, [assigned!.runs[4]!]);
    await world.rest();
    assert.equal(b.owner.assignments, 1);
    await world.until(() => b.jobs === 5, 2_000);
    await world.finish(assigned!.id, assigned!.runs.slice(5));
    await world.rest();
    assert.equal(b.owner.assignments, 0);
  });
});

describe("the duty that looks for orphans", () => {
  it("finds what was dispatched and never announced", async (t) => {
    const world = await OwnershipWorld.open(t);
    const a = await world.node("a", { orphanCheckMs: 1_000 });
    a.lead(await world.term(a.identity));
    const assigned = await world.dispatch(3);
    await world.advance(4_000);
    assert.equal(a.owner.assignments, 0, "the announcement may be on its way");
    await ownedBy(world, assigned, ["a"]);
  });

  it("offers nothing while nobody could take it", async (t) => {
    const { world, a } = await owners(t, "a");
    await a.drain();
    const assigned = await world.dispatch(3);
    a.lead(await world.term(a.identity));
    await world.advance(60_000);
    assert.equal(a.counts.offers, 0);
    const b = await world.node("b");
    await ownedBy(world, assigned, ["b"]);
    assert.equal(b.owner.assignments, 3);
  });

  it("tells how many there are and how long the oldest has been one, until they are taken", async (t) => {
    const world = await OwnershipWorld.open(t);
    const a = await world.node("a", { orphanCheckMs: 1_000 });
    a.lead(await world.term(a.identity));
    assert.deepEqual(a.owner.orphans.found(), { count: 0, oldestMs: 0 });
    const assigned = await world.dispatch(3);
    await ownedBy(world, assigned, ["a"]);
    assert.equal(a.owner.orphans.found().count, 3);
    const { oldestMs } = a.owner.orphans.found();
    await world.advance(2_000);
    assert.equal(a.owner.orphans.found().oldestMs, oldestMs + 2_000);
    await world.advance(15_000);
    assert.deepEqual(a.owner.orphans.found(), { count: 0, oldestMs: 0 });
  });

  it("ends with its term", async (t) => {
    const { world, a } = await owners(t, "a");
    const ended = new AbortController();
    const duty = a.owner.orphans.duty(await world.term(a.identity), ended.signal);
    await world.advance(1_000);
    ended.abort();
    await duty;
  });

  it("offers hundreds in batches", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(1_200, 3);
    await world.until(() => a.jobs === 1_200, 60_000);
    const [b, c] = [await world.node("b"), await world.node("c")];
    const term = await world.term(b.identity);
    b.lead(term);
    assert.equal(await bury(world, a, b, term), 400);
    await ownedBy(world, assigned, ["b", "c"]);
    assert.ok(b.counts.largestSend <= 200);
    await world.until(() => b.jobs + c.jobs === 1_200, 3_000);
  });
});

describe("assignments of a node that left without giving them up", () => {
  it("are found, as nobody knows their owner any more", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(6, 2);
    const b = await world.node("b");
    a.faults.add("store");
    const left = a.owner.stop();
    await world.advance(5_000);
    await left;
    world.nodes.splice(world.nodes.indexOf(a), 1);
    assert.deepEqual(new Set(await world.owners(assigned)), new Set(["a"]), "the store has not heard of it");
    b.lead(await world.term(b.identity));
    await ownedBy(world, assigned, ["b"]);
  });

  it("stay with an owner that is not known yet, because it has just joined", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(6, 2);
    const b = await world.node("b");
    const joining = world.nodes.splice(world.nodes.indexOf(a), 1);
    b.lead(await world.term(b.identity));
    await world.advance(4_000);
    world.nodes.push(...joining);
    for (let second = 0; second < 10; second++) await world.advance(1_000);
    assert.deepEqual(await world.owners(assigned), ["a", "a", "a"]);
    assert.ok((await world.read(assigned)).every((row) => row!.ownerEpoch === 1));
  });
});
