import assert from "node:assert/strict";
import * as fc from "../../support/fast-check.ts";
import type { Delivery } from "../../../src/channels/channels.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { Promises } from "../promises.ts";
import {
  type ChannelsWorld,
  gate,
  held,
  message,
  messages,
  quiet,
  Reader,
  reading,
  turn,
  until,
} from "./world.ts";
import { columns } from "../../support/columns.ts";

const byNumber = (a: unknown, b: unknown): number => Number(a) - Number(b);

export const queuePromises: Promises<ChannelsWorld> = {
  "what was sent before anybody consumed is kept": async ({ here, there }) => {
    await here.send("q", messages(3));
    await here.send("q", [message("last", "key-0")]);
    const reader = reading(there);
    await until("four messages", () => reader.deliveries.length === 4);
    assert.deepEqual(reader.deliveries, [
      { key: "key-0", body: 0, deliveries: 1 },
      { key: "key-0", body: 1, deliveries: 1 },
      { key: "key-0", body: 2, deliveries: 1 },
      { key: "key-0", body: "last", deliveries: 1 },
    ]);
  },

  "of consumers that compete, one handles each message, and all of them get some": async (world) => {
    const readers = [new Reader(), new Reader(), new Reader()];
    for (const [i, reader] of readers.entries()) {
      const channels = i % 2 ? world.here : world.there;
      channels.consume(
        "q",
        async (batch) => {
          await reader.handle(batch);
          await turn();
        },
        { batchMax: 5 },
      );
    }
    await world.here.send("q", messages(300, 60));
    const handled = (): unknown[] => readers.flatMap((reader) => reader.bodies);
    await until("300 messages", () => handled().length >= 300);
    await quiet(world);
    const expected = messages(300).map(({ body }) => body);
    assert.deepEqual(handled().sort(byNumber), expected);
    for (const reader of readers) assert.ok(reader.batches.length > 0, "a consumer got nothing");
  },

  "a batch whose handler rejected comes again as a whole, counted": async ({ here, there }) => {
    const reader = new Reader();
    there.consume("q", async (batch) => {
      await reader.handle(batch);
      if (reader.deliveries.length < 9) throw new Error("not yet");
    });
    await here.send("q", messages(3, 3));
    await until("three rounds of three messages", () => reader.deliveries.length === 9);
    for (const body of [0, 1, 2]) {
      const counts = reader.deliveries.filter((delivery) => delivery.body === body);
      const found = counts.map((delivery) => delivery.deliveries);
      assert.deepEqual(found, [1, 2, 3]);
    }
  },

  "a handler that throws before it waits for anything has failed too": async ({ here, there }) => {
    const seen: Delivery[] = [];
    const handler = (batch: readonly Delivery[]): Promise<void> => {
      seen.push(...batch);
      if (seen.length === 1) throw new Error("at once");
      return Promise.resolve();
    };
    there.consume("q", handler);
    await here.send("q", messages(1));
    await until("the second delivery", () => seen.length === 2);
    const counts = seen.map(({ deliveries }) => deliveries);
    assert.deepEqual(counts, [1, 2]);
    await here.send("q", [message("next")]);
    await until("the next message", () => seen.length === 3);
  },

  "what one consumer cannot handle, another may": async ({ here, there }) => {
    const reader = new Reader();
    here.consume("q", () => Promise.reject(new Error("I never can")), { batchMax: 1 });
    there.consume("q", reader.handle, { batchMax: 1 });
    await here.send("q", messages(20, 20));
    await until("all twenty", () => reader.deliveries.length === 20);
  },

  "a consumer that closes in the middle of a batch leaves to the others what it did not handle": async (
    world,
  ) => {
    const { reader: first, door, subscription: closing } = held(world.here);
    await world.here.send("q", messages(3));
    await until("the first consumer to be busy", () => first.deliveries.length === 3);
    const second = reading(world.there);
    await world.here.send("q", [message("later", "another key")]);
    const closed = closing.close();
    door.fail();
    await closed;
    await until("the other to get all", () => second.deliveries.length === 4);
    const redelivered = second.deliveries.filter(({ key }) => key === "key-0");
    assert.deepEqual(columns(redelivered, "body", "deliveries"), [
      [0, 2],
      [1, 2],
      [2, 2],
    ]);
    assert.equal(first.deliveries.length, 3, "a closed consumer was given more");
  },

  "closing resolves when no handler runs any more, and what was handled stays handled": async (world) => {
    const door = gate();
    let busy = false;
    const closing = world.there.consume("q", async () => {
      busy = true;
      await door.passed;
      busy = false;
    });
    await world.here.send("q", messages(2));
    await until("a busy handler", () => busy);
    const closed = closing.close().then(() => busy);
    await turn();
    door.open();
    assert.equal(await closed, false, "closed while its handler runs");
    await closing.close();
    const reader = reading(world.here);
    await quiet(world);
    assert.deepEqual(reader.deliveries, []);
  },

  "an exclusive queue has one batch out at a time, on all nodes, in the order of sending": async (world) => {
    const handled: unknown[] = [];
    let busy = false;
    // Noted and not thrown: a handler that throws is only given its batch again.
    const mistakes: string[] = [];
    for (const [i, channels] of [world.here, world.there, world.here].entries()) {
      channels.consume(
        "q",
        async (batch) => {
          if (busy) mistakes.push("two batches at the same time");
          busy = true;
          for (let wait = 0; wait < (i * 7 + handled.length) % 5; wait++) await turn();
          for (const { body } of batch) handled.push(body);
          busy = false;
        },
        { batchMax: 4, exclusive: true },
      );
    }
    for (let round = 0; round < 20; round++) {
      await world.here.send(
        "q",
        Array.from({ length: 10 }, (_, i) => message(10 * round + i, `key-${i}`)),
      );
      await turn();
    }
    await until("200 messages", () => handled.length >= 200);
    assert.deepEqual(mistakes, []);
    const expected = Array.from({ length: 200 }, (_, i) => i);
    assert.deepEqual(handled, expected);
  },

  "while a failed batch of an exclusive queue waits, nothing behind it is delivered": async (world) => {
    const reader = new Reader();
    const seen: unknown[] = [];
    for (const channels of [world.here, world.there]) {
      channels.consume(
        "q",
        async (batch) => {
          seen.push(batch[0]!.body);
          // The last pause is 160 ms: a busy machine takes less than that to deliver what is behind.
          if (batch[0]!.body === "log" && seen.length < 7) throw new Error("the store is away");
          await reader.handle(batch);
        },
        { batchMax: 1, exclusive: true },
      );
    }
    await world.here.send("q", [message("log"), message("result")]);
    await until("both", () => reader.deliveries.length === 2);
    assert.deepEqual(seen, [...Array.from({ length: 7 }, () => "log"), "result"]);
  },

  "a slow handler holds up neither the sender nor other consumers": async ({ here, there }) => {
    const door = gate();
    const started = new Set<string>();
    here.consume(
      "q",
      async ([first]) => {
        started.add(first!.key);
        await door.passed;
      },
      { batchMax: 1 },
    );
    await here.send("q", [message(0, "slow")]);
    await until("the slow one to start", () => started.size === 1);
    const reader = reading(there);
    await here.send("q", messages(50, 50));
    await until("the others to be handled", () => reader.deliveries.length + started.size === 51);
    door.open();
  },

  "no batch is larger than asked for": async ({ here, there }) => {
    const reader = new Reader();
    await here.send("q", messages(100, 3));
    there.consume("q", reader.handle, { batchMax: 7 });
    await until("100 messages", () => reader.deliveries.length === 100);
    for (const batch of reader.batches) assert.ok(batch.length >= 1 && batch.length <= 7);
  },

  "twenty thousand messages in one call get through, each once": async ({ here, there }) => {
    const seen = new Set<unknown>();
    let count = 0;
    there.consume(
      "q",
      async (batch) => {
        count += batch.length;
        for (const { body } of batch) seen.add(body);
      },
      { batchMax: 1_000 },
    );
    await here.send("q", messages(20_000, 100));
    await until("all of them", () => count >= 20_000);
    assert.equal(count, 20_000);
    assert.equal(seen.size, 20_000);
  },

  "sending nothing delivers nothing, and queues do not mix": async (world) => {
    const one = new Reader();
    const other = new Reader();
    world.there.consume("one", one.handle);
    world.there.consume("other", other.handle);
    await world.here.send("one", []);
    await world.here.send("one", [message("for one")]);
    await world.here.publish("one", [message("a topic of that name")]);
    await quiet(world);
    assert.deepEqual(one.bodies, ["for one"]);
    assert.deepEqual(other.batches, []);
  },

  "a body is a copy: for the sender, and for every delivery": async ({ here, there }) => {
    const body = { list: [1] };
    const seen: unknown[] = [];
    there.consume("q", async ([delivery]) => {
      const received = delivery!.body as typeof body;
      seen.push(structuredClone(received));
      received.list.push(99);
      if (seen.length === 1) throw new Error("once more");
    });
    await here.send("q", [message(body)]);
    body.list.push(2);
    await until("the second delivery", () => seen.length === 2);
    assert.deepEqual(seen, [{ list: [1] }, { list: [1] }]);
    assert.deepEqual(body, { list: [1, 2] });
  },

  "every JSON value arrives as it was sent": async ({ here, there }) => {
    const reader = reading(there);
    const bodies = fc.sample(fc.jsonValue(), { numRuns: 100, seed: 7 });
    const awkward = ["", "\u0000\u2028\ud83d\ude00", '"quoted"', { __proto__: null, a: null }, -0, 1e300, []];
    const sent = [...bodies, ...awkward].map((body) => message(body));
    await here.send("q", sent);
    await until("all values", () => reader.deliveries.length === sent.length);
    const travelled: unknown[] = sent.map(({ body }) => JSON.parse(JSON.stringify(body)));
    assert.deepEqual(reader.bodies, travelled);
  },

  "a body that is no JSON value is refused by its place, and nothing of its call is sent": async (world) => {
    const reader = reading(world.there);
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    for (const body of [undefined, 10n, () => 1, circular]) {
      const refused = { code: "BAD_REQUEST", details: { field: "[1].body" } };
      await assert.rejects(world.here.send("q", [message(1), message(body)]), refused);
    }
    await quiet(world);
    assert.deepEqual(reader.batches, []);
  },

  "any string is a key, and no two of them are mixed up": async ({ here, there }) => {
    const keys = [
      "",
      " ",
      '"',
      "\\",
      "a",
      "A",
      "\u00e9",
      "e\u0301",
      "\u0000",
      "\ud800",
      "\ud83d\ude00",
      "k".repeat(255),
    ];
    const reader = new Reader();
    const topics: string[] = [];
    there.subscribe("t", ({ key }) => void topics.push(key));
    there.consume("q", reader.handle);
    const sent = [0, 1].flatMap((round) => keys.map((key) => message(round, key)));
    await here.send("q", sent);
    await here.publish("t", sent);
    await until("all of them", () => reader.deliveries.length >= sent.length && topics.length >= sent.length);
    for (const key of keys) {
      const bodies = reader.deliveries.filter((delivery) => delivery.key === key);
      const found = bodies.map(({ body }) => body);
      assert.deepEqual(found, [0, 1], JSON.stringify(key));
    }
    const expected = sent.map(({ key }) => key);
    assert.deepEqual(topics, expected);
  },

  "a key or a name that is no short string is refused, and nothing of its call is sent": async (world) => {
    const reader = reading(world.there);
    for (const key of ["k".repeat(256), 1 as unknown as string, undefined as unknown as string]) {
      const refused = { code: "BAD_REQUEST", details: { field: "[1].key" } };
      await assert.rejects(world.here.send("q", [message(1), { key, body: 2 }]), refused);
    }
    for (const name of ["", "n".repeat(289), "line\nbreak"]) {
      const refused = (field: string) => (error: unknown) =>
        hasCode(error, "BAD_REQUEST") && error.details.field === field;
      await assert.rejects(world.here.send(name, [message(1)]), refused("queue"));
      await assert.rejects(world.here.publish(name, [message(1)]), refused("topic"));
      assert.throws(() => world.here.consume(name, reader.handle), refused("queue"));
      assert.throws(() => world.here.subscribe(name, () => {}), refused("topic"));
    }
    await quiet(world);
    assert.deepEqual(reader.batches, []);
  },

  "a batch size below one is refused": async ({ here }) => {
    for (const batchMax of [0, -1, 1.5, Number.NaN]) {
      const refused = { code: "BAD_REQUEST", details: { field: "batchMax" } };
      assert.throws(() => here.consume("q", async () => {}, { batchMax }), refused);
    }
  },
};
