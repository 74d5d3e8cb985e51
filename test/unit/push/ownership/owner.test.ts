import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { queues } from "../../../../src/channels/channel-names.ts";
import { type LogFields, silentLog } from "../../../../src/platform/log.ts";
import { OwnershipWorld, owners } from "./world.ts";
import { settleRuns } from "../../../support/store-world.ts";

describe("an owner", () => {
  it("competes for assignments: each has one owner, and nobody gets them all", async (t) => {
    const { world, a, b, c } = await owners(t, "a", "b", "c");
    const assigned = await world.assign(300, 2);
    await world.until(() => a.jobs + b.jobs + c.jobs === 300, 30_000);
    const taken = await world.owners(assigned);
    assert.ok(taken.every((owner) => owner !== null));
    assert.equal(a.owner.assignments + b.owner.assignments + c.owner.assignments, 150);
    for (const node of [a, b, c]) assert.ok(node.jobs > 50, `${node.identity.name} has ${node.jobs}`);
  });

  it("writes what workers report, in order, and gives receipts", async (t) => {
    const { world, a } = await owners(t, "a");
    const [assigned] = await world.assign(3, 3);
    const [one, two] = assigned!.runs;
    await world.say(assigned!.id, one!, "first");
    await world.say(assigned!.id, one!, "second");
    const number = await world.finish(assigned!.id, [one!, two!], "last");
    await world.rest();
    assert.deepEqual(await world.lines(one!), ["first", "second", "last"]);
    assert.deepEqual(await world.statuses(assigned!.runs), ["completed", "completed", "processing"]);
    const receipt = world.receipts.find((known) => known.number === number)!;
    assert.deepEqual(receipt, {
      incarnation: "life-1",
      number,
      reported: ["accepted", "accepted"],
      settled: ["accepted", "accepted"],
    });
    assert.equal(world.receipts.length, 3);
    assert.equal(a.jobs, 1);
  });

  it("writes the events of many assignments together", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(500, 5);
    await world.until(() => a.jobs === 500, 30_000);
    await Promise.all(assigned.map(({ id, runs }) => world.finish(id, runs)));
    await world.rest();
    assert.deepEqual([a.jobs, a.owner.assignments], [0, 0]);
    assert.equal(a.counts.events, 100);
    assert.ok(a.counts.write <= 10, `${a.counts.write} writes`);
    assert.equal(world.receipts.length, 100);
  });

  it("counts a result that came twice once", async (t) => {
    const { world, a } = await owners(t, "a");
    const [assigned] = await world.assign(3, 3);
    await world.finish(assigned!.id, [assigned!.runs[0]!]);
    await world.rest();
    await world.finish(assigned!.id, [assigned!.runs[0]!]);
    await world.rest();
    assert.deepEqual(world.receipts.at(-1)!.settled, ["replayed"]);
    assert.deepEqual([a.jobs, a.owner.assignments], [2, 1]);
  });

  it("forgets what ended without a word to it, when it has been quiet", async (t) => {
    const { world, a } = await owners(t, "a");
    const [assigned, other] = await world.assign(2);
    await settleRuns(
      world.store,
      assigned!.runs.map((run) => ({ run, outcome: { kind: "completed", result: "1" } })),
    );
    await world.advance(4_000);
    assert.equal(a.owner.assignments, 2);
    await world.advance(3_000);
    await world.rest();
    assert.deepEqual([a.jobs, a.owner.assignments], [1, 1]);
    assert.deepEqual(await world.owners([assigned!, other!]), [null, "a"]);
  });

  it("finds out by itself when the last result went past it", async (t) => {
    const { world, a } = await owners(t, "a");
    const [assigned] = await world.assign(2, 2);
    const [one, two] = assigned!.runs;
    await settleRuns(world.store, [{ run: one!, outcome: { kind: "completed", result: "1" } }]);
    await world.finish(assigned!.id, [one!]);
    await world.finish(assigned!.id, [two!]);
    await world.advance(7_000);
    await world.rest();
    assert.deepEqual([a.jobs, a.owner.assignments], [0, 0]);
    assert.deepEqual(await world.read([assigned!]), [null]);
  });

  it("takes nothing twice when a message comes twice, also if the answer to its claim was lost", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.dispatch(4, 2);
    a.faults.add("answers");
    await world.announce(assigned);
    await world.advance(500);
    assert.equal(a.owner.assignments, 0);
    a.faults.clear();
    await world.until(() => a.owner.assignments === 2, 10_000);
    await world.announce(assigned);
    assert.equal(a.owner.assignments, 2);
    assert.deepEqual(
      (await world.read(assigned)).map((row) => row!.ownerEpoch),
      [1, 1],
    );
    await world.until(() => a.jobs === 4, 2_000);
    for (const { id, runs } of assigned) await world.finish(id, runs);
    await world.until(() => a.owner.assignments === 0, 2_000);
  });

  it("drops a message that is none, and goes on", async (t) => {
    const world = await OwnershipWorld.open(t);
    await world.node("a");
    const [assigned] = await world.assign(1);
    await world.bus.send(queues.jobStatus(assigned!.id), [{ key: "life-1", body: { nonsense: true } }]);
    await world.finish(assigned!.id, assigned!.runs);
    await world.rest();
    assert.deepEqual(await world.statuses(assigned!.runs), ["completed"]);
  });

  it("keeps nobody out because of one that the store can never take", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(3);
    const broken = { ...assigned[0]!.runs[0]!, id: null as never };
    a.refuses = (events) => events.some(({ settlements }) => settlements.some(({ run }) => run.id === null));
    await world.finish(assigned[0]!.id, [broken]);
    for (const { id, runs } of assigned.slice(1)) await world.finish(id, runs);
    await world.rest();
    assert.deepEqual(await world.statuses(assigned.flatMap((one) => one.runs)), [
      "processing",
      "completed",
      "completed",
    ]);
  });

  it("keeps events in hand while the store is away, in order, and tells it once", async (t) => {
    const world = await OwnershipWorld.open(t);
    const told: string[] = [];
    const log = { ...silentLog, error: (_: LogFields, message: string) => void told.push(message) };
    const a = await world.node("a", {}, log);
    const assigned = await world.assign(20, 10);
    a.faults.add("store");
    for (const { id, runs } of assigned) {
      await world.say(id, runs[0]!, "before");
      await world.finish(id, [runs[0]!], "after");
    }
    await world.advance(20_000);
    assert.equal(told.length, 1, told.join());
    a.faults.clear();
    await world.advance(2_000);
    await world.rest();
    for (const { runs } of assigned) assert.deepEqual(await world.lines(runs[0]!), ["before", "after"]);
    assert.equal(a.jobs, 18);
    assert.equal(world.receipts.length, 4);
  });
});

