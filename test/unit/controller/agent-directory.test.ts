import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agentDirectory, type AgentDirectory } from "../../../src/controller/agent-directory.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import type { AgentSeen } from "../../../src/store/agents.ts";
import { memoryStore } from "../../support/memory-store.ts";
import { fakePlatform } from "../../support/fake-platform.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { columns } from "../../support/columns.ts";

class World {
  readonly clock = new ManualClock();
  readonly store = memoryStore({ clock: this.clock });
  readonly written: (readonly AgentSeen[])[] = [];
  readonly directory: AgentDirectory;
  readonly news: string[] = [];
  term!: Term;

  constructor() {
    const { store, written } = this;
    this.directory = agentDirectory(fakePlatform(), {
      store: {
        purge: store.purge,
        get agents() {
          return new Proxy(store.agents, {
            get(agents, name) {
              const method = Reflect.get(agents, name) as (...given: unknown[]) => unknown;
              return (...given: unknown[]) => {
                if (name === "seen") written.push(given[0] as AgentSeen[]);
                return method.apply(agents, given);
              };
            },
          });
        },
      },
      forgetAfterMs: 60_000,
      onNew: ({ name }) => this.news.push(name),
    });
  }

  static async open(): Promise<World> {
    const world = new World();
    await world.next();
    return world;
  }

  async next(): Promise<void> {
    this.term = await this.store.terms.grant("scheduler", { name: "a" as NodeName, incarnation: "one" });
  }

  async names(withRemoved = false): Promise<string[]> {
    return (await this.store.agents.list(withRemoved)).map(({ name }) => name);
  }
}

describe("the directory of agents", () => {
  it("stores who is new or has changed at once, and who was only seen again for all together", async () => {
    const world = await World.open();
    const { directory, term } = world;
    await directory.seen({ name: "ada", capabilities: ["b", "a"] }, term);
    await directory.seen({ name: "bob", capabilities: ["a"] }, term);
    assert.equal(world.written.length, 2);
    for (let n = 0; n < 50; n++) {
      await directory.seen({ name: "ada", capabilities: ["a", "b"], running: n }, term);
      await directory.seen({ name: "bob" }, term);
    }
    assert.equal(world.written.length, 2, "a heartbeat was a write");
    await directory.seen({ name: "ada", version: "2" }, term);
    assert.equal(world.written.length, 3);
    await directory.refresh([], term);
    const found = world.written.slice(3).map((agents) => agents.map(({ name }) => name));
    assert.deepEqual(found, [["bob"]]);
    assert.deepEqual(world.news, ["ada", "bob"]);
    const [ada] = await world.store.agents.list(false);
    assert.deepEqual([ada!.capabilities, ada!.version, ada!.running], [["a", "b"], "2", 49]);
  });

  it("takes an open request for a sign of life", async () => {
    const world = await World.open();
    await world.directory.seen({ name: "ada", capabilities: ["a"] }, world.term);
    await world.clock.advance(10_000);
    await world.directory.refresh(["ada", "unknown"], world.term);
    const agents = await world.store.agents.list(false);
    assert.deepEqual(columns(agents, "name", "lastSeenAt"), [["ada", world.clock.now()]]);
  });

  it("does not bring back who was removed by what was noted before", async () => {
    const world = await World.open();
    const { directory, term } = world;
    await directory.seen({ name: "ada", capabilities: ["a"] }, term);
    await directory.seen({ name: "ada" }, term);
    assert.equal(await directory.remove("ada", term), true);
    await directory.refresh(["ada"], term);
    assert.deepEqual(await world.names(), []);
    assert.deepEqual(await world.names(true), ["ada"]);
    await directory.seen({ name: "ada", capabilities: ["a"] }, term);
    assert.deepEqual(await world.names(), ["ada"]);
  });

  it("knows in a new term what was stored in the last one", async () => {
    const world = await World.open();
    await world.directory.seen({ name: "ada", capabilities: ["a"], version: "1" }, world.term);
    const old = world.term;
    await world.next();
    await world.directory.seen({ name: "ada" }, world.term);
    assert.equal(world.written.length, 1);
    await world.directory.refresh([], world.term);
    const [ada] = await world.store.agents.list(false);
    assert.deepEqual([ada!.capabilities, ada!.version, ada!.leaderEpoch], [["a"], "1", world.term.epoch]);
    await assert.rejects(world.directory.seen({ name: "eve", capabilities: ["a"] }, old), {
      code: "STALE_EPOCH",
    });
  });

  it("forgets who has not been seen for long, and knows them as new afterwards", async () => {
    const world = await World.open();
    await world.directory.seen({ name: "ada", capabilities: ["a"] }, world.term);
    await world.clock.advance(60_001);
    await world.directory.purge(world.term);
    assert.deepEqual(await world.names(true), []);
    await world.directory.seen({ name: "ada", capabilities: ["a"] }, world.term);
    assert.deepEqual([await world.names(), world.news], [["ada"], ["ada", "ada"]]);
  });
});
