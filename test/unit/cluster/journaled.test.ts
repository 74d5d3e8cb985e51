import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { JournaledCoordination } from "../../../src/cluster/journaled-coordination.ts";
import { JournaledStore } from "../../../src/cluster/journaled-store.ts";
import type { Note } from "../../../src/cluster/journal.ts";
import type { Refusal } from "../../../src/cluster/refused-writes.ts";
import { Traffic } from "../../../src/cluster/traffic.ts";
import type { Coordination } from "../../../src/coordination/coordination.ts";
import { BatonError, hasCode } from "../../../src/core/errors.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { Term } from "../../../src/core/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { MemoryStore } from "../../../src/store/memory/memory.ts";
import type { Store } from "../../../src/store/store.ts";
import { nodeHere, temporaryDirectory } from "../../support/node-here.ts";
import { LEASE_MS, lease, StoreWorld, type OpenStore } from "../../support/store-world.ts";

function opening(refused: Refusal[], steps: string[] = []): OpenStore {
  return async ({ clock }) => {
    const inner = new MemoryStore({ clock });
    const journal = {
      stop: () =>
        inner.queues.list().then(
          () => void steps.push("stopped, store open"),
          () => {},
        ),
    };
    const traffic = new Traffic(clock);
    const store: Store = new JournaledStore({
      store: inner,
      journal,
      traffic,
      refused: (one) => refused.push(one),
    });
    return store;
  };
}

describe("a store with a journal", () => {
  it("tells of a result, logs and a lease that come too late, and answers as ever", async () => {
    const refused: Refusal[] = [];
    await StoreWorld.with(opening(refused), async (world) => {
      const old = await world.running();
      await world.clock.advance(LEASE_MS + 1);
      await world.recover();
      assert.deepEqual(refused, []);
      assert.equal(await world.settle(old, { kind: "completed", result: "1" }), "stale");
      assert.equal(await world.log(old, "hello"), "stale");
      assert.equal((await world.store.jobs.renew(lease("node-a/1"), LEASE_MS)).held, false);
      assert.deepEqual(refused, [
        { what: "the result of an earlier run", carried: 1, current: null, job: old.id },
        { what: "logs or progress of an earlier run", carried: 1, current: null, job: old.id },
        { what: "the renewal of lease node-a/1", carried: null, current: null, job: null },
      ]);
      const again = await world.again(old.id);
      await world.finish(again);
      assert.equal(refused.length, 3, "what is accepted is not told");
    });
  });

  it("tells of what an old leader writes, with both numbers", async () => {
    const refused: Refusal[] = [];
    await StoreWorld.with(opening(refused), async (world) => {
      const old = await world.term();
      await world.nextTerm();
      const purge = world.store.jobs.purge({ completedMs: 0, failedMs: 0, cancelledMs: 0 }, 1, old);
      await assert.rejects(purge, (error) => hasCode(error, "STALE_EPOCH"));
      await assert.rejects(world.store.journal.purge(0, 1, old), (error) => hasCode(error, "STALE_EPOCH"));
      assert.deepEqual(refused, [
        { what: "the removal of old jobs by an earlier leader", carried: 1, current: 2, job: null },
        { what: "the removal of old entries by an earlier leader", carried: 1, current: 2, job: null },
      ]);
    });
  });

  it("does not take another trouble for that", async () => {
    const refused: Refusal[] = [];
    await StoreWorld.with(opening(refused), async (world) => {
      await world.store.close();
      const settling = world.store.jobs.settle([]);
      await assert.rejects(settling, (error) => hasCode(error, "STOPPED"));
    });
    assert.deepEqual(refused, []);
  });

  it("writes its journal while the store is open", async () => {
    const steps: string[] = [];
    await StoreWorld.with(opening([], steps), async () => {});
    assert.deepEqual(steps, ["stopped, store open"]);
  });
});

