import assert from "node:assert/strict";
import type { Promises } from "../promises.ts";
import { type ChannelsWorld, gate, message, messages, turn, until } from "./world.ts";

const stopped = { code: "STOPPED" };

export const lifePromises: Promises<ChannelsWorld> = {
  "a stop waits for the handlers that run, and no handler starts after it": async ({ here, there }) => {
    const door = gate();
    let running = 0;
    let started = 0;
    const handler = async (): Promise<void> => {
      running += 1;
      started += 1;
      await door.passed;
      running -= 1;
    };
    there.consume("q", handler, { batchMax: 1 });
    there.subscribe("t", handler);
    await here.send("q", messages(3));
    await here.publish("t", messages(3));
    await until("both handlers", () => running === 2);
    const stopping = there.stop().then(() => running);
    await turn();
    door.open();
    assert.equal(await stopping, 0, "stopped while a handler runs");
    for (let i = 0; i < 20; i++) await turn();
    assert.equal(started, 2);
  },

  "a stop does not wait for what was sent and not taken": async ({ here, there }) => {
    await here.send("nobody consumes", messages(10));
    await there.stop();
  },

  "every call on stopped channels is refused with STOPPED": async ({ here }) => {
    const consumer = here.consume("q", async () => {});
    await here.stop();
    await assert.rejects(here.send("q", [message(1)]), stopped);
    await assert.rejects(here.send("q", []), stopped);
    await assert.rejects(here.publish("t", [message(1)]), stopped);
    assert.throws(() => here.consume("q", async () => {}), stopped);
    assert.throws(() => here.subscribe("t", () => {}), stopped);
    await consumer.close();
  },
};
