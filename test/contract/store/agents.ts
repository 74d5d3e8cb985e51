import assert from "node:assert/strict";
import type { Agent, AgentSeen } from "../../../src/store/agents.ts";
import { HOUR_MS, type Promises, type StoreWorld } from "../../support/store-world.ts";

function agent(name: string, fields: Partial<AgentSeen> = {}): AgentSeen {
  return { name, capabilities: ["work"], version: "1.2.3", labels: "{}", running: 0, ...fields };
}

async function names(world: StoreWorld, withRemoved = false): Promise<string[]> {
  return (await world.store.agents.list(withRemoved)).map(({ name }) => name);
}

async function only(world: StoreWorld): Promise<Agent> {
  const agents = await world.store.agents.list(true);
  assert.equal(agents.length, 1);
  return { ...agents[0]! };
}

export const agentPromises: Promises = {
  "an agent is remembered as it describes itself, with the instant and the epoch": async (world) => {
    const term = await world.term();
    const described = agent("a", {
      capabilities: ["resize", "mail:send", 'odd "{},\\ name'],
      version: null,
      labels: '{"zone":"b","note":"\\u0000 ü \'"}',
      running: 7,
    });
    const now = world.clock.now();
    await world.store.agents.seen([described], term);
    assert.deepEqual(await only(world), {
      ...described,
      firstSeenAt: now,
      lastSeenAt: now,
      removedAt: null,
      leaderEpoch: term.epoch,
    });
  },

  "an agent that is seen again is refreshed, and keeps the instant of the first time": async (world) => {
    const first = world.clock.now();
    await world.store.agents.seen([agent("a", { running: 1 })], await world.term());
    await world.clock.advance(5_000);
    const term = await world.nextTerm();
    const changed = agent("a", {
      capabilities: ["other"],
      version: "2",
      labels: '{"zone":"c"}',
      running: 3,
    });
    await world.store.agents.seen([changed], term);
    assert.deepEqual(await only(world), {
      ...changed,
      firstSeenAt: first,
      lastSeenAt: first + 5_000,
      removedAt: null,
      leaderEpoch: term.epoch,
    });
  },

  "agents are listed by name": async (world) => {
    const term = await world.term();
    await world.store.agents.seen([agent("b"), agent("a-2"), agent("B")], term);
    await world.store.agents.seen([agent("a")], term);
    assert.deepEqual(await names(world), ["B", "a", "a-2", "b"]);
  },

  "no agents at all are fine, and the last word about one in a batch counts": async (world) => {
    const term = await world.term();
    await world.store.agents.seen([], term);
    assert.deepEqual(await names(world, true), []);
    await world.store.agents.seen([agent("a", { running: 1 }), agent("b"), agent("a", { running: 2 })], term);
    assert.deepEqual(await names(world), ["a", "b"]);
    assert.equal((await world.store.agents.list(false))[0]!.running, 2);
  },

  "a removed agent leaves a tombstone, and is removed once": async (world) => {
    await world.store.agents.seen([agent("a"), agent("b")], await world.term());
    await world.clock.advance(1_000);
    const term = await world.nextTerm();
    assert.equal(await world.store.agents.remove("a", term), true);
    assert.deepEqual(await names(world), ["b"]);
    assert.deepEqual(await names(world, true), ["a", "b"]);
    const [tombstone] = await world.store.agents.list(true);
    assert.deepEqual(
      [tombstone!.removedAt, tombstone!.leaderEpoch, tombstone!.lastSeenAt],
      [world.clock.now(), term.epoch, world.clock.now() - 1_000],
    );
    await world.clock.advance(1_000);
    assert.equal(await world.store.agents.remove("a", term), false);
    assert.equal(await world.store.agents.remove("never seen", term), false);
    assert.equal((await world.store.agents.list(true))[0]!.removedAt, tombstone!.removedAt);
  },

  "an agent that was removed is back when it is seen": async (world) => {
    const term = await world.term();
    const first = world.clock.now();
    await world.store.agents.seen([agent("a")], term);
    await world.store.agents.remove("a", term);
    await world.clock.advance(1_000);
    await world.store.agents.seen([agent("a", { running: 4 })], term);
    const { removedAt, running, firstSeenAt, lastSeenAt } = await only(world);
    assert.deepEqual([removedAt, running, firstSeenAt, lastSeenAt], [null, 4, first, first + 1_000]);
    assert.equal(await world.store.agents.remove("a", term), true);
  },

  "those are forgotten that have not been seen for so long": async (world) => {
    const term = await world.term();
    await world.store.agents.seen([agent("old"), agent("refreshed")], term);
    await world.clock.advance(HOUR_MS / 2);
    await world.store.agents.seen([agent("young"), agent("refreshed")], term);
    await world.clock.advance(HOUR_MS / 2);
    assert.equal(await world.store.purge({ of: "agents", ageMs: HOUR_MS + 1 }, term), 0);
    assert.equal(await world.store.purge({ of: "agents", ageMs: HOUR_MS }, term), 1);
    assert.deepEqual(await names(world, true), ["refreshed", "young"]);
  },

  "a tombstone stands for so long from the removal on": async (world) => {
    const term = await world.term();
    await world.store.agents.seen([agent("a")], term);
    await world.clock.advance(HOUR_MS);
    await world.store.agents.remove("a", term);
    assert.equal(await world.store.purge({ of: "agents", ageMs: HOUR_MS }, term), 0);
    await world.clock.advance(HOUR_MS);
    assert.equal(await world.store.purge({ of: "agents", ageMs: HOUR_MS }, term), 1);
    assert.deepEqual(await names(world, true), []);
  },

  "batches about the same agents at the same time are all written": async (world) => {
    const term = await world.term();
    const batch = ["a", "b", "c", "d"].map((name) => agent(name));
    await Promise.all(
      Array.from({ length: 12 }, (_, at) =>
        world.store.agents.seen(at % 2 === 0 ? batch : [...batch].reverse(), term),
      ),
    );
    assert.deepEqual(await names(world), ["a", "b", "c", "d"]);
  },
};
