import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../support/fast-check.ts";
import {
  type Entry,
  fits,
  messageEntry,
  pack,
  parsePayload,
  PAYLOAD_BYTES_MAX,
  queueEntry,
  storedEntry,
} from "../../../src/channels/postgres/payload.ts";

const ORIGIN = "0123456789abcdef";

const entries = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant("message" as const),
      topic: fc.string({ minLength: 1 }),
      key: fc.string({ unit: "binary" }),
      body: fc.jsonValue(),
    }),
    fc.record({ kind: fc.constant("stored" as const), topic: fc.string({ minLength: 1 }), id: fc.uuid() }),
    fc.record({ kind: fc.constant("queue" as const), queue: fc.string({ minLength: 1 }) }),
    fc.record({
      kind: fc.constant("message" as const),
      topic: fc.constant("large"),
      key: fc.constant("k"),
      body: fc.string({ minLength: 2_000, maxLength: 5_000, unit: "grapheme" }),
    }),
  ),
  { maxLength: 60 },
);

function text(entry: Entry): string {
  switch (entry.kind) {
    case "message":
      return messageEntry(entry.topic, entry.key, JSON.stringify(entry.body));
    case "stored":
      return storedEntry(entry.topic, entry.id);
    case "queue":
      return queueEntry(entry.queue);
  }
}

function counter(): () => number {
  let number = 0;
  return () => ++number;
}

describe("the payloads of notifications", () => {
  test("hold all entries in their order, numbered, and none is longer than PostgreSQL takes", () => {
    fc.assert(
      fc.property(entries, (list) => {
        const fitting = list.filter((entry) => fits(text(entry)));
        const payloads = pack(fitting.map(text), ORIGIN, counter());
        for (const payload of payloads) {
          assert.ok(Buffer.byteLength(payload) <= PAYLOAD_BYTES_MAX);
          assert.ok(payload.isWellFormed() && !payload.includes("\0"));
        }
        const read = payloads.map((payload) => parsePayload(payload)!);
        const found = read.map(({ origin, number }) => [origin, number]);
        const expected = read.map((_, index) => [ORIGIN, index + 1]);
        assert.deepEqual(found, expected);
        const travelled = JSON.parse(JSON.stringify(fitting)) as Entry[];
        const listed = read.flatMap((payload) => payload.entries());
        assert.deepEqual(listed, travelled);
      }),
      { numRuns: 200 },
    );
  });

  test("are as few as their size allows", () => {
    const small = Array.from({ length: 1_000 }, (_, i) => messageEntry("t", "", String(1_000 + i)));
    const payloads = pack(small, ORIGIN, counter());
    assert.ok(payloads.length <= Math.ceil((1_000 * (small[0]!.length + 1)) / 7_900), `${payloads.length}`);
    assert.equal(pack([], ORIGIN, counter()).length, 1, "a probe is a payload without entries");
  });

  test("take an entry up to the limit in bytes, whatever its characters", () => {
    for (const character of ["x", "\u00e9", "\u20ac", "\ud83d\ude00"]) {
      let fitting = 0;
      for (let length = 1; length < 8_100; length++) {
        const entry = messageEntry("t", "k", JSON.stringify(character.repeat(length)));
        if (!fits(entry)) break;
        fitting = length;
        if (Buffer.byteLength(entry) < 7_800) continue;
        const [payload] = pack([entry], "f".repeat(16), () => Number.MAX_SAFE_INTEGER);
        assert.ok(Buffer.byteLength(payload!) <= PAYLOAD_BYTES_MAX);
      }
      const bytes = fitting * Buffer.byteLength(character);
      assert.ok(bytes > 7_900 && bytes < 8_000, `${character}: ${bytes}`);
    }
  });

  test("that are not ours are passed over, and entries of a newer form too", () => {
    for (const stranger of ["", "hello", "a:b:[]", "A:1:[]", "a:1:{}", "a:1:", "a:1:[]x", "42"]) {
      assert.equal(parsePayload(stranger), null, stranger);
    }
    assert.deepEqual(parsePayload("a:1:[broken]")!.entries(), []);
    const newer = parsePayload('a:1:[{"v":2},["t","k",1,"more"],[1],["t",2],["t","k",null],[]]')!;
    assert.deepEqual(newer.entries(), [{ kind: "message", topic: "t", key: "k", body: null }]);
  });
});
