/** Clusters that nodes join and leave, on the real clock with short times. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PeerSource } from "../../../../../src/peers/bully/peer-list.ts";
import { hasCode } from "../../../../../src/core/errors.ts";
import type { NodeName } from "../../../../../src/core/ids.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { PeerSim } from "../../../../support/peer-sim.ts";
import { PeerWorld, QUICK, urlOf } from "../../../../support/lock-peers.ts";
import { FOUNDS, PeerTown } from "../../../../support/peer-town.ts";
import { ROLE } from "../../../../support/lock-world.ts";
import { eventually } from "../../../../support/wait.ts";
import { column } from "../../../../support/columns.ts";

const ABC = ["node-a", "node-b", "node-c"];

async function three(settings = {}): Promise<PeerTown> {
  await using opened = new AsyncDisposableStack();
  const town = opened.use(new PeerTown(settings));
  await town.start("node-a", FOUNDS);
  await town.join("node-b", "node-a");
  await town.join("node-c", "node-b");
  await town.agreed(...ABC);
  opened.move();
  return town;
}

describe("a request to drain", () => {
  test("whose answer is lost has an unknown outcome, which is not that there is no such node", async () => {
    await using world = new PeerWorld(systemClock, ["node-a", "node-b"], QUICK);
    const [a, b] = [await world.start("node-a"), await world.start("node-b")];
    const { membership } = a.coordination;
    world.network.setLink(urlOf("node-b"), urlOf("node-a"), { state: "silent" });
    await assert.rejects(membership.ask("node-b" as NodeName, "drain"), (error) => {
      assert.ok(hasCode(error, "NODE_UNREACHABLE"), String(error));
      assert.match(error.message, /node-b did not answer, and may be draining/);
      assert.deepEqual(error.details, { node: "node-b", outcome: "unknown" });
      return true;
    });
    for await (const request of b.coordination.membership.requests(AbortSignal.timeout(5_000))) {
      assert.equal(request, "drain", "it has arrived");
      break;
    }
    await b.kill();
    assert.equal(await membership.ask("node-b" as NodeName, "drain"), false, "it was certainly not reached");
  });
});

describe("a cluster that nodes join", () => {
  test("is led by its founder; a higher name that joins, through anybody, does not displace it", async () => {
    await using town = await three();
    assert.equal((await town.agreed(...ABC)).name, "node-a");
  });

  test("S55: a node asks for ever until somebody is there, and says that it is joining", async () => {
    await using town = new PeerTown();
    const { coordination } = await town.join("node-b", "node-a");
    await eventually("trouble", () =>
      /not joined yet: http:\/\/node-a:1 cannot be reached/.test(coordination.notes().join()),
    );
    assert.equal(coordination.membership.nodes()[0]?.status, "joining");
    assert.deepEqual(coordination.peers.names(), []);
    await town.start("node-a", FOUNDS);
    await town.agreed("node-a", "node-b");
  });

  test("many nodes that start at once all get in, each by few questions", async () => {
    const names = Array.from({ length: 7 }, (_, i) => `node-${i}`);
    await using sim = new PeerSim({ names, joined: true });
    // The one that founds the cluster comes last.
    for (const name of names.toReversed()) await sim.start(name);
    const everybody = (): boolean => names.every((name) => sim.takesPart(sim.node(name)));
    await sim.until("all are members", () => sim.agreed() && everybody(), 60_000, 50);
    const { set } = JSON.parse(sim.votesOf("node-0")!) as { set: { count: number } };
    // One change for each that came, and one under the epoch of each leader.
    assert.ok(set.count <= names.length + 6, `${set.count} changes`);
  });

  test("the same join again changes nothing", async () => {
    await using town = await three();
    const before = town.setNumber("node-a");
    for (const through of ["node-a", "node-b"])
      await town.members.get(through)!.coordination.changes.passJoin("node-c" as NodeName, urlOf("node-c"));
    assert.equal(town.setNumber("node-a"), before);
  });

  test("a node that nobody reaches at the address that it gives does not become a member", async () => {
    await using town = new PeerTown();
    const { coordination } = await town.start("node-a", FOUNDS);
    await town.agreed("node-a");
    await assert.rejects(
      coordination.changes.passJoin("node-x" as NodeName, "http://node-x:1"),
      (error) => hasCode(error, "BAD_REQUEST") && error.details.field === "body.address",
    );
    assert.deepEqual(coordination.peers.names(), ["node-a"]);
  });

  test("a founder that restarts goes back to its peers and founds nothing", async () => {
    await using town = await three();
    await town.kill("node-a");
    const led = () => town.members.get("node-b")!.coordination.leader()?.leader;
    await eventually("another leads", () => led() !== undefined && led() !== "node-a");
    assert.equal(
      town.members.get("node-b")!.coordination.peers.names().length,
      3,
      "a dead member still counts",
    );
    await town.start("node-a", FOUNDS);
    const leader = await town.agreed(...ABC);
    assert.notEqual(leader.name, "node-a");
  });

  test("a founder that has lost its disk founds anew, is found by its peers, and goes back", async () => {
    await using town = await three();
    await town.kill("node-a");
    town.world.disk("node-a").lose();
    await town.start("node-a", FOUNDS);
    await town.agreed(...ABC);
  });

  test("all restart at once and are the same cluster, with the same members", async () => {
    await using town = await three();
    for (const name of ABC) await town.kill(name);
    await town.start("node-a", FOUNDS);
    await town.join("node-b", "node-a");
    await town.join("node-c", "node-b");
    await town.agreed(...ABC);
  });

  test("a removed node is told, is ignored everywhere, and does not come back by itself", async () => {
    await using town = await three();
    const leader = await town.agreed(...ABC);
    assert.equal(await leader.coordination.membership.remove?.("node-c" as NodeName), true);
    await town.agreed("node-a", "node-b");
    const { coordination } = town.members.get("node-c")!;
    await eventually("it knows", () => /was removed/.test(coordination.notes().join()));
    assert.equal(await coordination.lock(ROLE).acquire(town.members.get("node-c")!.identity, 300), null);
    assert.deepEqual(column(town.members.get("node-a")!.coordination.membership.nodes(), "name"), [
      "node-a",
      "node-b",
    ]);
    assert.equal(
      await leader.coordination.changes.remove("node-c" as NodeName),
      false,
      "it was removed already",
    );
    // A new life of it may.
    await town.kill("node-c");
    await town.join("node-c", "node-a");
    await town.agreed(...ABC);
  });

  test("a leader may remove itself; the others elect one of them", async () => {
    await using town = await three();
    const leader = await town.agreed(...ABC);
    await leader.coordination.changes.remove(leader.identity.name);
    const others = ABC.filter((name) => name !== leader.name);
    await eventually("it does not lead", () => leader.elector.held() === null);
    const next = await town.agreed(...others);
    assert.ok(others.includes(next.name));
  });

  test("a crashed node is forgotten after a while, and one that was only away comes back by itself", async () => {
    await using town = await three({ forgetAfterMs: 400 });
    const leader = await town.agreed(...ABC);
    const gone = leader.name === "node-c" ? "node-b" : "node-c";
    for (const other of ABC) if (other !== gone) town.world.network.cut(urlOf(gone), urlOf(other));
    const rest = ABC.filter((name) => name !== gone);
    await eventually("it is forgotten", async () => {
      for (const name of rest) {
        const held = town.members.get(name)!.elector.held();
        if (held) await town.members.get(name)!.coordination.membership.findDead(held);
      }
      return rest.every((name) => town.members.get(name)!.coordination.peers.names().join() === rest.join());
    });
    town.world.network.heal();
    await town.agreed(...ABC);
  });

  test("without a majority nobody is forgotten: a small part cannot make itself the whole", async () => {
    await using town = await three({ forgetAfterMs: 200 });
    const leader = await town.agreed(...ABC);
    const others = ABC.filter((name) => name !== leader.name);
    const fence = leader.elector.held()!;
    for (const other of others) town.world.network.cut(urlOf(leader.name), urlOf(other));
    const until = systemClock.monotonic() + 800;
    while (systemClock.monotonic() < until) {
      await leader.coordination.membership.findDead(fence);
      await systemClock.sleep(20);
    }
    assert.equal(leader.elector.held(), null);
    town.world.network.heal();
    await town.agreed(...ABC);
  });

  test("two living nodes of one name are told apart: the second is refused", async () => {
    await using town = await three();
    const { coordination } = town.members.get("node-a")!;
    const reply = await coordination.handle({
      from: "elsewhere",
      method: "POST",
      path: "/peer/join",
      headers: {},
      body: JSON.stringify({
        from: { name: "node-b", incarnation: "another" },
        address: "http://elsewhere:1",
      }),
    });
    assert.equal(reply.status, 409);
    assert.match(reply.body!, /NAME_IN_USE/);
  });
});

describe("a cluster whose nodes discover each other", () => {
  test("is founded once, however they start", async () => {
    await using town = new PeerTown();
    const resolve = async () => ABC.map(urlOf);
    await Promise.all(ABC.map((name) => town.start(name, { kind: "discover", resolve })));
    await town.agreed(...ABC);
  });

  test("is not founded by a minority, nor while fewer are there than expected", async () => {
    await using town = new PeerTown();
    // At first the list shows each only itself.
    let resolved: readonly string[] | null = null;
    const source = (name: string): PeerSource => ({
      kind: "discover",
      resolve: async () => resolved ?? [urlOf(name)],
      expect: 3,
    });
    const a = await town.start("node-a", source("node-a"));
    await eventually("it waits", () => /1 of 2 nodes/.test(a.coordination.notes().join()));
    await town.start("node-b", source("node-b"));
    await town.start("node-c", source("node-c"));
    assert.deepEqual(a.coordination.peers.names(), []);
    resolved = ABC.map(urlOf);
    await town.agreed(...ABC);
  });

  test("goes on while the list cannot be had", async () => {
    await using town = new PeerTown();
    let broken = true;
    const resolve = async () => {
      if (broken) throw new Error("SERVFAIL");
      return [urlOf("node-a")];
    };
    const { coordination } = await town.start("node-a", { kind: "discover", resolve });
    await eventually("trouble", () => /SERVFAIL|1 of/.test(coordination.notes().join()));
    broken = false;
    await town.agreed("node-a");
  });
});

describe("a list of nodes that was set", () => {
  test("counts everybody, also those that were never seen, and shows them", async () => {
    await using world = new PeerWorld(systemClock, ABC, {
      ...QUICK,
      deadAfterMs: 100,
    });
    const { coordination } = await world.start("node-a");
    assert.deepEqual(coordination.peers.names(), ABC);
    const seen = () =>
      coordination.membership.nodes().map(({ name, status, alive, url }) => [name, status, alive, url]);
    assert.deepEqual(seen()[1], ["node-b", "joining", false, "http://node-b:1"]);
    await eventually("silence", () => seen()[1]![1] === "dead");
  });

  test("that differs is noted on both sides, with the name", async () => {
    await using world = new PeerWorld(systemClock, ["node-a", "node-b"], QUICK);
    const a = await world.start("node-a");
    const nodes = { "node-a": urlOf("node-a"), "node-b": urlOf("node-b"), "node-z": urlOf("node-z") };
    const b = await world.start("node-b", { source: { kind: "static", nodes } });
    await eventually("node-a notes it", () =>
      /differs from that of node-b/.test(a.coordination.notes().join()),
    );
    await eventually("node-b notes it", () =>
      /differs from that of node-a/.test(b.coordination.notes().join()),
    );
    assert.notEqual(a.coordination.peers.hash, b.coordination.peers.hash);
  });

  test("a node that is not in it is ignored, and noted", async () => {
    await using world = new PeerWorld(systemClock, ["node-a", "node-b"], QUICK);
    const a = await world.start("node-a");
    const nodes = { "node-a": urlOf("node-a"), "node-x": urlOf("node-x") };
    await world.start("node-x", { source: { kind: "static", nodes } });
    await eventually("a note", () => /ignored: node-x/.test(a.coordination.notes().join()));
    assert.deepEqual(column(a.coordination.membership.nodes(), "name"), ["node-a", "node-b"]);
    await assert.rejects(a.coordination.changes.passJoin("node-x" as NodeName, urlOf("node-x")), {
      code: "FORBIDDEN",
    });
  });

  test("who dies is shown as dead at once, who stops well too", async () => {
    await using world = new PeerWorld(systemClock, ABC, {
      ...QUICK,
      deadAfterMs: 60_000,
    });
    const a = await world.start("node-a");
    await world.start("node-b");
    await world.start("node-c");
    const status = (name: string) =>
      a.coordination.membership.nodes().find((node) => node.name === name)?.status;
    await eventually(
      "both",
      () => status("node-b") === "joining" && a.coordination.membership.nodes()[1]!.alive,
    );
    await world.peers.get("node-b")!.kill();
    await eventually("node-b is dead", () => status("node-b") === "dead");
    await world.peers.get("node-c")!.stop();
    await eventually("node-c is dead", () => status("node-c") === "dead");
    assert.equal(a.coordination.membership.nodes()[1]?.alive, false);
  });
});
