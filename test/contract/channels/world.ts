import assert from "node:assert/strict";
import type { Channels, ConsumeOptions, Delivery, Message } from "../../../src/channels/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";

export interface ChannelsWorld {
  readonly here: Channels;
  readonly there: Channels;
}

/**
 * How long a proof waits. Used up only by a backend that lost something, also on a machine that is busy with other
 * tests; the broken ones are given less.
 */
export const patience = { ms: 10_000 };

/** Waits for a condition, and says what it waited for when it does not come. */
export async function until(what: string, condition: () => boolean): Promise<void> {
  const deadline = systemClock.monotonic() + patience.ms;
  while (!condition()) {
    assert.ok(systemClock.monotonic() < deadline, `waited in vain: ${what}`);
    await turn();
  }
}

/** Long enough for what should not arrive to arrive: a message behind it went all the way through, twice. */
export async function quiet({ here, there }: ChannelsWorld): Promise<void> {
  for (let round = 0; round < 2; round++) {
    let arrived = 0;
    const queue = there.consume("quiet", async (batch) => void (arrived += batch.length));
    const topic = there.subscribe("quiet", () => void (arrived += 1));
    await here.send("quiet", [{ key: "quiet", body: null }]);
    await here.publish("quiet", [{ key: "quiet", body: null }]);
    await until("the markers", () => arrived >= 2);
    await Promise.all([queue.close(), topic.close()]);
  }
}

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function message(body: unknown, key = "k"): Message {
  return { key, body };
}

export function messages(count: number, keys = 1): Message[] {
  return Array.from({ length: count }, (_, i) => message(i, `key-${i % keys}`));
}

/** A handler that keeps what it was given. */
export class Reader {
  readonly batches: Delivery[][] = [];
  readonly handle = async (batch: readonly Delivery[]): Promise<void> => {
    this.batches.push([...batch]);
  };

  get deliveries(): Delivery[] {
    return this.batches.flat();
  }

  get bodies(): unknown[] {
    return this.deliveries.map((delivery) => delivery.body);
  }

  /** Of each delivery, the how manieth it was. */
  get counts(): number[] {
    return this.deliveries.map(({ deliveries }) => deliveries);
  }
}

type Reading = ConsumeOptions & { readonly queue?: string };

export function reading(channels: Channels, { queue = "q", ...options }: Reading = {}): Reader {
  const reader = new Reader();
  channels.consume(queue, reader.handle, options);
  return reader;
}

/** The same, and the handler waits at a door with each batch. */
export function held(channels: Channels, { queue = "q", ...options }: Reading = {}) {
  const [reader, door] = [new Reader(), gate()];
  const handle = async (batch: readonly Delivery[]): Promise<void> => {
    await reader.handle(batch);
    await door.passed;
  };
  return { reader, door, subscription: channels.consume(queue, handle, options) };
}

const doors = new Set<() => void>();

/** A door that a handler waits at until the proof opens it. */
export function gate(): { readonly passed: Promise<void>; open(): void; fail(): void } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  promise.catch(() => {});
  doors.add(resolve);
  return { passed: promise, open: resolve, fail: () => reject(new Error("the handler was told to fail")) };
}

/** A test that failed leaves its doors closed, and a stop would wait for ever. For files that run one test at a time. */
export function openDoors(): void {
  for (const open of doors) open();
  doors.clear();
}