describe("a coordination with a journal", () => {
  const identity = { name: "node-a" as NodeName, incarnation: "1" };
  const term: Term = { role: "scheduler", leader: identity.name, incarnation: "1", epoch: 4 };

  function open(findDead: () => Promise<[]> = async () => []) {
    const notes: Note[] = [];
    const refused: Refusal[] = [];
    const inner = {
      kind: "fake",
      membership: {
        nodes: () => [],
        setStatus: async () => {},
        findDead,
        laidToRest: async () => {},
        displaced: () => "another has our name",
      },
      start: async () => {},
      stop: async () => {},
    } as unknown as Coordination;
    const coordination = new JournaledCoordination({
      coordination: inner,
      identity,
      version: "1.2.3",
      journal: { note: (note) => notes.push(note) },
      refused: (refusal) => refused.push(refusal),
    });
    const kinds = (): unknown[] => notes.map(({ kind, subject }) => [kind, subject]);
    return { coordination, notes, refused, kinds };
  }

  it("tells of a node's life", async () => {
    const { coordination, kinds } = open();
    await coordination.start();
    for (const status of ["joining", "active", "active", "draining", "active", "draining"]) {
      await coordination.membership.setStatus(status);
    }
    await coordination.stop();
    assert.deepEqual(kinds(), [
      ["node.joined", "node-a"],
      ["node.draining", "node-a"],
      ["node.resumed", "node-a"],
      ["node.draining", "node-a"],
      ["node.left", "node-a"],
    ]);
  });

  it("keeps no secret of another that has our name", () => {
    assert.equal(open().coordination.membership.displaced(), "another has our name");
  });

  it("tells of the dead when they are laid to rest", async () => {
    const { coordination, notes } = open();
    const dead = { name: "node-b" as NodeName, incarnation: "9" };
    await coordination.membership.laidToRest([dead], term);
    assert.deepEqual(notes, [
      { kind: "node.dead", subject: "node-b", detail: { incarnation: "9", leader_epoch: 4 } },
    ]);
  });

  it("tells of an old leader that looks for the dead", async () => {
    const { coordination, refused } = open(async () => {
      throw new BatonError("STALE_EPOCH", "over", { epoch: 4, newest: 5 });
    });
    await assert.rejects(coordination.membership.findDead(term), (error) => hasCode(error, "STALE_EPOCH"));
    assert.deepEqual(refused, [
      { what: "the word that nodes have died by an earlier leader", carried: 4, current: 5, job: null },
    ]);
  });
});

describe("a node", () => {
  it("writes down its life and its terms, and finds them again", async (t) => {
    const dir = await temporaryDirectory(t);
    const settings = { STORE: "sqlite", DATA: dir };
    const first = await nodeHere(t, { settings });
    await first.services.cluster.ask(first.services.identity.name, "drain");
    const { journal } = first.services;
    const kinds = async (): Promise<string[]> =>
      (await journal.list({ limit: 100 })).map(({ kind }) => kind).toReversed();
    while (!(await kinds()).includes("node.drained")) await systemClock.sleep(10);
    await first.services.cluster.ask(first.services.identity.name, "resume");
    while (!(await kinds()).includes("node.resumed")) await systemClock.sleep(10);
    await first.stop();
    const second = await nodeHere(t, { settings });
    const entries = (await second.services.journal.list({ limit: 100 })).toReversed();
    const about = (subject: string) => entries.filter((entry) => entry.subject === subject);
    assert.deepEqual(
      about("here")
        .slice(0, 7)
        .map(({ kind }) => kind),
      [
        "node.joined",
        "node.draining",
        "node.drained",
        "node.resumed",
        "node.draining",
        "node.drained",
        "node.left",
      ],
    );
    assert.deepEqual(
      about("scheduler")
        .slice(0, 4)
        .map(({ kind, detail }) => [kind, detail["epoch"], detail["reason"] ?? null]),
      [
        ["term.started", 1, null],
        ["term.ended", 1, "stopped"],
        ["term.started", 2, null],
        ["term.ended", 2, "stopped"],
      ],
    );
  });
});
