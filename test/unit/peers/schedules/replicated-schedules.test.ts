import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { hasCode } from "../../../../src/core/errors.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { definition, ReplicaWorld, SECOND_MS } from "../../../support/replica-world.ts";
import { column, columns } from "../../../support/columns.ts";

const DAY_MS = 24 * 3_600_000;
const code = (wanted: Parameters<typeof hasCode>[1]) => (error: unknown) => hasCode(error, wanted);

void describe("definitions that a majority keeps", () => {
  void test("a change is on every node once it is answered and everybody was there", () =>
    ReplicaWorld.led(async (world, a, b, c) => {
      for (const name of [a, b, c]) assert.equal((await world.of(name).get("tick"))?.payload, "1");
      await world.during(world.of(a).setPaused("tick", true, null));
      for (const name of [b, c]) assert.equal((await world.of(name).list())[0]!.paused, true);
      assert.equal(await world.during(world.of(a).remove("tick")), true);
      for (const name of [a, b, c]) assert.deepEqual(await world.of(name).list(), []);
    }));

  void test("a node that does not lead changes nothing", () =>
    ReplicaWorld.with(3, async (world, a, b) => {
      await world.elect(a);
      for (const change of [
        () => world.of(b).put(definition(), 1),
        () => world.of(b).remove("tick"),
        () => world.of(b).setPaused("tick", true, null),
      ]) {
        await assert.rejects(async () => change(), code("NOT_LEADER"));
      }
      assert.deepEqual(await world.of(b).list(), []);
    }));

  void test("without a majority nothing is answered; with it the same change again is known already", () =>
    ReplicaWorld.with(3, async (world, a) => {
      await world.elect(a);
      world.isolate(a);
      await assert.rejects(world.put(a), code("STORE_UNAVAILABLE"));
      world.network.heal();
      assert.equal((await world.put(a)).outcome, "unchanged");
      for (const name of world.members) assert.equal((await world.of(name).list()).length, 1);
    }));

  void test("an old leader that others have left behind is refused, also when it does not know", () =>
    ReplicaWorld.led(async (world, a, b) => {
      world.isolate(a);
      await world.elect(b);
      await world.put(b, { payload: "2" });
      world.network.heal();
      await assert.rejects(world.put(a, { payload: "3" }), code("STALE_EPOCH"));
      await assert.rejects(world.fire(a), code("STALE_EPOCH"));
      await world.clock.advance(5_000);
      for (const name of [b, world.members[2]!])
        assert.equal((await world.of(name).get("tick"))!.payload, "2");
      assert.deepEqual(await world.jobs(), []);
    }));

  void test("a node that was away learns what it has missed, with what was fired meanwhile", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(a);
      await world.put(a, { name: "gone" });
      await world.kill(c);
      await world.put(a);
      await world.during(world.of(a).remove("gone"));
      world.targets = [b];
      await world.fire(a);
      await world.start(c);
      await world.clock.advance(3_000);
      assert.deepEqual(column(await world.of(c).list(), "name"), ["tick"]);
      assert.deepEqual(await world.history(c), await world.history(a));
    }));

  void test("a node that misses a note while it is given all the others does not pass for complete", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      const notes = world.disks.get(c)!.scheduleNotes;
      const write = notes.write.bind(notes);
      const gate = Promise.withResolvers<void>();
      const busy = mock.method(notes, "write", async (...[batch, term]: Parameters<typeof write>) => {
        if (batch.complete) await gate.promise;
        else if (batch.notes.length > 0) throw new Error("the disk is busy");
        return write(batch, term);
      });
      await world.elect(a);
      await world.put(a);
      busy.mock.restore();
      gate.resolve();
      await world.clock.advance(5_000);
      assert.equal((await world.of(c).list()).length, 1);
      assert.equal((await world.of(b).list()).length, 1);
    }));

  void test("what was removed does not come back with a node that was away", () =>
    ReplicaWorld.led(async (world, a, b, c) => {
      await world.kill(c);
      await world.during(world.of(a).remove("tick"));
      await world.kill(a);
      await world.start(c);
      await world.elect(c);
      await world.clock.advance(2_000);
      for (const name of [b, c]) assert.deepEqual(await world.of(name).list(), []);
    }));

  void test("a removal is forgotten when it is old and everybody knows it, and not before", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      const kept = async (name: NodeName): Promise<boolean> =>
        (await world.disks.get(name)!.scheduleNotes.read({ name: "tick" })).notes.length > 0;
      await world.elect(a);
      await world.put(a);
      await world.kill(c);
      await world.during(world.of(a).remove("tick"));
      world.clock.setWall(world.clock.now() + 2 * DAY_MS);
      await world.clock.advance(3_000);
      assert.deepEqual([await kept(a), await kept(b)], [true, true]);
      await world.start(c);
      await world.clock.advance(5_000);
      for (const name of world.members) assert.equal(await kept(name), false);
      assert.equal((await world.put(a)).outcome, "created");
    }));

  void test("what a node had before it joined becomes the cluster's", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.disks.get(c)!.schedules.put(definition({ name: "old" }), 5);
      await world.elect(a);
      await world.clock.advance(3_000);
      for (const name of [a, b, c]) assert.equal((await world.of(name).get("old"))?.nextAt, 5);
    }));

  void test("an empty disk is no witness: what one of two others alone still has is found", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(a);
      await world.put(a, { name: "first" });
      await world.kill(c);
      await world.put(a); // noted by a and b
      world.depose(a);
      world.isolate(a);
      await world.kill(b);
      await world.start(b, true);
      await world.start(c);
      await world.elect(c, { duty: false });
      await assert.rejects(world.put(c, { name: "second" }), code("STORE_UNAVAILABLE"));
      world.network.heal();
      await world.put(c, { name: "second" });
      const names = ["first", "second", "tick"];
      assert.deepEqual(column(await world.of(b).list(), "name"), names);
    }));
});

