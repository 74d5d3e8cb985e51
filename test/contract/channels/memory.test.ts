import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MemoryChannels } from "../../../src/channels/memory/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { channelsContract } from "./contract.ts";
import { gate, message, messages, Reader, reading, turn, until } from "./world.ts";

channelsContract("memory", async () => {
  const channels = new MemoryChannels({ clock: systemClock });
  await channels.start();
  return { here: channels, there: channels };
});

describe("memory channels", () => {
  test("a batch that fails again and again is delivered at growing intervals", async () => {
    const clock = new ManualClock();
    const warned: string[] = [];
    const log = { warn: (_: object, text: string) => void warned.push(text) };
    await using channels = new MemoryChannels({ clock, log });
    await channels.start();
    const at: number[] = [];
    channels.consume("q", async () => {
      at.push(clock.monotonic());
      throw new Error("never");
    });
    await channels.send("q", [message("poison")]);
    await clock.advance(100);
    assert.deepEqual(at, [0, 10, 25, 50, 95]);
    assert.deepEqual(new Set(warned), new Set(["a batch failed; it is delivered again"]));
    await clock.advance(60_000);
    assert.equal(at.at(-1)! - at.at(-2)!, 5_005, "there is an upper limit");
  });

  test("what comes again at once stands before what was sent after it", async () => {
    await using channels = new MemoryChannels({ clock: systemClock });
    await channels.start();
    const reader = new Reader();
    channels.consume(
      "q",
      async (batch) => {
        await reader.handle(batch);
        if (reader.batches.length === 1) throw new Error("once");
      },
      { batchMax: 2 },
    );
    await channels.send("q", messages(4));
    await until("all, and two of them twice", () => reader.deliveries.length === 6);
    assert.deepEqual(reader.bodies, [0, 1, 0, 1, 2, 3]);
  });

  test("a message that no consumer can handle does not block the others", async () => {
    await using channels = new MemoryChannels({ clock: systemClock });
    await channels.start();
    const reader = new Reader();
    channels.consume(
      "q",
      async (batch) => {
        if (batch[0]!.body === "poison") throw new Error("never");
        await reader.handle(batch);
      },
      { batchMax: 1 },
    );
    await channels.send("q", [message("poison"), message("behind it")]);
    await until("the message behind", () => reader.deliveries.length === 1);
  });

  test("nothing waits for its redelivery after a stop, and a new start finds it", async () => {
    const clock = new ManualClock();
    const channels = new MemoryChannels({ clock });
    await channels.start();
    let tries = 0;
    channels.consume("q", async () => {
      tries += 1;
      throw new Error("never");
    });
    await channels.send("q", messages(2));
    await until("a pause before the second delivery", () => tries === 1 && clock.waiting === 1);
    await clock.advance(10);
    await until("a pause before the third delivery", () => tries === 2 && clock.waiting === 1);
    await channels.stop();
    assert.equal(clock.waiting, 0);
    await channels.start();
    const reader = reading(channels);
    await until("both messages", () => reader.deliveries.length === 2);
    assert.deepEqual(reader.counts, [3, 3]);
    await channels.stop();
  });

  test("a subscriber that hangs is kept a bounded backlog, of the newest", async () => {
    const warned: object[] = [];
    const log = { warn: (fields: object) => void warned.push(fields) };
    await using channels = new MemoryChannels({ clock: systemClock, log });
    await channels.start();
    const door = gate();
    const bodies: unknown[] = [];
    channels.subscribe("t", async ({ body }) => {
      await door.passed;
      bodies.push(body);
    });
    await channels.publish("t", [message("first")]);
    await turn();
    await turn();
    await channels.publish("t", messages(100_010));
    assert.deepEqual(warned, [{ topic: "t", messages: 10 }]);
    door.open();
    await until("the rest", () => bodies.length === 100_001);
    assert.deepEqual(bodies.slice(0, 2), ["first", 10]);
  });

  lifecycleStress("memory channels", async () => ({
    service: new MemoryChannels({ clock: systemClock }),
    works: async (channels) => {
      const reader = new Reader();
      const consumer = channels.consume("q", reader.handle);
      await channels.send("q", messages(1));
      await until("the message", () => reader.deliveries.length === 1);
      await consumer.close();
    },
  }));
});
