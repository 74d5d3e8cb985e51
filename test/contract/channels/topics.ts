import assert from "node:assert/strict";
import type { Message } from "../../../src/channels/channels.ts";
import type { Promises } from "../promises.ts";
import { type ChannelsWorld, gate, message, messages, quiet, turn, until } from "./world.ts";

/** A handler that notes bodies. */
function noted(): { readonly bodies: unknown[]; readonly handle: (message: Message) => void } {
  const bodies: unknown[] = [];
  return { bodies, handle: ({ body }) => void bodies.push(body) };
}

export const topicPromises: Promises<ChannelsWorld> = {
  "a topic reaches everybody who is subscribed, in the order of publishing": async ({ here, there }) => {
    const readers = [noted(), noted(), noted()];
    for (const [i, reader] of readers.entries()) (i % 2 ? here : there).subscribe("t", reader.handle);
    for (let i = 0; i < 50; i += 5) {
      await here.publish(
        "t",
        messages(5).map(({ key, body }) => ({ key, body: Number(body) + i })),
      );
    }
    await until("50 messages for each", () => readers.every(({ bodies }) => bodies.length >= 50));
    const inOrder = Array.from({ length: 50 }, (_, i) => i);
    for (const { bodies } of readers) assert.deepEqual(bodies, inOrder);
  },

  "a handler that is subscribed twice is called twice": async (world) => {
    const reader = noted();
    world.there.subscribe("t", reader.handle);
    const second = world.there.subscribe("t", reader.handle);
    await world.here.publish("t", [message("twice")]);
    await until("both calls", () => reader.bodies.length === 2);
    await second.close();
    await world.here.publish("t", [message("once")]);
    await quiet(world);
    assert.deepEqual(reader.bodies, ["twice", "twice", "once"]);
  },

  "nothing is kept for those who subscribe later": async (world) => {
    await world.here.publish("t", [message("nobody listens")]);
    await quiet(world);
    const early = noted();
    world.there.subscribe("t", early.handle);
    await world.here.publish("t", [message("one listens")]);
    await until("the first subscriber's message", () => early.bodies.length === 1);
    const late = noted();
    world.there.subscribe("t", late.handle);
    await world.here.publish("t", [message("both listen")]);
    await quiet(world);
    assert.deepEqual(early.bodies, ["one listens", "both listen"]);
    assert.deepEqual(late.bodies, ["both listen"]);
  },

  "a slow subscriber holds up neither the publisher nor the others, and misses nothing itself": async (
    world,
  ) => {
    const door = gate();
    const slow = noted();
    const quick = noted();
    world.there.subscribe("t", async (received) => {
      await door.passed;
      slow.handle(received);
    });
    world.there.subscribe("t", quick.handle);
    for (const one of messages(20)) await world.here.publish("t", [one]);
    await until("the quick one to be done", () => quick.bodies.length === 20);
    assert.deepEqual(slow.bodies, []);
    door.open();
    await until("the slow one to be done", () => slow.bodies.length === 20);
    assert.deepEqual(slow.bodies, quick.bodies);
  },

  "a subscriber gets one message at a time": async ({ here, there }) => {
    let busy = 0;
    let most = 0;
    let done = 0;
    there.subscribe("t", async () => {
      most = Math.max(most, ++busy);
      await turn();
      busy -= 1;
      done += 1;
    });
    await here.publish("t", messages(20, 20));
    await until("20 messages", () => done === 20);
    assert.equal(most, 1);
  },

  "a handler that throws or rejects loses that message and gets the next": async ({ here, there }) => {
    const reader = noted();
    there.subscribe("t", (received) => {
      if (received.body === 0) throw new Error("thrown");
      if (received.body === 1) return Promise.reject(new Error("rejected"));
      return reader.handle(received);
    });
    const neighbour = noted();
    there.subscribe("t", neighbour.handle);
    await here.publish("t", messages(4));
    await until("the last message", () => reader.bodies.length === 2);
    assert.deepEqual(reader.bodies, [2, 3]);
    await until("the neighbour's messages", () => neighbour.bodies.length === 4);
  },

  "after a subscription is closed nothing arrives, and closing waits for its handler": async (world) => {
    const door = gate();
    const reader = noted();
    let busy = false;
    const subscription = world.there.subscribe("t", async (received) => {
      busy = true;
      reader.handle(received);
      await door.passed;
      busy = false;
    });
    await world.here.publish("t", messages(3));
    await until("a busy handler", () => busy);
    const closed = subscription.close().then(() => busy);
    await turn();
    door.open();
    assert.equal(await closed, false, "closed while its handler runs");
    await subscription.close();
    await world.here.publish("t", [message("late")]);
    await quiet(world);
    assert.deepEqual(reader.bodies, [0]);
  },

  "each subscriber gets a copy of its own": async ({ here, there }) => {
    const body = { list: [1] };
    const seen: unknown[] = [];
    for (let i = 0; i < 2; i++) {
      there.subscribe("t", (received) => {
        const mine = received.body as typeof body;
        seen.push(structuredClone(mine));
        mine.list.push(99);
      });
    }
    await here.publish("t", [message(body)]);
    body.list.push(2);
    await until("both", () => seen.length === 2);
    assert.deepEqual(seen, [{ list: [1] }, { list: [1] }]);
  },

  "topics do not mix, and a queue of the same name is another thing": async (world) => {
    const one = noted();
    const other = noted();
    world.there.subscribe("one", one.handle);
    world.there.subscribe("other", other.handle);
    await world.here.send("one", [message("queued")]);
    await world.here.publish("one", []);
    await world.here.publish("one", [message("published")]);
    await quiet(world);
    assert.deepEqual(one.bodies, ["published"]);
    assert.deepEqual(other.bodies, []);
  },
};