void describe("occurrences that a majority notes", () => {
  void test("a job is stored at its target under an id that leads there, and the history tells it everywhere", () =>
    ReplicaWorld.led(async (world, a, b, c) => {
      world.targets = [b];
      assert.deepEqual(await world.fire(a), ["fired"]);
      assert.deepEqual(await world.jobs(), ["node-b 0"]);
      await world.clock.advance(2_000);
      for (const name of [a, b, c]) {
        const [noted] = await world.history(name);
        assert.equal(noted!.job?.startsWith("node-b-"), true);
        assert.equal(noted!.awaits, undefined);
        assert.equal((await world.of(name).get("tick"))!.lastJob, noted!.job);
      }
    }));

  void test("without a majority's note no job is made; it is made once when there is one", () =>
    ReplicaWorld.led(async (world, a) => {
      world.isolate(a);
      await assert.rejects(world.fire(a), code("STORE_UNAVAILABLE"));
      assert.deepEqual(await world.jobs(), []);
      world.network.heal();
      await world.clock.advance(3_000);
      assert.deepEqual(await world.jobs(), ["node-a 0"]);
      assert.deepEqual(await world.fire(a), ["fired"]);
      assert.deepEqual(await world.jobs(), ["node-a 0", "node-a 1"]);
    }));

  void test("a new leader finishes what the old one intended: the same job at the same node", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(a, { duty: false });
      await world.put(a);
      // The note arrives everywhere, the job does not.
      world.targets = [c];
      const silent = mock.method(world.disks.get(c)!.scheduleNotes, "place", () => new Promise(() => {}));
      await world.fire(a);
      const [intended] = await world.history(b);
      assert.equal(intended!.awaits, c);
      silent.mock.restore();
      await world.kill(a);
      world.targets = [b];
      await world.elect(b);
      await world.clock.advance(2_000);
      assert.deepEqual(await world.jobs(), ["node-c 0"]);
      assert.notEqual(await world.disks.get(c)!.jobs.get(intended!.job!), null);
      assert.equal((await world.history(b))[0]!.awaits, undefined);
    }));

  void test("what an old leader may have brought to a node stays with that node, however long it is dead", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(a, { duty: false });
      await world.put(a);
      world.targets = [c];
      await world.fire(a);
      await world.kill(c);
      world.depose(a);
      world.targets = [b];
      await world.elect(b);
      await world.clock.advance(20_000);
      assert.equal((await world.history(b))[0]!.awaits, c);
      assert.deepEqual(await world.jobs(), ["node-c 0"]);
      await world.start(c);
      await world.clock.advance(3_000);
      assert.equal((await world.history(b))[0]!.awaits, undefined);
      assert.deepEqual(await world.jobs(), ["node-c 0"]);
    }));

  void test("what an old leader noted alone is no ground for a change", () =>
    ReplicaWorld.with(3, async (world, a, b) => {
      const at = world.clock.now();
      await world.elect(a, { duty: false });
      await world.put(a, {}, at);
      world.isolate(a);
      await assert.rejects(world.fire(a), code("STORE_UNAVAILABLE"));
      await world.elect(b);
      world.depose(b);
      world.network.heal();
      await world.elect(a, { duty: false });
      assert.equal((await world.during(world.of(a).get("tick")))!.nextAt, at);
    }));

  void test("a node that does not answer is asked until it does, and the schedule goes on meanwhile", () =>
    ReplicaWorld.led(async (world, a, b, c) => {
      world.targets = [c];
      world.isolate(c);
      assert.deepEqual(await world.fire(a), ["fired"]);
      assert.equal((await world.history(a))[0]!.awaits, c);
      world.targets = [b];
      assert.deepEqual(await world.fire(a), ["fired"]);
      await world.clock.advance(5_000);
      // That nobody is there now does not tell what became of the first try.
      world.isolate(c, "refused");
      await world.clock.advance(5_000);
      assert.deepEqual(await world.jobs(), ["node-b 1"]);
      world.network.heal();
      await world.clock.advance(5_000);
      assert.deepEqual(await world.jobs(), ["node-b 1", "node-c 0"]);
      assert.equal(
        (await world.history(a)).some(({ awaits }) => awaits),
        false,
      );
    }));

  void test("a node that cannot be reached at all is passed over", () =>
    ReplicaWorld.led(async (world, a, b, c) => {
      world.targets = [c, b];
      await world.kill(c);
      assert.deepEqual(await world.fire(a), ["fired"]);
      assert.deepEqual(await world.jobs(), ["node-b 0"]);
      const [noted] = await world.history(a);
      assert.equal(noted!.job?.startsWith("node-b-"), true);
      assert.equal((await world.of(a).get("tick"))!.lastJob, noted!.job);
    }));

  void test("a draining node refuses for good, and another one gets the job", () =>
    ReplicaWorld.led(async (world, a, b, c) => {
      world.targets = [c, b];
      world.draining.add(c);
      assert.deepEqual(await world.fire(a), ["fired"]);
      assert.deepEqual(await world.jobs(), ["node-b 0"]);
      world.draining.clear();
      await world.clock.advance(5_000);
      assert.deepEqual(await world.jobs(), ["node-b 0"]);
    }));

  void test("when all drain the job waits, and is made when one takes work again", () =>
    ReplicaWorld.led(async (world, a) => {
      for (const name of world.members) world.draining.add(name);
      assert.deepEqual(await world.fire(a), ["fired"]);
      await world.clock.advance(3_000);
      assert.deepEqual(await world.jobs(), []);
      world.draining.clear();
      await world.clock.advance(3_000);
      assert.equal((await world.jobs()).length, 1);
    }));

  void test("a job that was removed after it ran is not made again by a leader that asks for it", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(a, { duty: false });
      await world.put(a);
      world.targets = [c];
      await world.fire(a);
      const [noted] = await world.history(c);
      assert.equal(await world.disks.get(c)!.jobs.remove(noted!.job!), "removed");
      await world.kill(a);
      await world.elect(b);
      await world.clock.advance(3_000);
      assert.deepEqual(await world.jobs(), []);
      assert.equal((await world.history(b))[0]!.awaits, undefined);
    }));

  void test("a schedule that was put back does not repeat what others noted", () =>
    ReplicaWorld.with(3, async (world, a, b) => {
      const at = world.clock.now();
      await world.elect(a);
      await world.put(a, {}, at);
      world.isolate(b);
      await world.fire(a);
      await world.kill(a);
      world.network.heal();
      await world.elect(b, { duty: false });
      await world.put(b, { payload: "2" }, at);
      assert.deepEqual(await world.fire(b), ["already"]);
      assert.equal((await world.jobs()).length, 1);
    }));

  void test("two that were removed and join again with their old notes repeat nothing without the third", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(c);
      await world.put(c);
      await world.clock.advance(2_000);
      world.leave(a);
      world.leave(b);
      world.targets = [c];
      await world.fire(c);
      await world.kill(c);
      world.join(a);
      world.join(b);
      world.targets = [a];
      await world.elect(a);
      await assert.rejects(world.fire(a), code("STORE_UNAVAILABLE"));
      await world.start(c);
      await world.clock.advance(5_000);
      await world.fire(a);
      assert.deepEqual(await world.jobs(), ["node-a 1", "node-c 0"]);
      await world.kill(c);
      await world.fire(a);
      assert.deepEqual(await world.jobs(), ["node-a 1", "node-a 2", "node-c 0"]);
    }));

  void test("one that was removed and has joined again in the same term learns what it has missed", () =>
    ReplicaWorld.led(async (world, a, _b, c) => {
      await world.clock.advance(2_000);
      world.leave(c);
      await world.during(world.of(a).setPaused("tick", true, null));
      world.join(c);
      await world.clock.advance(2_000);
      assert.equal((await world.of(c).get("tick"))!.paused, true);
    }));

  void test("overlap is avoided also when the job before is on another node", () =>
    ReplicaWorld.with(3, async (world, a, b) => {
      await world.elect(a);
      await world.put(a, { overlap: "skip" });
      world.targets = [b];
      assert.deepEqual(await world.fire(a, { overlap: "skip" }), ["fired"]);
      assert.deepEqual(await world.fire(a, { overlap: "skip" }), ["skipped"]);
      const [, first] = await world.history(a);
      await world.disks.get(b)!.jobs.cancel(first!.job!, null);
      assert.deepEqual(await world.fire(a, { overlap: "skip" }), ["fired"]);
    }));

  void test("a predecessor that nobody can ask about counts as running, and the log says so", () =>
    ReplicaWorld.with(3, async (world, a, b) => {
      await world.elect(a);
      await world.put(a, { overlap: "skip" });
      world.targets = [b];
      await world.fire(a, { overlap: "skip" });
      await world.clock.advance(2_000);
      await world.kill(b);
      assert.deepEqual(await world.fire(a, { overlap: "skip" }), ["skipped"]);
      assert.equal(world.warnings.filter((text) => text.includes("taken to overlap")).length, 1);
    }));

  void test("runs outlive the removal of their schedule with the payload that they were intended with", () =>
    ReplicaWorld.led(async (world, a, b, c) => {
      world.targets = [c];
      world.isolate(c);
      await world.fire(a);
      await world.put(a, { payload: "2" }, world.clock.now() + SECOND_MS);
      await world.during(world.of(a).remove("tick"));
      world.network.heal();
      await world.clock.advance(5_000);
      const { jobs } = await world.disks.get(c)!.jobs.list({ limit: 5 });
      assert.deepEqual(columns(jobs, "payload", "schedule"), [["1", "tick"]]);
      assert.deepEqual(await world.of(b).list(), []);
    }));
});

