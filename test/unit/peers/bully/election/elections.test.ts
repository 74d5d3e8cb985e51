/** Elections of peers under the failures that are known by name. Time moves by hand. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PeerSim, type SimOptions } from "../../../../support/peer-sim.ts";
import { columns } from "../../../../support/columns.ts";

const THREE = ["node-a", "node-b", "node-c"];

function silent(notes: readonly string[]): boolean {
  return notes.every((note) => note.startsWith("split brain possible"));
}

async function cluster(options: Partial<SimOptions> = {}): Promise<PeerSim> {
  const sim = new PeerSim({ names: THREE, ...options });
  await sim.startAll();
  const voting = (): boolean =>
    [...sim.nodes.values()].every(({ coordination }) => silent(coordination.notes()));
  await sim.until("agreement", () => sim.agreed() && voting(), 10_000);
  return sim;
}

describe("an election of peers", () => {
  test("the highest name leads a cluster that begins, and everybody says so", async () => {
    await using sim = await cluster();
    assert.equal(sim.leaders()[0]?.name, "node-c");
    assert.equal(sim.grants.length, 1);
  });

  test("a leader that is killed is replaced by the highest that is left, within two seconds", async () => {
    await using sim = await cluster();
    sim.kill("node-c");
    const took = await sim.until("a new leader", () => sim.leaders().length === 1, 2_000);
    assert.equal(sim.leaders()[0]?.name, "node-b");
    assert.ok(took < 500, `${took} ms`);
  });

  test("five dead higher peers make it no slower", async () => {
    const names = Array.from({ length: 13 }, (_, i) => `node-${String(i).padStart(2, "0")}`);
    await using sim = new PeerSim({ names });
    // The five highest but one are dead from the beginning, with their machines, so that nobody even refuses.
    const dead = names.slice(7, 12);
    for (const name of names) if (!dead.includes(name)) await sim.start(name);
    for (const name of dead) sim.isolate(name);
    await sim.until("a leader", () => sim.leaders().length === 1, 10_000);
    assert.equal(sim.leaders()[0]?.name, "node-12");
    await sim.pass(6_000);
    sim.kill("node-12");
    const took = await sim.until("a new leader", () => sim.leaders().length === 1, 2_000);
    assert.equal(sim.leaders()[0]?.name, "node-06");
    assert.ok(took < 500, `${took} ms`);
  });

  test("a leader whose machine dies is replaced when its lease has ended", async () => {
    await using sim = await cluster();
    sim.kill("node-c", { machine: true });
    await sim.pass(3_000);
    assert.equal(sim.leaders().length, 0, "its lease is not over");
    const took = await sim.until("a new leader", () => sim.leaders().length === 1, 4_500);
    assert.ok(took > 500, `${took} ms`);
  });

  test("a leader that is stopped loses its term after the lease, and follows when it runs again", async () => {
    await using sim = await cluster();
    const old = sim.node("node-c");
    old.clock.pause();
    await sim.until(
      "a new leader",
      () => sim.leaders().length === 1 && sim.leaders()[0]!.name === "node-b",
      8_000,
    );
    assert.ok(sim.grants.length === 2);
    old.clock.resume();
    await sim.until("agreement", () => sim.agreed(), 3_000);
    await sim.pass(5_000);
    assert.equal(sim.leaders()[0]?.name, "node-b");
  });

  test("a leader that stops well hands over at once", async () => {
    await using sim = await cluster();
    const { elector } = sim.node("node-c");
    const stopped = elector.stop();
    const took = await sim.until("node-b leads", () => sim.leaders()[0]?.name === "node-b", 2_000);
    assert.ok(took < 500, `${took} ms`);
    await stopped;
    // A node that does not stand is not waited for.
    sim.kill("node-b");
    const next = await sim.until("a third leader", () => sim.leaders().length === 1, 6_000).catch(() => null);
    assert.ok(next !== null && next < 500, `node-c, which does not stand, was waited for: ${next} ms`);
    assert.equal(sim.leaders()[0]?.name, "node-a");
  });

  test("a resigning leader lets the others go first", async () => {
    await using sim = await cluster();
    const resigned = sim.node("node-c").elector.resign();
    await sim.until("node-b leads", () => sim.leaders()[0]?.name === "node-b", 2_000);
    await resigned;
  });

  test("S43: split into single nodes nobody leads, and after the heal one does within five seconds", async () => {
    await using sim = await cluster();
    sim.split(["node-a"], ["node-b"], ["node-c"]);
    await sim.until("no leader", () => sim.leaders().length === 0, 4_000);
    await sim.pass(20_000);
    assert.equal(sim.leaders().length, 0);
    assert.match(sim.node("node-a").coordination.notes().join(), /nobody can lead: 1 of 3/);
    sim.network.heal();
    const took = await sim.until("agreement", () => sim.agreed(), 5_000);
    assert.ok(took < 5_000);
    assert.equal(sim.grants.length, 2, "no epoch was used up while nobody could win");
    await sim.until("no notes", () => sim.node("node-a").coordination.notes().length === 0, 5_000);
  });

  test("S44: a leader in the minority steps down, the majority elects, and the heal costs no further term", async () => {
    await using sim = await cluster();
    sim.split(["node-c"], ["node-a", "node-b"]);
    await sim.until("no leader", () => sim.leaders().length === 0, 4_000);
    await sim.until("a new leader", () => sim.leaders().length === 1, 4_000);
    assert.equal(sim.leaders()[0]?.name, "node-b");
    await sim.pass(10_000);
    sim.network.heal();
    await sim.until("agreement", () => sim.agreed(), 3_000);
    await sim.pass(10_000);
    assert.deepEqual(columns(sim.grants, "leader", "epoch"), [
      ["node-c", 1],
      ["node-b", 2],
    ]);
  });

  test("S45: a follower that was cut off comes back without an election, also when it is the highest", async () => {
    await using sim = await cluster();
    sim.kill("node-c");
    await sim.until("node-b leads", () => sim.leaders()[0]?.name === "node-b", 2_000);
    await sim.start("node-c");
    await sim.until("agreement", () => sim.agreed(), 3_000);
    sim.split(["node-c"], ["node-a", "node-b"]);
    await sim.pass(30_000);
    sim.network.heal();
    await sim.pass(10_000);
    assert.ok(sim.agreed());
    assert.equal(sim.grants.length, 2);
  });

  test("S48: a link that flaps every second for a minute causes at most two changes", async () => {
    for (const [x, y] of [
      ["node-c", "node-b"],
      ["node-c", "node-a"],
      ["node-a", "node-b"],
    ] as const) {
      await using sim = await cluster();
      const before = sim.grants.length;
      for (let second = 0; second < 60; second++) {
        if (second % 2) {
          sim.network.heal();
        } else {
          sim.cut(x, y);
          sim.cut(y, x);
        }
        await sim.pass(1_000);
      }
      assert.ok(sim.grants.length - before <= 2, `${sim.grants.length - before} changes`);
    }
  });

  test("S49: a late message of an earlier leader changes nothing", async () => {
    await using sim = await cluster();
    const { coordination, identity } = sim.node("node-c");
    const [first] = sim.grants;
    sim.kill("node-c");
    await sim.until("a new leader", () => sim.leaders().length === 1, 2_000);
    const a = sim.node("node-a").coordination;
    await sim.until("node-a knows", () => a.leader()?.leader === "node-b", 1_000);
    const word = {
      from: identity,
      set: null,
      term: { name: first!.leader, incarnation: first!.incarnation, epoch: first!.epoch },
      ttlMs: 5_000,
      granted: true,
      acquiredAt: 1,
    };
    const reply = await a.handle({
      from: "node-c",
      method: "POST",
      path: "/peer/coordinator",
      headers: {},
      body: JSON.stringify(word),
    });
    assert.equal(JSON.parse(reply.body!).answer, "denied");
    assert.equal(a.leader()?.leader, "node-b");
    assert.ok(coordination);
  });

  test("S51: a voter that has lost its disk keeps still until it has heard a leader for a whole lease", async () => {
    await using sim = await cluster();
    sim.kill("node-a");
    sim.disk("node-a").lose();
    await sim.start("node-a");
    await sim.pass(1_000);
    assert.match(sim.node("node-a").coordination.notes().join(), /does not vote yet/);
    // Only two votes are left, so without the leader there is no majority of those that remember.
    sim.kill("node-c");
    await sim.pass(3_000);
    assert.equal(sim.leaders().length, 0);
    await sim.start("node-c");
    await sim.until("a leader", () => sim.leaders().length === 1, 3_000);
    await sim.until("it votes", () => sim.node("node-a").coordination.notes().length === 0, 8_000);
  });

  test("S52: names are compared as text, or by their numbers if told so", async () => {
    const names = ["node2", "node9", "node10"];
    for (const [order, highest] of [
      ["text", "node9"],
      ["natural", "node10"],
    ] as const) {
      await using sim = new PeerSim({ names, settings: { order } });
      await sim.startAll();
      assert.equal((await sim.leader()).name, highest);
    }
  });

  test("S53: of two nodes neither leads when the other dies, and the notes say why", async () => {
    await using sim = new PeerSim({ names: ["node-a", "node-b"] });
    await sim.startAll();
    await sim.until("agreement", () => sim.agreed(), 10_000);
    sim.kill("node-a");
    await sim.pass(20_000);
    assert.equal(sim.leaders().length, 0);
    assert.match(sim.node("node-b").coordination.notes().join(), /1 of 2 voters.*a third node would/);
  });

  test("S56: the highest name that comes back with an empty disk does not displace a healthy leader", async () => {
    await using sim = await cluster();
    sim.kill("node-c");
    sim.disk("node-c").lose();
    await sim.until("a new leader", () => sim.leaders().length === 1, 2_000);
    await sim.start("node-c");
    await sim.pass(20_000);
    assert.ok(sim.agreed());
    assert.equal(sim.leaders()[0]?.name, "node-b");
    assert.equal(sim.grants.length, 2);
  });

  test("S57: half a second of delay, or a fifth of all messages lost, makes nobody lose its term", async () => {
    for (const faults of [
      { delayMs: 450, jitterMs: 50 },
      { delayMs: 0, jitterMs: 20, loss: 0.2, duplicates: 0.1 },
    ]) {
      await using sim = await cluster();
      sim.network.usual = { ...sim.network.usual, ...faults };
      await sim.pass(60_000, 250);
      assert.equal(sim.grants.length, 1);
      assert.equal(sim.leaders()[0]?.name, "node-c");
    }
  });

  test("all nodes restart at once: one leads within two seconds, under a new epoch", async () => {
    await using sim = await cluster();
    for (const name of THREE) sim.kill(name);
    for (const name of THREE) await sim.start(name);
    await sim.until("a leader", () => sim.leaders().length === 1, 2_000);
    assert.equal(sim.grants.at(-1)?.epoch, 2);
  });

  test("a higher peer that answers and cannot win is passed over", async () => {
    await using sim = await cluster({ names: ["node-a", "node-b", "node-c", "node-d", "node-e"] });
    assert.equal(sim.leaders()[0]?.name, "node-e");
    // node-d hears everybody, and only node-c hears node-d's questions: two of five are no majority.
    for (const other of ["node-a", "node-b"]) sim.cut("node-d", other);
    sim.kill("node-e");
    await sim.until("a leader", () => sim.leaders().length === 1, 5_000);
    assert.notEqual(sim.leaders()[0]?.name, "node-d");
  });

  test("a slow disk makes an election slower and no less safe", async () => {
    await using sim = await cluster({ writeMs: 30 });
    sim.kill("node-c");
    const took = await sim.until("a new leader", () => sim.leaders().length === 1, 2_000);
    assert.ok(took >= 30, `${took} ms: a promise left before it was on disk`);
  });
});

describe("peers without a quorum", () => {
  const settings = { quorum: "none" } as const;

  test("lead alone, say that a split brain is possible, and converge by themselves after a heal", async () => {
    await using sim = await cluster({ settings });
    assert.match(sim.node("node-a").coordination.notes().join(), /split brain possible/);
    sim.split(["node-c"], ["node-a", "node-b"]);
    await sim.until("two leaders", () => sim.leaders().length === 2, 15_000);
    sim.network.heal();
    await sim.until("agreement", () => sim.agreed(), 5_000);
    await sim.pass(10_000);
    assert.ok(sim.agreed());
  });

  test("two halves with the same epoch agree on a later one", async () => {
    await using sim = await cluster({ settings });
    sim.split(["node-a"], ["node-b"], ["node-c"]);
    await sim.until("three leaders", () => sim.leaders().length === 3, 15_000);
    const epochs = sim.leaders().map((node) => node.elector.held()!.epoch);
    assert.ok(new Set(epochs).size < 3, "two of them counted on by themselves to the same number");
    sim.network.heal();
    await sim.until("agreement", () => sim.agreed(), 5_000);
    assert.ok(sim.leaders()[0]!.elector.held()!.epoch > Math.max(...epochs) - 1);
  });
});
