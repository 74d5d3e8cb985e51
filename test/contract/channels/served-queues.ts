/** What queues must keep on every server: consumers that die, are cut off or come too late, and messages that nobody can handle. */

import assert from "node:assert/strict";
import type { Channels } from "../../../src/channels/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import type { TcpProxy } from "../../support/tcp-proxy.ts";
import { prove, type Promises } from "../promises.ts";
import { gate, held, message, messages, Reader, reading, turn, until } from "./world.ts";

export interface ServedOptions {
  readonly leaseMs?: number;
  /** How often it looks by itself. */
  readonly lookMs?: number;
  /** Through the proxy, which may cut it off. */
  readonly cut?: boolean;
}

/** Queues on a server that was emptied before. */
export interface ServedQueues {
  readonly started: (options?: ServedOptions) => Promise<Channels>;
  readonly proxy: TcpProxy;
  /** How many messages of the queue are there, handled by nobody yet. */
  readonly waiting: () => Promise<number>;
  /** When all was handled and all have gone. */
  readonly nothingIsLeft: () => Promise<void>;
  /** Until what is taken from the queue stays so for this much longer than when this was asked. */
  readonly prolonged: (ms: number) => Promise<void>;
  /** Of the one message that is there. */
  readonly left: () => Promise<{ readonly deliveries: number; readonly taken: boolean }>;
}

/** Until a send of its own gets through. */
async function connected(node: Channels): Promise<void> {
  let through = false;
  const sent: Promise<unknown>[] = [];
  await until("it to be connected again", () => {
    const sending = node.send("another queue", [message(0)]).then(
      () => (through = true),
      () => {},
    );
    sent.push(sending);
    return through;
  });
  await Promise.all(sent);
}

export interface Turmoil {
  readonly nodes: readonly Channels[];
  readonly rounds: number;
  readonly send: (round: number) => Channels;
  readonly disturb?: (round: number) => void;
}

/** An exclusive queue is never with two consumers, of which some fail; all is handled in the end, in order. */
export async function onlyOneHasIt({ nodes, rounds, send, disturb }: Turmoil): Promise<void> {
  const random = seededRandom(11);
  let busy = false;
  const mistakes: string[] = [];
  const handled: number[] = [];
  for (const node of [...nodes, ...nodes]) {
    node.consume(
      "q",
      async (batch) => {
        if (busy) mistakes.push("two consumers have a batch");
        busy = true;
        for (let wait = 0; wait < random.chance() * 6; wait++) await turn();
        busy = false;
        if (random.chance() < 0.2) throw new Error("by chance");
        for (const { body } of batch) handled.push(Number(body));
      },
      { batchMax: 1 + Math.floor(random.chance() * 8), exclusive: true },
    );
  }
  let n = 0;
  for (let round = 0; round < rounds; round++) {
    const batch = Array.from({ length: 15 }, () => message(++n, "k"));
    await send(round).send("q", batch);
    disturb?.(round);
  }
  await until("all of them", () => new Set(handled).size === n);
  assert.deepEqual(mistakes, []);
  const first = [...new Set(handled)];
  const expected = first.toSorted((a, b) => a - b);
  assert.deepEqual(first, expected, "one was first handled before an older one");
}

