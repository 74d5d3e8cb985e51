/** Several nodes on one wire, which loses what it is told to lose. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EventFeed } from "../../../../src/controller/events/event-feed.ts";
import {
  eventMessage,
  type EventMessage,
  type EventWire,
} from "../../../../src/controller/events/event-wire.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { atEnd, type Scope } from "../../../support/node-cleanup.ts";

class World {
  readonly clock = new ManualClock();
  readonly sent: EventMessage[] = [];
  leader = "a";
  epoch = 7;
  loses: (message: EventMessage) => boolean = () => false;
  readonly #heard = new Map<string, (message: EventMessage) => void>();
  readonly #t: Scope;
  /** Shared, so that each node has an incarnation of its own. */
  readonly #random = seededRandom(1);

  constructor(t: Scope) {
    this.#t = t;
  }

  async node(name: string): Promise<EventFeed> {
    const leads = () => (this.leader === name ? this.epoch : null);
    const wire: EventWire = {
      send: async (messages) => {
        for (const message of messages) {
          this.sent.push(message);
          if (this.loses(message)) continue;
          const copy = eventMessage(JSON.parse(JSON.stringify(message)));
          for (const [other, hear] of this.#heard) if (other !== name) hear(copy!);
        }
      },
      hear: (handler) => {
        this.#heard.set(name, handler);
        return { close: async () => void this.#heard.delete(name) };
      },
    };
    const standing = () => ({ role: "STANDBY" as const, epoch: this.epoch, leader: this.leader });
    const feed = new EventFeed(fakePlatform({ name, clock: this.clock, random: this.#random }), {
      wire,
      leads,
      standing,
    });
    await feed.start();
    atEnd(this.#t, () => feed.stop());
    return feed;
  }

  /** The messages of one kind, since it was asked for the last time. */
  take(say: EventMessage["say"]): number {
    const count = this.sent.filter((message) => message.say === say).length;
    this.sent.length = 0;
    return count;
  }
}

async function reading(t: Scope, feed: EventFeed, since: string | null = null) {
  const stop = new AbortController();
  atEnd(t, () => stop.abort());
  const told: string[] = [];
  const over = (async () => {
    for await (const { id, event, data } of feed.follow(since, stop.signal))
      told.push(id ? `${id} ${String((data as { n?: number }).n)}` : event);
  })();
  await new Promise((resolve) => setImmediate(resolve));
  const leave = async (): Promise<void> => {
    stop.abort();
    await over;
  };
  return { told, leave };
}

function emit(feed: EventFeed, n: number): void {
  feed.emit("job.completed", { n });
}

describe("events of several nodes", () => {
  it("reach the readers of every node, in the same order under the same numbers", async (t) => {
    const world = new World(t);
    const [a, b, c] = [await world.node("a"), await world.node("b"), await world.node("c")];
    const readers = [await reading(t, a), await reading(t, b), await reading(t, c)];
    emit(a, 1);
    emit(b, 2);
    emit(c, 3);
    await world.clock.advance(100);
    emit(b, 4);
    emit(a, 5);
    await world.clock.advance(200);
    const [first] = readers;
    assert.equal(first!.told.length, 6);
    assert.deepEqual(
      first!.told.map((line) => line.split(" ")[0]),
      ["hello", "7-1", "7-2", "7-3", "7-4", "7-5"],
    );
    for (const { told } of readers) assert.deepEqual(told, first!.told);
  });

  it("cost nothing while nobody reads: nothing is numbered, kept or sent", async (t) => {
    const world = new World(t);
    const [a, b] = [await world.node("a"), await world.node("b")];
    emit(a, 1);
    emit(b, 2);
    await world.clock.advance(60_000);
    assert.deepEqual([world.sent, world.clock.waiting, a.wanted, b.wanted], [[], 0, false, false]);
    const reader = await reading(t, b);
    await world.clock.advance(100);
    assert.deepEqual([a.wanted, b.wanted], [true, true]);
    await reader.leave();
    await world.clock.advance(29_000);
    assert.equal(a.wanted, true, "a reader that changes nodes needs a while");
    await world.clock.advance(40_000);
    assert.deepEqual([world.clock.waiting, a.wanted, b.wanted], [0, false, false]);
    world.sent.length = 0;
    emit(a, 3);
    await world.clock.advance(1_000);
    assert.deepEqual(world.sent, []);
  });

  it("are resumed at another node behind the last one that was seen", async (t) => {
    const world = new World(t);
    const [a, b] = [await world.node("a"), await world.node("b")];
    const first = await reading(t, a);
    await world.clock.advance(100);
    for (let n = 1; n <= 3; n++) emit(a, n);
    await world.clock.advance(100);
    await first.leave();
    for (let n = 4; n <= 6; n++) emit(a, n);
    await world.clock.advance(20_000);
    const next = await reading(t, b, "7-3");
    assert.deepEqual(next.told, ["hello", "7-4 4", "7-5 5", "7-6 6"]);
    emit(a, 7);
    await world.clock.advance(100);
    assert.equal(next.told.at(-1), "7-7 7");
  });

  it("tell a gap when messages are lost, also when nothing follows", async (t) => {
    const world = new World(t);
    const [a, b] = [await world.node("a"), await world.node("b")];
    const there = await reading(t, b);
    await world.clock.advance(100);
    emit(a, 1);
    await world.clock.advance(100);
    world.loses = ({ say }) => say === "told";
    emit(a, 2);
    await world.clock.advance(100);
    world.loses = () => false;
    assert.deepEqual(there.told, ["hello", "7-1 1"]);
    await world.clock.advance(6_000);
    assert.deepEqual(there.told, ["hello", "7-1 1", "gap"]);
    world.loses = ({ say }) => say === "raised";
    emit(b, 3);
    await world.clock.advance(100);
    world.loses = () => false;
    emit(b, 4);
    await world.clock.advance(200);
    assert.deepEqual(there.told.slice(3), ["gap", "7-4 4"], "a number is left out for what never got there");
  });

  it("tell a gap when another leads, and go on under its numbers", async (t) => {
    const world = new World(t);
    const [a, b, c] = [await world.node("a"), await world.node("b"), await world.node("c")];
    const there = await reading(t, c);
    await world.clock.advance(100);
    emit(a, 1);
    await world.clock.advance(100);
    world.leader = "b";
    world.epoch = 8;
    emit(a, 2);
    emit(b, 3);
    await world.clock.advance(300);
    assert.deepEqual(there.told.slice(0, 3), ["hello", "7-1 1", "gap"]);
    assert.deepEqual(
      there.told.slice(3).map((line) => line.split(" ")[0]),
      ["8-3", "8-4", "leader.changed"],
    );
  });

  it("tell a gap to whoever comes back when nobody has read for long", async (t) => {
    const world = new World(t);
    const [a, b] = [await world.node("a"), await world.node("b")];
    const first = await reading(t, a);
    emit(a, 1);
    await world.clock.advance(100);
    await first.leave();
    await world.clock.advance(120_000);
    emit(a, 2);
    for (const node of [a, b]) {
      const again = await reading(t, node, "7-1");
      assert.deepEqual(again.told, ["hello", "gap"]);
    }
    const fresh = await reading(t, a);
    emit(a, 3);
    await world.clock.advance(100);
    assert.deepEqual(fresh.told, ["hello", "7-3 3"], "who reads from now on has missed nothing");
  });

  it("travel in few messages, each small enough, and are dropped when they are too many", async (t) => {
    const world = new World(t);
    const [a, b] = [await world.node("a"), await world.node("b")];
    const there = await reading(t, b);
    await world.clock.advance(200);
    world.take("told");
    for (let n = 1; n <= 500; n++) emit(a, n);
    await world.clock.advance(100);
    const sizes = world.sent.map((message) => JSON.stringify(message).length);
    assert.ok(Math.max(...sizes) < 7_000 && sizes.length < 20, `${sizes.length}: ${Math.max(...sizes)}`);
    assert.equal(there.told.length, 501);
    for (let n = 1; n <= 1_500; n++) emit(a, n);
    await world.clock.advance(100);
    assert.equal(there.told[501], "gap");
    assert.equal(there.told.at(-1), "7-2000 1500");
    for (let n = 1; n <= 1_500; n++) emit(b, n);
    await world.clock.advance(200);
    assert.ok(there.told.lastIndexOf("gap") > 501);
    assert.equal(there.told.at(-1)!.split(" ")[1], "1500");
  });

  it("understand only what they are meant to", () => {
    const told = { say: "told", epoch: 7, first: 1, events: [{ event: "x", data: {} }] };
    assert.deepEqual(eventMessage(told), told);
    assert.deepEqual(eventMessage({ say: "wanted", more: 1 }), { say: "wanted" });
    for (const bad of [
      null,
      "x",
      {},
      { ...told, say: "sung" },
      { ...told, epoch: "7" },
      { ...told, first: -1 },
      { ...told, events: {} },
      { ...told, events: [{ event: 1, data: {} }] },
      { ...told, events: [null] },
    ]) {
      assert.equal(eventMessage(bad), null, JSON.stringify(bad));
    }
  });
});
