/** What channels must keep on every server that fails: one that cannot be reached, is silent, or is started again. */

import assert from "node:assert/strict";
import type { Channels } from "../../../src/channels/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import type { TcpProxy } from "../../support/tcp-proxy.ts";
import type { Watched } from "./served-world.ts";
import { message, messages, reading, turn, until } from "./world.ts";

export const unavailable = { code: "STORE_UNAVAILABLE" };

/** `node` reaches the server through the proxy; `loss` is what it warns of. */
export async function refusesWhileAway(
  node: Watched<Channels>,
  other: Channels,
  proxy: TcpProxy,
  loss: string,
): Promise<void> {
  const reader = reading(node.channels, { batchMax: 10 });
  await other.send("q", messages(3));
  await until("the first messages", () => reader.deliveries.length === 3);
  await proxy.refuse();
  await until("the loss", () => node.warned.includes(loss));
  await assert.rejects(node.channels.publish("t", [message("alone")]), unavailable);
  await assert.rejects(node.channels.send("q", [message("lost")]), unavailable);
  assert.ok(node.heard.includes("alone"), "our own subscribers hear it all the same");
  await other.send("q", [message("meanwhile")]);
  await other.publish("t", [message("a hint meanwhile")]);

  await proxy.forward();
  await until("what was sent meanwhile", () => reader.bodies.includes("meanwhile"));
  await node.hears(other, "again");
  await node.hears(node.channels, "our own voice");
  assert.equal(reader.bodies.includes("lost"), false);
}

/** `node` reaches the server through the proxy, and gives a call up after 200 ms. */
export async function givesUpSilence(node: Watched<Channels>, proxy: TcpProxy): Promise<void> {
  await node.channels.send("q", [message(1)]);
  await proxy.freeze("down");
  const from = systemClock.monotonic();
  await assert.rejects(node.channels.publish("t", [message(1)]), unavailable);
  await assert.rejects(node.channels.send("q", [message(1)]), unavailable);
  await node.channels.stop();
  assert.ok(systemClock.monotonic() - from < 3_000);
}

/** The server is restarted, with its data, so many times while messages are sent. */
export async function losesNothing(
  here: Channels,
  there: Channels,
  restarts: number,
  restart: () => Promise<void>,
): Promise<void> {
  const reader = reading(there, { batchMax: 5 });
  const sent: number[] = [];
  let over = false;
  const sending = (async () => {
    for (let n = 0; !over; n++)
      await here.send("q", [message(n, `key-${n % 7}`)]).then(() => void sent.push(n), turn);
  })();
  for (let round = 0; round <= restarts; round++) {
    const before = sent.length;
    await until("some messages", () => sent.length > before + 50);
    if (round < restarts) await restart();
  }
  over = true;
  await sending;
  await until("every message that was sent", () => {
    const seen = new Set(reader.bodies);
    return sent.every((n) => seen.has(n));
  });
}