const promises: Promises<ServedQueues> = {
  "what a consumer had taken when it died is delivered elsewhere, counted, in its order": async (queues) => {
    const { started, proxy } = queues;
    const dying = await started({ cut: true, leaseMs: 400, lookMs: 50 });
    const here = await started({ leaseMs: 400, lookMs: 50 });
    const { reader: first, door } = held(dying);
    await here.send("q", messages(6, 2));
    await until("the first consumer to be busy", () => first.deliveries.length === 6);
    await proxy.refuse();
    const second = reading(here);
    await until("all of them again", () => second.deliveries.length === 6);
    for (const [key, bodies] of [
      ["key-0", [0, 2, 4]],
      ["key-1", [1, 3, 5]],
    ] as const) {
      const found = second.deliveries.filter((delivery) => delivery.key === key);
      const expected = bodies.map((body) => ({ key, body, deliveries: 2 }));
      assert.deepEqual(found, expected);
    }
    // It was only cut off. What it says now about the batch is about messages that are not its any more.
    await here.send("q", [message("next", "key-0")]);
    await until("the next message", () => second.deliveries.length === 7);
    await proxy.forward();
    door.open();
    await Promise.all([dying.stop(), here.stop()]);
    await queues.nothingIsLeft();
  },

  "a late end of a batch touches nothing that another has taken meanwhile": async (queues) => {
    const { started, proxy, waiting } = queues;
    const slow = await started({ cut: true, leaseMs: 200, lookMs: 30 });
    const here = await started({ leaseMs: 60_000, lookMs: 30 });
    const [late, mine] = [gate(), gate()];
    let busy = false;
    const consumer = slow.consume("q", async () => {
      busy = true;
      await late.passed;
    });
    await here.send("q", messages(2));
    await until("the slow one to be busy", () => busy);
    await proxy.refuse();
    const second = new Reader();
    here.consume("q", async (batch) => {
      await second.handle(batch);
      await mine.passed;
    });
    await until("them to be with another", () => second.deliveries.length === 2);
    await proxy.forward();
    await connected(slow);
    late.open();
    await consumer.close();
    assert.equal(await waiting(), 2, "they are gone although nobody has handled them");
    mine.open();
    await here.stop();
    assert.equal(await waiting(), 0);
  },

  "a batch stays with its consumer for as long as the handler runs": async (queues) => {
    const [here, there] = await Promise.all([1, 2].map(() => queues.started({ leaseMs: 200, lookMs: 20 })));
    const { reader: first, door } = held(here!);
    await here!.send("q", messages(3, 3));
    await until("a busy consumer", () => first.deliveries.length === 3);
    const second = new Reader();
    const prolonged = queues.prolonged(600);
    there!.consume("q", second.handle);
    await prolonged;
    door.open();
    await Promise.all([here!.stop(), there!.stop()]);
    assert.deepEqual([first.batches.length, second.batches], [1, []]);
    await queues.nothingIsLeft();
  },

  "a message that no consumer can handle does not block the others, and is tried ever more rarely": async (
    queues,
  ) => {
    const here = await queues.started();
    const at: number[] = [];
    const reader = new Reader();
    here.consume(
      "q",
      async (batch) => {
        if (batch[0]!.body !== "poison") return reader.handle(batch);
        at.push(systemClock.monotonic());
        throw new Error("never");
      },
      { batchMax: 1 },
    );
    await here.send("q", [message("poison"), message("behind it"), message("other", "other key")]);
    await until("the messages behind", () => reader.deliveries.length === 2);
    await until("a few deliveries", () => at.length === 6);
    // 0, 10, 20, 40 and 80 ms at least.
    assert.ok(at[5]! - at[0]! >= 150, `${at[5]! - at[0]!} ms`);
    await here.stop();
    const { deliveries, taken } = await queues.left();
    assert.equal(taken, false);
    assert.ok(deliveries >= 6, `${deliveries} deliveries`);
  },

  "what was taken for a consumer that closed meanwhile goes back and does not count": async ({ started }) => {
    const here = await started();
    await here.send("q", messages(5));
    const early = new Reader();
    for (let round = 0; round < 20; round++) {
      const closing = here.consume("q", early.handle);
      await turn(); // the take is on its way, its answer is not here yet
      await closing.close();
    }
    assert.deepEqual(early.batches, []);
    const reader = reading(here);
    await until("all of them", () => reader.deliveries.length === 5);
    const found = reader.deliveries.map(({ body, deliveries }) => [body, deliveries]);
    const expected = [0, 1, 2, 3, 4].map((body) => [body, 1]);
    assert.deepEqual(found, expected);
  },

  "a large body is a message like any other": async ({ started }) => {
    const [here, there] = [await started(), await started()];
    const reader = reading(there);
    const body = { text: "\u00e9\ud83d\ude00".repeat(200_000) };
    await here.send("q", [message(body)]);
    await until("the message", () => reader.deliveries.length === 1);
    assert.deepEqual(reader.bodies, [body]);
  },
};

export function servedQueues(name: string, open: () => ServedQueues): void {
  prove(`queues on ${name}`, promises, (proof) => proof(open()));
}