describe("an owner that was disowned", () => {
  it("lets go, and the next one gets what was not handled, in order", async (t) => {
    const { world, a } = await owners(t, "a");
    const [assigned] = await world.assign(1);
    const run = assigned!.runs[0]!;
    await world.say(assigned!.id, run, "one");
    await world.rest();
    const term = await world.term();
    await world.store.ownership.disown([a.identity.incarnation], term);
    const [row] = await world.read([assigned!]);
    for (const line of ["two", "three"]) await world.say(assigned!.id, run, line);
    await world.rest();
    assert.equal(a.owner.assignments, 0, "a null verdict makes it let go");
    assert.deepEqual(await world.lines(run), ["one"]);
    a.draining = true;
    void a.owner.drain({ hurry: new AbortController().signal });
    const b = await world.node("b");
    await world.bus.send(queues.handoff, [
      {
        key: "1",
        body: {
          assignment: assigned!.id,
          from: null,
          ownerEpoch: row!.ownerEpoch,
          reason: "node_crash",
          at: "",
        },
      },
    ]);
    await world.say(assigned!.id, run, "four");
    await world.rest();
    assert.equal(b.owner.assignments, 1);
    assert.deepEqual(await world.lines(run), ["one", "two", "three", "four"]);
  });

  it("learns of it also when nothing is reported", async (t) => {
    const { world, a } = await owners(t, "a");
    await world.assign(1);
    await world.store.ownership.disown([a.identity.incarnation], await world.term());
    await world.advance(7_000);
    await world.rest();
    assert.equal(a.owner.assignments, 0);
  });
});

describe("a stop without a drain", () => {
  it("releases everything at once, and others take it", async (t) => {
    const { world, a } = await owners(t, "a");
    const assigned = await world.assign(10);
    const b = await world.node("b");
    await a.owner.stop();
    a.crash();
    await world.rest();
    assert.deepEqual(new Set(await world.owners(assigned)), new Set(["b"]));
    assert.deepEqual([a.jobs, b.owner.assignments], [0, 10]);
  });

  it("does not hang on a store that is away", async (t) => {
    const { world, a } = await owners(t, "a");
    const [assigned] = await world.assign(1);
    a.faults.add("store");
    await world.finish(assigned!.id, assigned!.runs);
    await world.rest();
    let stopped = false;
    void a.owner.stop().then(() => (stopped = true));
    await world.until(() => stopped, 5_000);
  });
});