void describe("the door for peers", () => {
  const ask = (world: ReplicaWorld, path: string, body: string, method: "GET" | "POST" = "POST") =>
    world.nodes.get(world.members[0]!)!.handle({ from: "node-b", method, path, headers: {}, body });

  void test("bad input is answered with what is wrong, and changes nothing", () =>
    ReplicaWorld.with(1, async (world) => {
      const cases: [string, string, "GET" | "POST", number, RegExp][] = [
        ["/peer/schedules/nothing", "{}", "POST", 404, /nothing/],
        ["/peer/schedules/__proto__", "{}", "POST", 404, /__proto__/],
        ["/peer/other", "{}", "POST", 404, /other/],
        ["/peer/schedules/note", "{}", "GET", 405, /POST/],
        ["/peer/schedules/note", "not json", "POST", 400, /JSON/],
        ["/peer/schedules/note", "{}", "POST", 400, /term/],
        ["/peer/schedules/read", '{"term":{"role":"king"},"after":null}', "POST", 400, /term\.role/],
        ["/peer/schedules/job", '{"job":7}', "POST", 400, /job/],
      ];
      for (const [path, body, method, status, message] of cases) {
        const reply = await ask(world, path, body, method);
        assert.equal(reply.status, status, path);
        assert.match(reply.body!, message);
      }
      assert.equal(await world.disks.get(world.members[0]!)!.terms.read("scheduler"), null);
    }));

  void test("a term that is over is told so", () =>
    ReplicaWorld.with(1, async (world, a) => {
      await world.elect(a);
      await world.elect(a);
      await world.put(a);
      const term = { role: "scheduler", leader: a, incarnation: "1", epoch: 1 };
      const reply = await ask(world, "/peer/schedules/read", JSON.stringify({ term, after: null }));
      assert.equal(reply.status, 409);
      assert.match(reply.body!, /STALE_EPOCH/);
    }));
});
